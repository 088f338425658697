#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Aggregators and their controller are killed while ranks work: test_recover.sh PATH_TO_TRIB [KILLS [SEED]]
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
start "$1"
need_control
kills=${2:-12}
RANDOM=${3:-$((seed = $(date +%s) % 32768))}
echo "seed ${3:-$seed}"
control=127.0.0.1:$(free_port)
export TRIB_CONTROLLER=$control
base=$(free_port)
names=(a1 a2 a3 a4)

port_of() { echo $((base + 20 * ${1#a})); }

check "a controller starts" controller || exit 1
for name in "${names[@]}"; do
	agent "$name" "$(port_of "$name")"
	wait_for 5 node_is "$name" live
done

# workers ROUNDS: three of them, in the background; their output is in $work/worker.RANK
workers() {
	local rank
	pids=()
	eval "$("$trib" job new --size 3)"
	for rank in 0 1 2; do
		TRIB_MTU=1500 TRIB_LOG=notice TRIB_RANK=$rank TRIB_SIZE=3 TRIB_AGGREGATOR=$TRIB_AGGREGATOR \
			TRIB_JOB=$TRIB_JOB TRIB_COOKIE=$TRIB_COOKIE \
			"$worker" --rounds "$1" --seed 7 --max 200000 >"$work/worker.$rank" 2>&1 &
		pids+=($!)
	done
}

all_well() { # they end, and end well
	local pid
	for pid in "${pids[@]}"; do
		wait "$pid" || return 1
	done
}

digests() { grep -ho 'rank.*right.*common [0-9a-f]*' "$work"/worker.?; }

# working: is any of them?
working() { kill -0 "${pids[@]}" 2>/dev/null; }

workers 200
check "an undisturbed run" all_well || cat "$work"/worker.?
digests >"$work/right"
check "... has digests" test -s "$work/right"

# ---- aggregators ----
killed=0
while [ $killed -lt "$kills" ]; do
	workers 200
	while working && [ $killed -lt "$kills" ]; do
		sleep "0.$((RANDOM % 9))"
		name=${names[RANDOM % 4]}
		kill -KILL "${agents[$name]}"
		wait "${agents[$name]}" 2>/dev/null
		killed=$((killed + 1))
		sleep "0.$((RANDOM % 9))"
		agent "$name" "$(port_of "$name")"
	done
	check "a run while $killed aggregators were killed" all_well || tail -n 3 "$work"/worker.?
	digests >"$work/got"
	check "... has the same sums" cmp "$work/right" "$work/got"
	grep -h 'goes on in the trees' "$work"/worker.? >>"$work/recoveries"
done
for name in "${names[@]}"; do
	wait_for 5 node_is "$name" live
done
check "there was something to recover from" test -s "$work/recoveries"
sort -t' ' -k 1,1 "$work/recoveries" | sed 's/.*after //' | sort -n |
	awk '{ t[NR] = $1 } END { print NR " recoveries: median " t[int((NR + 1) / 2)] " s, longest " t[NR] " s" }'

# ---- the controller ----
workers 200
sleep 0.3
kill -KILL "$controller"
wait "$controller" 2>/dev/null
check "ranks do not need the controller to go on" all_well || tail -n 3 "$work"/worker.?
digests >"$work/got"
check "... and have the same sums" cmp "$work/right" "$work/got"
check "it starts again" controller
for name in "${names[@]}"; do
	wait_for 5 node_is "$name" live
done
workers 400
sleep 0.3
kill -KILL "$controller" "${agents[a1]}"
wait "$controller" "${agents[a1]}" 2>/dev/null
sleep 0.5
check "both at once, and the controller comes back" controller
check "... ranks go on" all_well || tail -n 3 "$work"/worker.?
done_checking
