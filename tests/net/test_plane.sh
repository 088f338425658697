#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# trib bench plane as a test: on each plane every packet is counted once and every sum is exact, and
# an aggregator with nothing to do does nothing. No speeds. Usage: test_plane.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip "placing receive work needs root"
start "$@"

# value KEY: of the one row of the last run.
value() { grep -o "\"$1\": [-0-9.e+]*" "$work/json" | tail -1 | cut -d' ' -f2; }
is() { awk "BEGIN { exit !($*) }"; }

# bench WHAT OPTION...: one run of a plane.
bench() {
	local what=$1
	shift
	"$trib" bench plane --repeats 1 --hurry --check --json "$work/json" "$@" >"$work/out" 2>&1
	check "$what" test $? = 0 || { cat "$work/out"; return 1; }
	check "... every sum is exact" is "$(value wrong) == 0 && $(value results) > 0"
}

planes=(udp tcp)
if has_bpf; then
	planes+=(xdp)
else
	omit "this build has no XDP plane"
fi
for plane in "${planes[@]}"; do
	bench "$plane, 4000 packets/s" --plane $plane --rate 4000 --seconds 0.5
	check "... nothing is lost" is "$(value lost) == 0"
	check "... every packet is in a sum, once" is "$(value packets_in_sums) == $(value packets_sent)"
	bench "$plane, as fast as it takes them" --plane $plane --seconds 0.3 --elements 64 --children 4
	bench "$plane, one port, to all" --plane $plane --seconds 0.2 --one-port --to-all --rate 4000
	# Heartbeats and a tick every 50 ms; a loop that polls would have thousands.
	"$trib" bench plane --plane $plane --rate 0 --seconds 1 --repeats 1 --hurry --json "$work/json" >/dev/null
	check "... idle: its threads sleep ($(value switches) wake-ups, $(value threads_s) s)" \
		is "$(value switches) < 200 && $(value threads_s) < 0.02"
done
frames=()
if [ ${#planes[@]} = 3 ]; then
	frames=(xdp-nic)
	if kernel_is 6 6; then
		frames+=(xdp-relay udp-nic tcp-nic)
	else
		omit "this kernel has no programs for packets at an interface (tcx), which came with 6.6"
	fi
	[ "$(nproc)" -lt 2 ] || bench "xdp, before all others" --plane xdp --urgent --seconds 0.2
fi
for plane in "${frames[@]}"; do
	bench "$plane, frames as in a NIC's driver" --plane $plane --seconds 0.2
done
# left: namespaces of processes that have ended; a name is plane, the process, x and a number.
left() {
	local ns pid
	for ns in /run/netns/plane*; do
		pid=${ns##*/plane}
		[ ! -e "$ns" ] || [ -d "/proc/${pid%%x*}" ] || echo "$ns"
	done
}
# --- what a packet costs where it is summed: a row for each plane and size, none of them nothing
"$trib" bench engine --repeats 1 --json "$work/engine" >"$work/out" 2>&1
check "trib bench engine" test $? = 0 || cat "$work/out"
for plane in "${planes[@]}"; do
	check "... $plane from 32 to 352 elements" \
		test "$(grep "\"plane\": \"$plane\"" "$work/engine" | grep -c '"elements": [0-9]*,.*"ns_per_packet": [1-9]')" = 11
done
check "no cluster is left" test -z "$(left)"
done_checking
