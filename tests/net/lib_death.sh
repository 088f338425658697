# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For tests in which workers die: TRIB_SIZE is 4, TRIB_TIMEOUT is 5.
# shellcheck disable=SC2154,SC2034  # variables of lib.sh and of the test
pids=()

# workers RANKS WORKER_ARG...: starts them in this order, each on its host. They find each other at $at, by the variable
# $meet names (TRIB_AGGREGATOR).
workers() {
	local ranks=$1 rank
	shift
	rm -f "$work"/rank.* "$work"/mark.*
	pids=()
	for rank in $ranks; do
		env TRIB_RANK="$rank" "${meet:-TRIB_AGGREGATOR}=$at" "$trib" net exec --name "$cluster" \
			"h$((rank + 1))" -- "$worker" --mark "$work/mark" --linger 2 "$@" \
			>"$work/rank.$rank" 2>&1 &
		pids[rank]=$!
	done
}

in_mid_round() { check "$1: all ranks are in mid-round" wait_for 20 all_marked 4 || { tail "$work"/rank.*; exit 1; }; }
all_said() { # RANKS: has each written its error?
	local rank
	for rank in $1; do
		grep -q ' error ' "$work/rank.$rank" || return 1
	done
}

# errors WHAT RANKS STATUS WORDS: each of the ranks has an error of this status with these words,
# and had it before the deadline and a little had passed.
errors() {
	local what=$1 ranks=$2 status=$3 words=$4 rank took
	wait_for 15 all_said "$ranks"
	for rank in $ranks; do
		check "$what: rank $rank has \"$status\" that says \"$words\"" \
			grep -Eq "error ($status)[a-z ]* after .*$words" "$work/rank.$rank" || cat "$work/rank.$rank"
		took=$(grep -o ' after [0-9]*\.' "$work/rank.$rank" | grep -o '[0-9]*' | head -n 1)
		check "... after ${took:-?} s of 5" test "${took:-99}" -le 6
	done
}

end() { # PID...
	local pid
	for pid; do
		kill -KILL "$pid"
		wait "$pid"
	done 2>/dev/null
}
