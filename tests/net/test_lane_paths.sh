#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lanes in a leaf-spine fabric take different paths, and leave a path that is cut.
# Usage: test_lane_paths.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
name=lanes$$
export TRIB_LANES=4 TRIB_LOG=info

spines() { # of the paths that lanes have found
	grep -o "path [0-3] to .*" "$out" | grep -o '10\.83\.[0-9]*\.10[1-4]' | sort -u | wc -l
}
detours() { grep -c 'hears nothing, and goes on' "$out"; }
more_detours() { [ "$(detours)" -gt "$1" ]; }

# h1 is at the leaf of the aggregator, h2 is not.
up "$name" --hosts 2 --leaf 2 --spine 4 --core 100mbit
out=$work/out
timeout -k 5 100 "$trib" run -n 2 --net "$name" --timeout 30 -- \
	"$worker" --rounds 1000000 --mark "$work/mark" --until "$work/stop" >"$out" 2>&1 &
job=$!
check "workers run" wait_for 30 all_marked 2
check "four lanes take four spines ($(spines))" test "$(spines)" = 4
for spine in 1 2 3 4; do
	before=$(detours)
	"$trib" net cut --name "$name" "leaf2-spine$spine"
	# Lanes that have left one spine may all be at others, so nothing need happen.
	wait_for 3 more_detours "$before"
	"$trib" net restore --name "$name" "leaf2-spine$spine"
done
check "lanes have left spines that were cut ($(detours))" more_detours 1
touch "$work/stop"
wait "$job"
check "all sums are exact" right 2
done_checking
