#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sums in the kernel, end to end: the same bits as in user space, in all shapes, with faults, for
# several jobs, beside other traffic, by IPv6 and in a VLAN: test_xdp.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
need_xdp
a=tx$$
export TRIB_COOKIE=000000000000cafe
mixed=(--rounds 40 --max 50000 --split)
sums=(--rounds 30 --max 200000 --only allreduce)

# --- what the bits have to be, from user space
up $a --hosts 4 --servers 1 --switch
run_options='--plane udp'
go_right "udp" 4 "${mixed[@]}" --seed 31
digests "$out" >"$work/mixed"
go_right "udp, sums" 4 "${sums[@]}" --seed 32
digests "$out" >"$work/sums"
check "... which the kernel has no part in" test -z "$(counter kernel_results)"

# --- a switch: one port a worker
run_options='--plane xdp'
go_right "a switch" 4 "${mixed[@]}" --seed 31
check "... bitwise as in user space" same_digests "$work/mixed"
in_kernel 90
by_queue 50
run_options='--plane xdp --lanes 3 --pool 120K'
go_right "3 lanes, a small pool" 4 "${sums[@]}" --seed 32
check "... bitwise as in user space" same_digests "$work/sums"
in_kernel 90
run_options='--plane xdp --lanes 4'
TRIB_MULTICAST=off go_right "4 lanes, no multicast" 4 "${sums[@]}" --seed 32
check "... bitwise as in user space" same_digests "$work/sums"
run_options='--plane xdp'
go_right "6 ranks on 4 hosts" 6 --rounds 20 --max 30000 --seed 37
in_kernel 90
go_right "2 ranks" 2 "${mixed[@]}" --seed 38
go_right "1 rank" 1 --rounds 20 --seed 39 # which needs no aggregator

# --- other traffic through the same ports
beside() {
	local server traffic code
	"$trib" net exec --name $a s1 python3 "$(dirname "$0")/traffic.py" serve "$(address s1)" >"$work/serve" 2>&1 &
	server=$!
	wait_for 10 grep -qs ready "$work/serve"
	on h1 python3 "$(dirname "$0")/traffic.py" go "$(address s1)" 2 >"$work/traffic" 2>&1 &
	traffic=$!
	go_right "beside other traffic" 4 --rounds 400 --max 100000 --seed 40
	in_kernel 90
	wait $traffic
	code=$?
	check "... which has arrived: $(tail -n 1 "$work/traffic")" test $code = 0
	{ kill $server && wait $server; } 2>/dev/null
}
if command -v python3 >/dev/null; then
	beside
else
	omit "python3 is not installed, and makes the other traffic"
fi
down

# --- several jobs at one aggregator, which come and go
maps() { find "/proc/$aggregator/fd" -lname '*bpf-map' | wc -l; }
pools() { on s1 "$trib" explain --json --aggregator "$at" | grep -o '"kernel_pools":[0-9]*' | cut -d: -f2; }
has_pools() { [ "$(pools)" -ge "$1" ]; }
job() { # JOB N WORKER_ARG...
	local job=$1 n=$2
	shift 2
	TRIB_JOB=$job timeout 60 "$trib" run -n "$n" --net $a --aggregator "$at" --plane xdp \
		--timeout 30 --lanes $((job % 3 + 1)) --pool $((job * 100))K -- "$worker" "$@" >"$work/job.$job" 2>&1
}
job_right() {
	out=$work/job.$1
	check "job $1 of several: exact on all ranks" right "$2"
	out=$work/tribd
}
no_pools() { [ "$(pools)" = 0 ]; }
up $a --hosts 4 --servers 1
hold_frames

aggregator s1 --plane xdp && aggregator_ready
job 4 2 --rounds 2 --max 10
check "the first job loads the slot engine's program, which stays" wait_for 10 no_pools
before=$(maps)
job 5 4 --rounds 400 --max 50000 --seed 5 &
long=$!
job 6 4 --rounds 60 --max 50000 --seed 6 &
short=$!
check "a job has a pool in the kernel for each lane" wait_for 20 has_pools 4
on s1 "$trib" explain --aggregator "$at"
job 7 3 "${mixed[@]}" --seed 7
wait $short
job 8 2 "${mixed[@]}" --seed 8
job 9 8 --rounds 10 --max 20000 --seed 9
wait $long
for n in "5 4" "6 4" "7 3" "8 2" "9 8"; do
	# shellcheck disable=SC2086
	job_right $n
done
check "pools go when their jobs end" wait_for 10 no_pools
check "... and the kernel's maps with them" test "$(maps)" = "$before"
explain_has() { on s1 "$trib" explain --aggregator "$at" >"$work/explain" 2>&1 && grep -q "$1" "$work/explain"; }
json() { on s1 "$trib" explain --json --aggregator "$at" | python3 -c 'import json, sys; json.load(sys.stdin)'; }
if command -v python3 >/dev/null; then
	check "trib explain --json is JSON" json
fi
check "trib explain says that it is in the kernel" explain_has "eth0: in the driver"
end_aggregator
in_kernel 95 "$work/tribd"
check "nothing of them left the kernel" test -z "$(grep -o 'user space.*' "$work/tribd")"
down

