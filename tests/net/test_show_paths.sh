#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Paths through a leaf-spine fabric: found by ports and by alias addresses, cut, and found again.
# Usage: test_show_paths.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
name=paths$$

# addresses HOST: leaves its own address and those of its aliases in $to.
addresses() {
	local own k
	own=$(address "$1")
	to=("$own")
	for k in 1 2 3 4; do to+=("${own/#10.84./10.$((84 + k)).}"); done
}

# show FROM TO...: leaves the paths in $work/paths. The search ends when it has found $want of them.
show() {
	local from=$1
	shift
	TRIB_PATHS=${want:-4} TRIB_LOG=info on "$from" "$trib" show paths --seconds 20 "$@" >"$work/paths" 2>"$work/log"
}
# A search waits 50 ms for the routers of its first path. If these are later on a busy machine, that path has no
# known spine, and may be another one once more. Then the test searches again, so routers must answer every time.
answer_always() {
	local router
	for router in leaf1 leaf2 spine1 spine2 spine3 spine4; do
		on "$router" sh -c 'echo 0 >/proc/sys/net/ipv4/icmp_ratelimit'
	done
}
show_four() { # FROM TO...
	local _
	for _ in 1 2 3 4 5; do
		show "$@"
		[ "$(spines)" != 4 ] || return 0
	done
}
begin_search() { # FROM TO...: as show, in the background, until $search ends
	local from=$1 _
	shift
	for _ in 1 2 3 4 5; do
		TRIB_PATHS=4 TRIB_LOG=info "$trib" net exec --name "$cluster" "$from" "$trib" show paths --seconds 60 "$@" \
			>"$work/paths" 2>"$work/log" &
		search=$!
		wait_for 20 logged 0
		! grep -q 'path 0 to .* 10\.83\.[0-9]*\.10[1-4]' "$work/log" || return 0
		kill "$search" && wait "$search"
	done
}
found() { grep -c '^ *[0-9]' "$work/paths"; }
spines() { grep -o ' 10\.83\.[0-9]*\.10[1-4]' "$work/paths" | sort -u | wc -l; }
by_spine() { # K: the path from alias K goes by spine K
	grep -q "10\.$((84 + $1))\..* 10\.83\.[0-9]*\.10$1\b" "$work/paths"
}
logged() { grep -q "path $1 to" "$work/log"; }

# --- ECMP: the hash of ports tells paths apart ---
up "$name" --hosts 3 --leaf 2 --spine 4 --hash l4
answer_always
h3=$(address h3)
show_four h1 "$h3"
check "four paths to another leaf ($(found))" test "$(found)" = 4
check "... by four spines" test "$(spines)" = 4
addresses h2
show h1 "${to[@]}"
check "one path to a host of the same leaf ($(found)), in spite of aliases" test "$(found)" = 1
TRIB_PATHS=off on h1 "$trib" show paths "$h3" >"$work/paths"
check "TRIB_PATHS=off: one path" test "$(found)" = 1
TRIB_PATHS=xor:3 on h1 "$trib" show paths --json "$h3" >"$work/paths"
check "TRIB_PATHS=xor:3: three paths" test "$(grep -c '"path":' "$work/paths")" = 3
want=17 not show h1 "$h3"
check "a wrong TRIB_PATHS is an error" grep -q 'TRIB_PATHS is "17".*expected' "$work/log"
down

# --- routes by source address: alias k goes by spine k ---
up "$name" --hosts 2 --leaf 2 --spine 4 --route static
answer_always
addresses h2
show_four h1 "${to[@]}"
check "static routes: four spines" test "$(spines)" = 4
"$trib" net cut --name "$name" leaf1-spine2
begin_search h1 "${to[@]}"
check "three paths are found when one is cut" wait_for 20 logged 2
sleep 1 # the search has ended by then, if it mistakes another path for a new one
check "... and no more" lacks 'path 3 to' "$work/log"
"$trib" net restore --name "$name" leaf1-spine2
check "the fourth is found when it is back" wait "$search"
check "... by the spine of its alias" by_spine 2
check "... which makes four" test "$(spines) $(found)" = "4 4"
done_checking
