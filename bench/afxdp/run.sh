#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where to add, and how to receive: XDP, AF_XDP and UDP sockets on a veth. Prints a table, and
# leaves every run as a line of JSON in OUT. Root; needs clang, libbpf, ethtool, python3.
#
#   bench/afxdp/run.sh [all|add|worker|nic|ROW...]   REPEATS=3 SECONDS_EACH=2 OUT=DIR
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-/tmp/afxdp}
repeats=${REPEATS:-3}
seconds=${SECONDS_EACH:-2}
rate=${RATE:-200000}
tx=trib-afxdp-tx
rx=trib-afxdp-rx
mkdir -p "$out"
cc_arch=$(uname -m)-linux-gnu

# row: name | GRO at the receiver | GSO at the sender's device | options
# "nic-": frames without a socket buffer each, as a NIC's driver has them (send_frames.c).
rows_add='
xdp-drop       |off|off|-r xdp-drop
xdp-words      |off|off|-r xdp-words
xdp-pairs      |off|off|-r xdp-pairs
afxdp          |off|off|-r afxdp
afxdp-generic  |off|off|-r afxdp-generic
udp            |off|off|-r udp
udp-napi       |on |off|-r udp-napi
udp-gro-off    |off|off|-r udp-gro
udp-gro        |on |off|-r udp-gro-napi
udp-gro-whole  |on |on |-r udp-gro -g
xdp-defer      |off|off|-d -r xdp-words
afxdp-defer    |off|off|-d -r afxdp
udp-napi-defer |on |off|-d -r udp-napi
udp-gro-defer  |on |off|-d -r udp-gro-napi'
rows_worker='
afxdp-floats   |off|off|-r afxdp -w floats
udp-floats     |off|off|-r udp -w floats
udp-napi-floats|on |off|-r udp-napi -w floats
udp-gro-floats |on |off|-r udp-gro-napi -w floats'
rows_nic='
nic-xdp-drop   |off|off|-f -r xdp-drop
nic-xdp-words  |off|off|-f -r xdp-words
nic-xdp-pairs  |off|off|-f -r xdp-pairs
nic-xdp-cached |off|off|-f -r xdp-pairs -c 512
nic-afxdp      |off|off|-f -r afxdp
nic-afxdp-cache|off|off|-f -r afxdp -c 512
nic-afxdp-float|off|off|-f -r afxdp -w floats
nic-udp        |off|off|-f -r udp-frames
nic-udp-floats |off|off|-f -r udp-frames -w floats
nic-gro        |on |off|-f -r udp-gro-frames
nic-gro-floats |on |off|-f -r udp-gro-frames -w floats'
rows_all=$rows_add$rows_worker$rows_nic

build() {
	clang -g -O2 -target bpf -mcpu=v3 -I"$here" -I"$here/../../src" -I"/usr/include/$cc_arch" \
		-c "$here/sum.bpf.c" -o "$out/sum.bpf.o"
	gcc -O3 -g -Wall -Wextra -I"$here" -I"$here/../../src" "$here"/main.c "$here"/send.c "$here"/send_frames.c \
		"$here"/recv_{xdp,afxdp,udp}.c -o "$out/afxdp" -lbpf -lpthread
}

network_down() {
	ip netns del $tx 2>/dev/null || true
	ip netns del $rx 2>/dev/null || true
	rm -f "$out/BUSY"
}

network_up() {
	network_down
	ip netns add $tx
	ip netns add $rx
	ip -n $tx link add trib-tx numtxqueues 1 numrxqueues 1 type veth \
		peer name trib-rx numtxqueues 1 numrxqueues 1 netns $rx
	ip -n $tx addr add 10.77.0.1/24 dev trib-tx
	ip -n $rx addr add 10.77.0.2/24 dev trib-rx
	ip -n $tx link set trib-tx up
	ip -n $rx link set trib-rx up
	ip -n $tx neigh replace 10.77.0.2 dev trib-tx nud permanent \
		lladdr "$(ip -n $rx -br link show trib-rx | awk '{print $3}')"
	ip netns exec $rx ethtool -K trib-rx gso off tso off gro off
	# Without a NAPI, packets reach core 1 by RPS.
	ip netns exec $rx sh -c 'echo 2 > /sys/class/net/trib-rx/queues/rx-0/rps_cpus'
}

idle() { awk '/^cpu[01] / { s += $5 + $6 } END { print s }' /proc/stat; }

# A shared machine: wait until both cores have been idle for a moment.
wait_for_quiet() {
	local a b
	for _ in $(seq 100); do
		a=$(idle); sleep 0.3; b=$(idle)
		[ $((b - a)) -ge 56 ] && return
	done
	echo "not quiet after 30 s; measuring all the same" >&2
}

measure() { # row load options
	local name=$1 gro=$2 gso=$3 load=$4 line; shift 4
	ip netns exec $rx ethtool -K trib-rx gro "$gro"
	ip netns exec $tx ethtool -K trib-tx gso "$gso" tx-udp-segmentation "$gso" tso off gro off
	for _ in $(seq 5); do
		wait_for_quiet
		touch "$out/BUSY"
		line=$(ip netns exec $rx timeout 20 "$out/afxdp" -t "$seconds" "$@") || true
		rm -f "$out/BUSY"
		[ -n "$line" ] || { echo "$name: failed" >&2; return; }
		line="{\"row\":\"$name\",\"load\":\"$load\",${line#\{}"
		if python3 -c 'import json,sys; j = json.loads(sys.argv[1]); sys.exit(j["others"] > .03 or j["forks"] > 10)' "$line"; then
			echo "$line" >> "$out/runs.json"
			return
		fi
	done
	echo "$name $load: disturbed five times, left out" >&2
}

[ $# -gt 0 ] || set -- all
rows=
for want; do
	case $want in
	all) rows+=$rows_all ;;
	add) rows+=$rows_add ;;
	worker) rows+=$rows_worker ;;
	nic) rows+=$rows_nic ;;
	*) rows+=$'\n'$(grep "^$want *|" <<<"$rows_all") ;;
	esac
done

trap network_down EXIT
build
network_up
: > "$out/runs.json"
for _ in $(seq "$repeats"); do
	while IFS='|' read -r name gro gso options; do
		[ -n "$name" ] || continue
		name=${name// /}
		case $options in
		-f*xdp-[dwp]*) loads='flood rate' ;;
		-f*) loads='flood window rate' ;;
		*-g | *floats | *afxdp-generic) loads='window rate' ;;
		*) loads=${LOADS:-window segments rate} ;;
		esac
		for load in $loads; do
			case $load in
			flood) more= ;;
			window) more='-W 192' ;;
			segments) more='-W 192 -g' ;;
			rate) more="-p $rate" ;;
			esac
			# shellcheck disable=SC2086
			measure "$name" ${gro// /} ${gso// /} $load $options $more
		done
	done <<<"$rows"
done
python3 "$here/table.py" "$out/runs.json"
