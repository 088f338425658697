#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Leaf-spine fabrics: routes, links that are cut and slow, sums across them.
# Usage: test_fabric.sh PATH_TO_TRIB
#
# Packets are counted where spines receive them, and at a host's closed UDP port.
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
command -v python3 >/dev/null || skip "python3 is not installed"
name=fab$$

alias_of() { address "$1" | sed "s/10\.84\./10.$((84 + $2))./"; } # HOST K
received() { on "$1" awk '$1 == "Udp:" { n = $3 } END { print n }' /proc/net/snmp; } # at closed ports
passed() { on "spine$1" awk -v link="leaf$2:" '$1 == link { print $3 }' /proc/net/dev; } # SPINE LEAF

# send HOST FROM TO COUNT [BYTES]: packets from one port. With flows=1, each is from a port of its own.
send() {
	on "$1" python3 - "$2" "$3" "$4" "${5:-100}" "${flows:-0}" <<-'PYTHON'
		import socket, sys
		source, to, count, size, flows = *sys.argv[1:3], *map(int, sys.argv[3:])
		sockets = []
		for i in range(count):
		    if flows or not i:
		        sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
		        sockets[-1].bind((source, 0))
		    sockets[-1].sendto(bytes(size), (to, 9))
	PYTHON
}

have_come() { [ "$(received "$1")" -ge "$2" ]; }

# arrive SENDER FROM RECEIVER TO COUNT [BYTES]: leaves in $came how many packets arrived, and in
# $by[1..] how many each spine got from the sender's leaf.
arrive() {
	local before spine leaf=1
	[[ $1 == h[34] ]] && leaf=2
	before=$(received "$3")
	for spine in 1 2 3 4; do by[spine]=$(passed $spine $leaf); done
	send "$1" "$2" "$4" "$5" "${6:-100}"
	wait_for 1 have_come "$3" $((before + $5)) # if not all arrive, this waits in vain
	came=$(($(received "$3") - before))
	for spine in 1 2 3 4; do by[spine]=$(($(passed $spine $leaf) - by[spine])); done
}

# only SPINE COUNT: this spine got them all, and the others none.
only() {
	local spine
	for spine in 1 2 3 4; do
		[ "${by[spine]}" = "$([ "$spine" = "$1" ] && echo "$2" || echo 0)" ] || return 1
	done
}
spread() { [ "${by[1]}" -gt 15 ] && [ "${by[2]}" -gt 15 ] && [ "${by[3]}" -gt 15 ] && [ "${by[4]}" -gt 15 ]; }
fewest() { printf '%s\n' "${by[@]}" | sort -n | head -n 1; }
says() { # PATTERN COMMAND...: the command fails, with these words
	local pattern=$1
	shift
	not "$@" >"$work/says" 2>&1 && grep -q -- "$pattern" "$work/says"
}
list() { "$trib" net list | awk -v name="$name:" '/^[^ ]/ { on = $1 == name } on' >"$work/list" && [ -s "$work/list" ]; }
listed() { list && grep -q -- "$1" "$work/list"; }
unlisted() { list && lacks "$1" "$work/list"; }
cut_link() { "$trib" net cut --name "$name" "$@"; }
slow_link() { "$trib" net slow --name "$name" "$@"; }
restore_link() { "$trib" net restore --name "$name" "$@"; }
nothing_left() { [ -z "$(find /run/netns -name "$name-*")" ]; }
declare -a by

# --- ECMP ---
up "$name" --hosts 4 --servers 2 --leaf 2 --spine 4 --link 1gbit --core 200mbit
h1=$(address h1) h2=$(address h2) h4=$(address h4)
arrive h1 "$h1" h2 "$h2" 50
check "hosts of one leaf reach each other ($came of 50)" test "$came" = 50
check "... without a spine (${by[*]})" only 0 0
flows=1 arrive h1 "$h1" h4 "$h4" 200
check "200 flows to another leaf arrive ($came)" test "$came" = 200
check "... by all spines (${by[*]})" spread
arrive h1 "$h1" h4 "$h4" 100
check "a single flow takes one spine (${by[*]})" test "$came $(printf '%s\n' "${by[@]}" | sort -n | tail -n 1)" = "100 100"
flows=1 arrive h1 "$h1" h3 "$(alias_of h3 2)" 200
check "an alias is reached by all spines (${by[*]})" test "$came" = 200 -a "$(fewest)" -gt 15
go_right "sums across the fabric" 4 --rounds 3
if has_bpf && has_xdp; then
	run_options='--plane xdp' go_right "sums in the kernel across the fabric" 4 --rounds 5
	in_kernel 50
else
	omit "the plane xdp needs root and a build with BPF programs"
fi
on spine3 true
check "a command runs on a spine" test $? = 0

# --- links are cut, silently or not ---
check "cut" cut_link leaf1-spine2
check "... is listed" listed 'leaf1-spine2 *200mbit *cut'
flows=1 arrive h1 "$h1" h4 "$h4" 200
check "packets on a cut link vanish ($came of 200; ${by[*]})" test "$came" -lt 186 -a "$came" -gt 100 -a "${by[2]}" = 0
flows=1 arrive h4 "$h4" h1 "$h1" 200
check "... in both directions ($came)" test "$came" -lt 186 -a "$came" -gt 100
check "cut --down" cut_link --down leaf1-spine2 leaf2-spine4
flows=1 arrive h1 "$h1" h4 "$h4" 200
check "leafs route around links that are down ($came of 200; ${by[*]})" \
	test "$came ${by[2]} ${by[4]}" = "200 0 0" -a "${by[1]}" -gt 30
