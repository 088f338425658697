#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# trib bench rates as a test: the link of an aggregator gets half its rate under load and then all of
# it again. Every sum is exact, workers go on, and they do not repeat much. Counts, no speeds.
# Usage: test_rates.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip "virtual clusters need root here"
start "$@"

# value PHASE KEY: of the last run; phases are before, slow, restored.
value() { grep "\"link\": \"$1\"" "$work/json" | grep -o "\"$2\": [-0-9.]*" | cut -d' ' -f2; }
is() { awk "BEGIN { exit !($*) }"; }

for plane in udp xdp tcp; do
	[ $plane != xdp ] || has_bpf || { omit "this build has no XDP plane" && continue; }
	how="--seconds 2"
	[ $plane != tcp ] || how="--seconds 0.8 --runs 2"
	# shellcheck disable=SC2086 # several words
	"$trib" bench rates --repeats 0 --plane $plane --link 100mbit $how --size 256K \
		--json "$work/json" --plot "$work/svg" >"$work/out" 2>&1
	check "$plane: a link is halved under load" test $? = 0 || { cat "$work/out"; continue; }
	check "... every sum is exact" test "$(grep -o '"wrong": [0-9]*' "$work/json" | sort -u)" = '"wrong": 0'
	check "... there is a plot" grep -q '</svg>' "$work/svg"
	[ $plane != tcp ] || check "... as often as is asked for" grep -q 'of 2 runs' "$work/out"
	[ $plane != tcp ] || continue # what becomes of its rates is the kernel's business
	before=$(value before sent_packets) slow=$(value slow sent_packets)
	again=$(value slow resent_packets)
	check "... no collapse: $slow packets after $before" is "$slow > 0.2 * $before"
	check "... $again of them are repeats" is "$again < 0.3 * $slow"
done

# What is agreed on, and when: first rates, less, more; in a star and in a tree.
"$trib" bench rates --plane "" --repeats 3 --json "$work/json" >"$work/out" 2>&1
check "rates are agreed on" test $? = 0 || cat "$work/out"
check "... in a star and in a tree" test "$(grep -c '"levels"' "$work/json")" = 2


# left: namespaces of processes that have ended; a name is rates or agree, the process, and a host.
left() {
	local ns pid
	for ns in /run/netns/rates[0-9]* /run/netns/agree[0-9]*; do
		pid=${ns##*/?????}
		[ ! -e "$ns" ] || [ -d "/proc/${pid%%-*}" ] || echo "$ns"
	done
}
check "no cluster is left" test -z "$(left)"
done_checking
