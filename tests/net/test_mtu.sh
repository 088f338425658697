#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Packets are as large as the path allows, and no larger. Usage: test_mtu.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
name=tm$$
export TRIB_LOG=info

payload() { grep -o 'fragments of [0-9]*' "$out" | head -n 1 | grep -o '[0-9]*'; }
full() { echo $((($1 - 20 - 8 - 24) / 8 * 8)); } # of an MTU: without IP, UDP and our headers
mean() { echo $(($(counter payload_bytes) / ($(counter added) + $(counter completed)))); }
fragmented() { # how many packets IP has cut up or joined, on each host
	local host
	for host in h1 h2 h3 h4 s1; do
		on $host awk '$1 == "Ip:" && $2 + 0 > 0 { print $15 + $20 }' /proc/net/snmp
	done
}

# sizes WHAT PAYLOAD: results are right, fragments have this payload, and mostly are full.
sizes() {
	go_right "$1" 4 --only allreduce --rounds 20 --max 200000
	check "$1: fragments of $2 bytes" test "$(payload)" = "$2"
	check "... of which they use $(mean)" test "$(mean)" -gt $(($2 * 85 / 100)) -a "$(mean)" -le "$2"
	check "... and IP cuts nothing up" test "$(fragmented | xargs)" = "0 0 0 0 0"
}

for mtu in 1500 9000 1400; do
	up $name --hosts 4 --servers 1 --switch --link 1gbit --mtu $mtu
	sizes "MTU $mtu" "$(full $mtu)"
	down
done

up $name --hosts 4 --servers 1 --link 1gbit
TRIB_MTU=1000 sizes "MTU 1000, as the user says" "$(full 1000)"

# --- all ranks on the aggregator's host: fragments as long as its loopback takes them, which no group on eth0 carries
export TRIB_COOKIE=0000000000005eed
for _ in 1 2 3; do # where cores are scarce results are late, and asked for again: the first that had time counts
	aggregator h1 && aggregator_ready
	out=$work/out
	on h1 timeout -k 5 60 "$trib" run -n 3 --aggregator "$at" --timeout 30 -- \
		"$worker" --only allreduce --rounds 20 --max 200000 >"$out" 2>&1
	end_aggregator
	check "ranks on the aggregator's host: exact on all ranks" right 3
	out=$work/tribd
	[ "$(counter repeats)" -ge "$(counter results)" ] || break
done
check "... fragments of $(payload) bytes" test "$(payload)" -gt 1500
check "... no group is made for them" grep -q 'no multicast: .* carries packets of 1500 bytes' "$out"
# By a group it would be one and a half times as many as results.
check "... $(counter repeats) results besides $(counter results) were sent again" \
	test "$(counter repeats)" -lt "$(counter results)"
unset TRIB_COOKIE

# --- one host has a smaller MTU than the others, and knows it
on h2 ip link set eth0 mtu 1400
sizes "MTU 1400 on h2" "$(full 1400)"
on h2 ip link set eth0 mtu 1500

net() { ip netns exec $name-net ip link set "$@"; }
lower() { [ "$(payload)" -le "$(full 1400)" ] && [ "$(payload)" -ge 1024 ]; }

# --- large packets pass from h2 but not to h2: its JOIN arrives, and the WELCOME does not
on h2 ip link set eth0 mtu 1400
# shellcheck disable=SC2046  # a route is several words
on h2 ip route change $(on h2 ip route show dev eth0 proto kernel | head -n 1) dev eth0 mtu lock 1500
TRIB_OFFLOAD=off go_right "large packets vanish on their way to h2 alone" 4 --only allreduce --rounds 20 --max 100000
check "... fragments of $(payload) bytes pass both ways" lower
on h2 ip link set eth0 mtu 1500

# --- the way drops what is large both ways, and says nothing
net p2 mtu 1400
go_right "large packets vanish between h2 and the bridge" 4 --only allreduce --rounds 20 --max 100000
check "... fragments of $(payload) bytes pass" lower
check "... and it is said which do not" grep -q "do not reach" "$out"
run_options=--ring go_right "... without an aggregator" 4 --rounds 20 --max 100000
net p2 mtu 1500
net ps1 mtu 1400
go_right "large packets vanish at the aggregator's link" 4 --rounds 20 --max 100000
check "... fragments of $(payload) bytes pass" lower
down

# --- jumbo hosts behind a bridge that is not
up $name --hosts 4 --servers 1 --link 1gbit --mtu 9000
for port in p1 p2 p3 p4 ps1; do
	net $port mtu 1500
done
go_right "hosts at 9000, the bridge at 1500" 4 --only allreduce --rounds 20 --max 100000
check "... fragments of $(payload) bytes pass" test "$(payload)" -le "$(full 1500)" -a "$(payload)" -ge 1024
run_options=--ring go_right "... without an aggregator" 4 --rounds 20 --max 100000
down

# --- hosts and their links differ in the other direction, too: what h3 sends is small
up $name --hosts 4 --servers 1 --switch --link 1gbit --mtu 9000
on h3 ip link set eth0 mtu 1500
sizes "MTU 9000, but 1500 on h3" "$(full 1500)"
done_checking
