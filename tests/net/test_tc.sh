#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Small vectors in the kernel at tc: exact, without a program at the other ends of links, offloads stay, and nothing is
# left behind. Usage: test_tc.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
need_xdp
kernel_is 6 6 || skip "the hook tc needs Linux 6.6"
export TRIB_COOKIE=0000000000000071
a=tt$$
packet=(--rounds 200 --max 150 --only allreduce --seed 71) # up to 1200 bytes: one packet each
mixed=(--rounds 40 --max 14000 --split --seed 72)

explains() { on s1 "$trib" explain --aggregator "$at" | grep -q "$1"; }
segments() { on h1 ethtool -k eth0 | grep -q "^tcp-segmentation-offload: $1"; } # on|off
programs() { bpftool prog show name find_lane | grep -c sched_cls; }
no_programs() { [ "$(programs)" = 0 ]; }

# works WHAT N: ranks that know nothing of the plane, at $at.
works() {
	go -n "$2" --net $a --aggregator "$at" --plane udp --timeout 30 -- "$worker" "${packet[@]}"
	check "$1: exact on all ranks" right "$2"
	check "... the same bits" same_digests "$work/packet.$2"
	go -n "$2" --net $a --aggregator "$at" --plane udp --timeout 30 -- "$worker" "${mixed[@]}"
	check "$1, vectors of all sizes: exact on all ranks" right "$2"
	check "... the same bits" same_digests "$work/mixed.$2"
}

# kernel_made PERCENT: so many of the results of small vectors left from the kernel.
kernel_made() {
	local kernel all
	kernel=$(counter kernel_results "$work/tribd") all=$(counter results "$work/tribd")
	check "... ${kernel:-0} of ${all:-0} results left from the kernel" \
		test "${kernel:-0}" -gt 0 -a $((${kernel:-0} * 100)) -ge $((${all:-1} * $1))
}

expect() { # N: what the bits have to be
	TRIB_ENGINE=dense go_right "dense, in user space, one packet" "$1" "${packet[@]}"
	digests "$out" >"$work/packet.$1"
	TRIB_ENGINE=dense go_right "dense, in user space, all sizes" "$1" "${mixed[@]}"
	digests "$out" >"$work/mixed.$1"
}

for shape in server switch; do
	options=()
	[ $shape = server ] || options=(--switch)
	up $a --hosts 4 --servers 1 "${options[@]}"
	[ $shape = switch ] || { expect 4 && expect 2; }
	aggregator s1 --plane tc && aggregator_ready
	check "$shape: trib explain names the hook" explains 'vectors of one packet in the kernel'
	check "... offloads stay" segments on
	go -n 4 --net $a --aggregator "$at" --plane udp --timeout 30 -- "$worker" "${packet[@]}"
	check "... exact on all ranks" right 4
	end_aggregator
	# Until the routes to all ranks are known, and on a busy machine, the daemon sums a part.
	kernel_made 60
	aggregator s1 --plane tc && aggregator_ready
	for n in 2 4; do
		works "$shape, $n ranks" $n
	done
	end_aggregator
	down
done

# --- packets one by one, as from a network card; and xdp, which takes offloads away, so that the check above can fail
up $a --hosts 4 --servers 1 --no-offload
aggregator s1 --plane tc && aggregator_ready
works "no offloads" 4
end_aggregator
kernel_made 20
aggregator s1 --plane xdp && aggregator_ready
check "xdp takes offloads away" segments off
end_aggregator
down

# --- faults
up $a --hosts 4 --servers 1 --link 200mbit --loss 0.1 --dup 0.05 --reorder 0.05 --corrupt 0.01 --seed 2
aggregator s1 --plane tc && aggregator_ready
works "faults" 4
end_aggregator
check "... $(counter checksum "$work/tribd") packets were corrupt" test "$(counter checksum "$work/tribd")" -gt 0
kernel_made 5

# --- beside a program of somebody else, and after SIGKILL
for signal in TERM KILL; do
	aggregator s1 --plane tc && aggregator_ready
	check "a program is loaded" test "$(programs)" -ge 1
	kill -$signal "$aggregator"
	wait "$aggregator" 2>/dev/null
	check "... and none after SIG$signal" wait_for 20 no_programs
done
down

# --- two tribd on one host: their programs pass on what is not theirs
up $a --hosts 4 --servers 1
port=7800 aggregator s1 --plane tc && aggregator_ready
first=$aggregator
cp "$work/tribd" "$work/first"
port=7700 aggregator s1 --plane tc && aggregator_ready
works "two daemons" 4
end_aggregator
kernel_made 10
aggregator=$first at=$(address s1):7800
works "the other daemon" 4
kill -TERM "$first"
wait "$first"
down

# --- without rights
up $a --hosts 2 --servers 1
at=$(address s1):7700
: >"$work/tribd"
"$trib" net exec --name $a s1 -- setpriv --reuid 65534 --clear-groups --inh-caps=-all --bounding-set=-all \
	"$tribd" --open --listen "$at" --plane tc >"$work/tribd" 2>&1 &
aggregator=$!
aggregator_ready
check "without rights tribd says so" grep -q 'plane udp: tc was asked for, but no right to load BPF programs' "$work/tribd"
works "... and sums in user space" 2
end_aggregator
done_checking
