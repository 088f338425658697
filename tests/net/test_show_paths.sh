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
	TRIB_PATHS=${want:-4} TRIB_LOG=info on "$from" "$trib" show paths --seconds "${seconds:-20}" "$@" \
		>"$work/paths" 2>"$work/log"
}
found() { grep -c '^ *[0-9]' "$work/paths"; }
spines() { grep -o ' 10\.83\.[0-9]*\.10[1-4]' "$work/paths" | sort -u | wc -l; }
by_spine() { # K: the path from alias K goes by spine K
	grep -q "10\.$((84 + $1))\..* 10\.83\.[0-9]*\.10$1\b" "$work/paths"
}
logged() { grep -q "path $1 to" "$work/log"; }

# --- ECMP: the hash of ports tells paths apart ---
up "$name" --hosts 3 --leaf 2 --spine 4 --hash l4
h3=$(address h3)
show h1 "$h3"
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
addresses h2
want=5 seconds=1 show h1 "${to[@]}"
check "static routes: four spines" test "$(spines)" = 4
"$trib" net cut --name "$name" leaf1-spine2
seconds=60 show h1 "${to[@]}" &
search=$!
check "three paths are found when one is cut" wait_for 20 logged 2
sleep 1 # the search has ended by then, if it mistakes another path for a new one
check "... and no more" lacks 'path 3 to' "$work/log"
"$trib" net restore --name "$name" leaf1-spine2
check "the fourth is found when it is back" wait "$search"
check "... by the spine of its alias" by_spine 2
check "... which makes four" test "$(spines) $(found)" = "4 4"
done_checking