# --- faults: on a bridge they are on both ways
up $a --hosts 4 --servers 1 --link 200mbit --loss 0.1 --dup 0.05 --reorder 0.05 --corrupt 0.02 --seed 1
go_right "all faults" 4 "${mixed[@]}" --seed 31
check "... bitwise as in user space" same_digests "$work/mixed"
# Repeats that need an answer are left to the daemon, and with them parts of sums.
in_kernel 70
check "the kernel counted $(counter checksum) corrupt packets" test "$(counter checksum)" -gt 5
run_options='--plane xdp --pool 100K --lanes 2'
for only in reduce reduce_scatter; do
	go_right "all faults, $only, a small pool" 4 --only $only --rounds 30 --seed 112 --max 30000
done
down
run_options='--plane xdp'
up $a --hosts 8 --servers 1 --switch --loss 0.05 --corrupt 0.01 --seed 3
go_right "8 hosts, losses" 8 --rounds 30 --max 50000 --seed 71
in_kernel 90
down

# --- IPv6: what XDP sends has no UDP checksum
# six SHAPE [OPTION OF TRIB NET UP]
six() {
	local shape=$1 n=0 host device plane
	shift
	up $a --hosts 3 --servers 1 "$@"
	hold_frames
	for host in h1 h2 h3 s1; do
		n=$((n + 1)) device=eth0
		[ "$host $shape" != "s1 switch" ] || device=br0
		on $host sysctl -qw net.ipv6.conf.$device.disable_ipv6=0
		on $host ip -6 addr add fd00:7::$n/64 dev $device nodad
	done
	for plane in udp xdp; do
		listen='[fd00:7::4]:7700' aggregator s1 --plane $plane
		aggregator_ready
		go -n 3 --net $a --plane $plane --aggregator "$at" --timeout 30 -- "$worker" "${mixed[@]}" --seed 81
		check "IPv6, a $shape, $plane: exact on all ranks" right 3
		[ $plane = udp ] && digests "$out" >"$work/six"
		check "... the same bits" same_digests "$work/six"
		end_aggregator
	done
	in_kernel 95 "$work/tribd"
	by_queue 50 "$work/tribd"
	check "... and results are heard" test -z "$(grep -o 'user space.*' "$work/tribd")"
	down
}
six switch --switch
six server

# --- a VLAN: XDP sees the tag only if it is in the frame
no_offload() {
	local host
	for host in h1 h2 h3 s1; do
		on $host ethtool -K eth0 txvlan off >/dev/null
	done
	for host in 1 2 3 s1; do
		ip netns exec $a-net ethtool -K p$host txvlan off >/dev/null
	done
}
# vlan WHAT LISTEN TRIBD_OPTION...
vlan() {
	local what=$1 listen=$2
	shift 2
	aggregator s1 --plane xdp "$@"
	aggregator_ready
	go -n 3 --net $a --plane xdp --aggregator "$at" --timeout 30 -- "$worker" "${mixed[@]}" --seed 81
	check "$what: exact on all ranks" right 3
	check "... the same bits" same_digests "$work/vlan"
	end_aggregator
}
up $a --hosts 3 --servers 1
run_options='--plane udp' go_right "udp" 3 "${mixed[@]}" --seed 81
digests "$out" >"$work/vlan"
hold_frames
n=0
for host in h1 h2 h3 s1; do
	n=$((n + 1))
	on $host ip link add link eth0 name eth0.7 type vlan id 7 2>/dev/null || break
	on $host ip addr add 10.77.0.$n/24 dev eth0.7
	on $host ip link set eth0.7 up
done
if on s1 ip link show eth0.7 >/dev/null 2>&1; then
	vlan "a VLAN, the program on its interface" 10.77.0.4:7700
	check "... which has generic mode only" grep -q 'eth0.7 (generic mode' "$work/tribd"
	vlan "a VLAN whose tags XDP does not see" 10.77.0.4:7700 --interface eth0
	no_offload
	vlan "a VLAN, the program below it" 10.77.0.4:7700 --interface eth0
	in_kernel 95 "$work/tribd"
else
	echo "this kernel has no 8021q: tags are put on by programs"
fi
down
up $a --hosts 3 --servers 1
hold_frames
tags() { # HOST
	on "$1" tc qdisc add dev eth0 clsact &&
		on "$1" tc filter add dev eth0 egress bpf da obj "$build/tests/net/tag.bpf.o" sec tc_on &&
		on "$1" tc filter add dev eth0 ingress bpf da obj "$build/tests/net/tag.bpf.o" sec tc_off
}
if command -v tc >/dev/null; then
	check "frames are tagged" eval 'tags h1 && tags h2 && tags h3 && tags s1'
	vlan "frames whose tags XDP does not see" "$(address s1):7700"
	check "... so that results go astray, which is noticed" \
		grep -q 'user space: rank .* interface eth0 does not reach it' "$work/tribd"
	no_offload
	vlan "tagged frames" "$(address s1):7700"
	in_kernel 95 "$work/tribd"
	by_queue 50 "$work/tribd"
	check "... and results are heard" test -z "$(grep -o 'user space.*' "$work/tribd")"
else
	omit "tc is not installed (package iproute2), and makes tags"
fi
down
done_checking