flows=1 arrive h4 "$h4" h1 "$h1" 200
check "... also from the other leaf ($came; ${by[*]})" test "$came ${by[2]} ${by[4]}" = "200 0 0"
go_right "sums with links down" 4 --rounds 3
cut_link --down leaf1-spine1 leaf1-spine3 leaf1-spine4
check "without a way, hosts get an error" says unreachable on h1 python3 -c "import socket
socket.create_connection(('$h4', 9), 10)"
check "restore" restore_link leaf1-spine1 leaf1-spine2 leaf1-spine3 leaf1-spine4 leaf2-spine4
flows=1 arrive h1 "$h1" h4 "$h4" 200
check "... and all spines are in use ($came of 200; ${by[*]})" spread
check "... nothing of it is listed" unlisted 'leaf.* \(cut\|down\)'
cut_link h4
arrive h1 "$h1" h4 "$h4" 20
check "a host's link is cut ($came of 20)" test "$came" = 0
restore_link h4
arrive h1 "$h1" h4 "$h4" 20
check "... and restored ($came of 20)" test "$came" = 20
check "an unknown link is an error that says which there are" says 'leaf1-spine1 to leaf2-spine4' cut_link h1 leaf3-spine1
check "... and changes nothing" unlisted 'h1 .* cut'
check "a host's link cannot be down" says 'no other link' cut_link --down h1
check "a rate is needed" says 'at least 8kbit' slow_link h1 0
"$trib" net list --json >"$work/json"
check "the list is JSON" python3 - "$work/json" "$name" <<-'PYTHON'
	import json, sys
	one, = (c for c in json.load(open(sys.argv[1])) if c["name"] == sys.argv[2])
	assert one["hosts"][3]["leaf"] == 2 and len(one["hosts"][3]["aliases"]) == 4
	assert [l["name"] for l in one["fabric"]["links"]][4] == "leaf2-spine1"
	assert {l["state"] for l in one["fabric"]["links"]} == {"whole"}
PYTHON
down
check "down leaves nothing" nothing_left

# --- static routes ---
up "$name" --hosts 4 --servers 1 --leaf 2 --spine 4 --paths 5 --route static --core 200mbit --no-offload
h1=$(address h1) h4=$(address h4)
for k in 1 2 3 4 5; do
	spine=$(((k - 1) % 4 + 1))
	arrive h1 "$(alias_of h1 $k)" h4 "$h4" 20
	check "alias $k takes spine $spine ($came of 20; ${by[*]})" only $spine 20
	arrive h4 "$h4" h1 "$(alias_of h1 $k)" 20
	check "... and so do answers (${by[*]})" only $spine 20
done
arrive h4 "$(alias_of h4 3)" h1 "$(alias_of h1 1)" 20
check "between two aliases, the sender's decides (${by[*]})" only 3 20
arrive h1 "$(alias_of h1 1)" h2 "$(alias_of h2 1)" 20
check "aliases of one leaf need no spine (${by[*]})" test "$came" = 20
check "slow" slow_link leaf1-spine2 100kbit
check "... is listed" listed 'leaf1-spine2 *0.1mbit *slow'
arrive h1 "$(alias_of h1 2)" h4 "$h4" 500 1000
check "a slow link passes its burst ($came of 500)" test "$came" -gt 10 -a "$came" -lt 250
arrive h1 "$(alias_of h1 3)" h3 "$(address h3)" 500 1000
check "... the others pass all ($came of 500)" test "$came" = 500
restore_link leaf1-spine2
arrive h1 "$(alias_of h1 2)" h3 "$(address h3)" 500 1000
check "... and so does it when restored ($came of 500)" test "$came" = 500
cut_link --down leaf2-spine3
arrive h1 "$(alias_of h1 3)" h4 "$h4" 20
check "if the link of its spine is down, an alias takes another spine (${by[*]})" test "$came ${by[3]}" = "20 0"
restore_link leaf2-spine3
arrive h1 "$(alias_of h1 3)" h4 "$h4" 20
check "... and goes back (${by[*]})" only 3 20
go_right "sums with static routes" 4 --rounds 3

# --- a hash of addresses, and faults ---
lossy=()
if has_bpf; then
	for spine in 1 2 3 4; do lossy+=(--loss "leaf1-spine$spine=0.5"); done
else
	omit "links with faults need root, and a build with BPF programs"
fi
up "$name" --hosts 2 --servers 0 --leaf 2 --spine 4 --hash l3 "${lossy[@]}"
h1=$(address h1) h2=$(address h2)
flows=1 arrive h1 "$h1" h2 "$h2" 100
check "with --hash l3 two hosts use one spine (${by[*]})" test "$(printf '%s\n' "${by[@]}" | grep -vxc 0)" = 1
if has_bpf; then
	lost=$(faults lost)
	check "links of the fabric lose packets ($lost of 100)" test "$lost" -gt 20 -a "$lost" -lt 80
	check "... which do not arrive" test $((came + lost)) = 100
	check "a link that has faults must exist" says 'no link leaf3' "$trib" net up --name "$name-x" --leaf 2 --spine 2 --loss leaf3-spine1=1
fi
check "a fabric needs both numbers" says 'spine is 1 to' "$trib" net up --name "$name-x" --leaf 2
check "its options need a fabric" says 'need a fabric' "$trib" net up --name "$name-x" --route static
check "a route is one of two words" says 'ecmp or static' "$trib" net up --name "$name-x" --route other
done_checking
