#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lanes in a leaf-spine fabric take different paths in both directions, and leave a path that is cut.
# Usage: test_lane_paths.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
name=lanes$$
out=$work/out
export TRIB_LOG=info

spines() { # of the paths that lanes have found
	grep -o "path [0-3] to .*" "$out" | grep -o '10\.83\.[0-9]*\.10[1-4]' | sort -u | wc -l
}
detours() { grep -c 'hears nothing, and goes on' "$out"; }
more_detours() { [ "$(detours)" -gt "$1" ]; }
lanes() { grep -o 'dense, [0-9]* lanes' "$out"; }

counters() { # bytes that a leaf has sent to each spine
	on "$1" -- cat /proc/net/dev | awk '/spine/ { print $10 }'
}
# spread PATHS BEFORE AFTER: so many of the four paths have carried a 64th of all bytes each. That is little, since a
# lane may leave its path if a busy machine makes it slow.
spread() {
	local paths=$1
	shift
	paste "$1" "$2" | awk -v paths="$paths" '{ n[NR] = $2 - $1; sum += n[NR] }
		END { for (i in n) used += n[i] >= sum / 64; exit NR != 4 || sum < 16000000 || used < paths }' && return
	paste "$1" "$2"
	return 1
}
few_repeats() { # of all fragments, less than 5 % were sent again
	sed -n 's/.*, sent \([0-9]*\), resent \([0-9]*\),.*/\1 \2/p' "$out" |
		awk '{ sent += $1; again += $2 } END { print again " of " sent; exit !sent || again >= sent / 20 }'
}
sum_on() { # ROUNDS OPTION...
	timeout -k 5 200 "$trib" run -n 2 --net "$name" --timeout 30 "${@:2}" -- "$worker" --only allreduce \
		--types i32 --ops sum --max 2000000 --rounds "$1" >"$out" 2>&1
}

# h1 is at the leaf of the aggregator, h2 is not. Results go from leaf1 to leaf2.
check_spread() { # WHAT LANES PATHS OPTION...
	counters leaf1 >"$work/results0"
	counters leaf2 >"$work/data0"
	sum_on 20 "${@:4}"
	counters leaf1 >"$work/results1"
	counters leaf2 >"$work/data1"
	check "$1: all sums are exact" right 2
	check "$1: $2 lanes to each aggregator" test "$(lanes | sort -u)" = "dense, $2 lanes"
	check "$1: data takes $3 paths" spread "$3" "$work/data0" "$work/data1"
	check "$1: results take $3 paths" spread "$3" "$work/results0" "$work/results1"
	check "$1: few fragments are repeated" few_repeats
}

up "$name" --hosts 2 --leaf 2 --spine 4 --core 100mbit
check_spread "hashed paths" 4 4
down
up "$name" --hosts 2 --leaf 2 --spine 4 --core 100mbit --route static
TRIB_PATHS=addresses check_spread "a path for each alias" 4 4
down
# Each rank has two lanes to the aggregator at the other leaf.
up "$name" --hosts 2 --servers 2 --leaf 2 --spine 4 --core 100mbit
check_spread "two trees" 2 2 --trees 's1(0,1);s2(0,1)'
down

up "$name" --hosts 2 --leaf 2 --spine 4 --core 100mbit
timeout -k 5 100 "$trib" run -n 2 --net "$name" --timeout 30 -- \
	"$worker" --rounds 1000000 --max 500000 --mark "$work/mark" --until "$work/stop" >"$out" 2>&1 &
job=$!
check "workers run" wait_for 30 all_marked 2
takes_four() { [ "$(spines)" = 4 ]; }
check "four lanes take four spines" wait_for 10 takes_four
slow=$(grep -o 'path 0 to .*' "$out" | grep -o '10\.83\.[0-9]*\.10[1-4]' | grep -o '.$' | tail -n 1) # on a busy machine it may have changed
"$trib" net slow --name "$name" "leaf2-spine$slow" 5mbit
check "a lane leaves a slow path" wait_for 30 grep -q 'Mb/s, and goes on from' "$out"
"$trib" net restore --name "$name" "leaf2-spine$slow"
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
check "all sums are exact" right 2 || tail -n 20 "$out"
down

# Without routers there are no more lanes than with TRIB_PATHS=off, and no lane looks for a path.
up "$name" --hosts 2
TRIB_PATHS=off sum_on 3
check "one path, not searched: all sums are exact" right 2
before=$(lanes)
sum_on 3
check "one path: all sums are exact" right 2
check "one path: as many lanes ($before)" test "$(lanes)" = "$before"
check "one path: no lane leaves it" test "$(grep -c 'goes on from' "$out")" = 0
done_checking
