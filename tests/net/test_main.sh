#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The main job, made very small: a network is trained, and all workers end with the same weights.
# Usage: test_main.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
train=$build/examples/train
[ -x "$train" ] || skip "this build has no $train"
expected=''
job=("$train" --data drawn --samples 2000 --epochs 1 --hidden 64 --batch 128 --quiet)

accuracy() { grep -o 'test accuracy.*' "$out"; }
trained() { # WHAT
	check "$1: the workers end with the same weights" grep -q 'bitwise equal on all 4' "$out" ||
		cut -c 1-400 "$out"
	check "... ${expected:-$(accuracy)}" test -n "$(accuracy)" -a "$(accuracy)" = "${expected:-$(accuracy)}"
}

check "on loopback, the run ends well" go -n 4 --timeout 30 -- "${job[@]}"
trained "on loopback"

up ti$$ --hosts 4 --servers 1 --switch --link 1gbit || skip "no cluster: $(cat "$work/up")"
check "on a cluster, the run ends well" go -n 4 --net $cluster --timeout 30 -- "${job[@]}"
trained "on a cluster"
expected=$(accuracy)
check "with 2 lanes and a small pool" go -n 4 --net $cluster --timeout 30 --lanes 2 --pool 64K -- "${job[@]}"
trained "with 2 lanes and a small pool"
down

if up ti$$ --hosts 4 --servers 1 --switch --link 1gbit --loss 0.02 --reorder 0.02 --seed 5; then
	check "with losses, the run ends well" go -n 4 --net $cluster --timeout 30 -- "${job[@]}"
	trained "with losses"
	check "... although $(faults lost) packets were lost" test "$(faults lost)" -gt 20
fi
done_checking
