#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Servers behind a link that hands frames in pages over, as a NIC's driver does: such a cluster comes
# and goes, sums through it are exact on every plane, and what aggregators cost is told: test_nic.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
need_xdp
kernel_is 6 6 || skip "this kernel has no programs for packets at an interface (tcx), which came with 6.6"

# bench OPTION...: hosts of its own, all sums looked at; output in $work/bench, figures in $work/json.
bench() {
	"$trib" bench allreduce --nic --hosts 2 --link 200mbit --iterations 2 --check --json "$work/json" "$@" \
		>"$work/bench" 2>&1 &
	local pid=$!
	wait $pid
	code=$?
	left=$(find /run/netns -name "bench$pid-*" | wc -l)
}
rows() { grep -c "$1" "$work/json"; }
# figure SYSTEM NAME
figure() { grep "\"system\": \"$1\"" "$work/json" | grep -o "\"$2\": [^,]*" | cut -d' ' -f2; }
says() { ! "$trib" bench allreduce "${@:2}" >"$work/said" 2>&1 && grep -qF -- "$1" "$work/said"; }
above_0() { awk -v value="${1:-0}" 'BEGIN { exit !(value + 0 > 0) }'; }

# --- one server
bench --server --sizes 64K,1M --repeats 1 --against trib-xdp,trib-tcp,ps
check "a server behind a NIC: all ran, all sums right" test $code = 0 || cat "$work/bench"
check "... on each plane, and of a peer" test "$(rows '"median_s": [0-9]')/$(rows '"failed": 0')" = 8/8 ||
	grep '"failed": [1-9]' "$work/json"
check "... nothing is left of it" test "$left" = 0
check "... which the figures say" grep -q '"nic": true' "$work/json"
check "... packets came one by one" grep -q '"offload": false' "$work/json"

# --- several, of which sums go on to one
bench --servers 2 --sizes 256K --repeats 1 --trees 's1(s2(0),1)' --against trib-xdp,trib-tcp
check "a tree of two: all ran, all sums right" test $code = 0 || cat "$work/bench"
check "... on each plane" test "$(rows '"failed": 0')" = 3
check "... nothing is left of it" test "$left" = 0

# --- with faults, which are at the bridge
bench --server --sizes 256K --repeats 1 --loss 0.02 --dup 0.01 --reorder 0.01 --seed 5 --against trib-xdp
check "faults: all sums right" test $code = 0 || cat "$work/bench"
check "... on both planes" test "$(rows '"failed": 0')" = 2

# --- what aggregators cost, where they have a core
if [ "$(nproc)" -gt 1 ]; then
	# The kernel counts a core's busy time in ticks of 10 ms, so vectors must be long enough for several.
	bench --server --link 1gbit --sizes 32M --repeats 2 --plane xdp --against trib-tcp --cores s1=1
	check "a core for the server: all sums right" test $code = 0 || cat "$work/bench"
	check "... what it adds in a CPU-second" above_0 "$(figure tributary aggregated_gb_per_cpu_s_min)"
	check "... and how much more tcp takes" above_0 "$(figure trib-tcp aggregator_cpu_times)"
	check "... of which the table speaks" grep -q "times the CPU time of tributary's for the same" "$work/bench"
	check "... also again, from what was saved" diff <(grep -vE "^[0-9]+ of [0-9]+: " "$work/bench") <("$trib" bench plot "$work/json")

	# Most of it for others. What is left may be that of other tests, but it is never more than a fifth of the time.
	for _ in 1 2 3; do # another virtual machine may have had the core
		SECONDS=0
		bench --server --sizes 4M --repeats 2 --plane xdp --against trib-tcp --cores s1=1 --busy 80%
		all=$SECONDS
		! lacks 'other work had' "$work/bench" || break
	done
	little() {
		awk -v one="$(figure tributary aggregator_cpu_s)" -v two="$(figure trib-tcp aggregator_cpu_s)" -v all="$all" \
			'BEGIN { exit !(one + 0 > 0 && two + 0 > 0 && one + two <= all / 4) }'
	}
	check "a fifth of a core: all sums right" test $code = 0 || cat "$work/bench"
	check "... which the figures say" grep -q '"busy": 0.8' "$work/json"
	check "... others had the rest" lacks 'other work had' "$work/bench"
	check "... what they did is not the aggregator's" little
	check "... also again, from what was saved" diff <(grep -vE "^[0-9]+ of [0-9]+: " "$work/bench") <("$trib" bench plot "$work/json")
	check "others share cores of servers, not of workers" says 'workers share cores with servers' \
		--server --nic --cores s1=1 --cores h1=1 --busy 0.5
fi
[ "$(nproc)" -gt 1 ] || omit "two cores are needed, one for the server"

# --- what is wrong is said
check "a switch has no such link" says '--nic needs servers' --nic
check "copies of veth are another thing" says '--nic and --copied cannot be combined' --nic --copied --server
check "a share is below 1" says 'nothing else would run' --server --nic --cores s1=1 --busy 1
check "others are where servers have cores" says '--busy needs servers' --server --nic --busy 0.5
check "a cluster that is there has none" says 'is used as it is' --nic --net none
done_checking
