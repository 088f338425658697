#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The main job, made very small: a network is trained, and all workers end with the same weights.
# Usage: test_main.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
train=$(program examples/train) || fail "$train"
job=("$train" --data drawn --samples 2000 --epochs 1 --hidden 64 --batch 128 --quiet)

accuracy() { grep -o 'test accuracy.*' "$out"; }
same_weights() { # WHAT
	check "$1: the workers end with the same weights" grep -q 'bitwise equal on all 4' "$out" ||
		cut -c 1-400 "$out"
}
# trained WHAT: all workers have the same weights, which are those of the first run.
trained() {
	same_weights "$1"
	check "... and the accuracy of the first run" test -n "$expected" -a "$(accuracy)" = "$expected"
}
learned() { accuracy | awk '{ found = $3 + 0 >= 50 } END { exit !found }'; } # percent; guessing gives 10

check "a network with convolutions: the run ends well" go -n 4 --timeout 30 -- "$train" --model conv \
	--data drawn --samples 2000 --epochs 1 --batch 32 --quiet --curve "$work/curve.csv"
same_weights "a network with convolutions"
check "... and learn to read digits: $(accuracy)" learned
check "... with less loss at each of the curve's four points" awk -F, '
	NR == 2 { last = $3 }
	NR > 2 && $3 < last { falls++; last = $3 }
	END { exit !(NR == 5 && falls == 3) }' "$work/curve.csv"

check "on loopback, the run ends well" go -n 4 --timeout 30 -- "${job[@]}"
same_weights "on loopback"
expected=$(accuracy)
check "... and learn to read digits: $expected" learned

up ti$$ --hosts 4 --servers 1 --switch --link 1gbit
check "on a cluster, the run ends well" go -n 4 --net $cluster --timeout 30 -- "${job[@]}"
trained "on a cluster"
check "with 2 lanes and a small pool" go -n 4 --net $cluster --timeout 30 --lanes 2 --pool 64K -- "${job[@]}"
trained "with 2 lanes and a small pool"
down

need_faults
up ti$$ --hosts 4 --servers 1 --switch --link 1gbit --loss 0.02 --reorder 0.02 --seed 5
check "with losses, the run ends well" go -n 4 --net $cluster --timeout 30 -- "${job[@]}"
trained "with losses"
check "... although $(faults lost) packets were lost" test "$(faults lost)" -gt 20
done_checking
