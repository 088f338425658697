#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Trees that sum in the kernel: the same bits as one star in user space, with all faults and in all shapes, and
# counters that prove that it was the kernel. Usage: test_xdp_tree.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_tree.sh"
start "$@"
need_xdp
export TRIB_COOKIE=0000000000007ee6
name=tk$$
mixed=(--rounds 60 --seed 7 --max 30000 --split)
sums=(--rounds 40 --seed 8 --max 300000 --only allreduce)

# by_kernel HOST PERCENT: of the sums that went up from there and of the results that came down, so
# much at least was the kernel's, and nothing of it was given up.
by_kernel() {
	local log=$work/tribd.$1 what kernel all
	for what in raised lowered; do
		kernel=$(counter kernel_$what "$log") all=$(counter $what "$log")
		check "... ${kernel:-0} of ${all:-0} were $what in the kernel of $1" \
			test "${all:-0}" -gt 500 -a $((${kernel:-0} * 100)) -ge $((${all:-1} * $2))
	done
	check "... and nothing of $1 left the kernel" test -z "$(grep -o 'user space.*' "$log")"
}

# --- without faults: a star in user space says what the bits have to be
up $name --hosts 6 --servers 4 --link 200mbit
tribd_options='--plane udp' tribd_on s1
tree_right "a star, udp" 's1(0-5)' 6 "${mixed[@]}"
digests "$out" >"$work/mixed"
tree_right "a star, udp, sums" 's1(0-5)' 6 "${sums[@]}"
digests "$out" >"$work/sums"
end_tribds

hold_frames
tribd_options='--plane xdp' tribd_on s1 s2 s3 s4
tree_right "two levels" "$two" 6 "${mixed[@]}"
check "... bitwise as in a star" same_digests "$work/mixed"
tree_right "two levels, sums" "$two" 6 "${sums[@]}"
check "... bitwise as in a star" same_digests "$work/sums"
tree_right "three levels" "$three" 6 "${mixed[@]}"
check "... bitwise as in a star" same_digests "$work/mixed"
run_options='--lanes 2 --pool 100K' tree_right "two lanes, a small pool" "$three" 6 "${mixed[@]}"
check "... bitwise as in a star" same_digests "$work/mixed"
TRIB_MULTICAST=off tree_right "no multicast to workers" "$three" 6 "${sums[@]}"
check "... bitwise as in a star" same_digests "$work/sums"
s2_explains() { on s2 "$trib" explain --aggregator "$(at_host s2)" 2>&1 | grep -q "$1"; }
TRIB_TREES=$(tree_of "$two") "$trib" run -n 6 --net "$cluster" --timeout 30 -- \
	"$worker" --rounds 100000 --max 100000 --mark "$work/mark" >"$work/asked" 2>&1 &
asked=$!
wait_for 20 all_marked 6
check "trib explain says that the kernel sums, and to whom sums go" \
	wait_for 10 s2_explains "sums go up to $(at_host s1); the kernel sums all"
{ kill $asked && wait $asked; } 2>/dev/null
end_tribds
for host in s2 s3 s4; do
	by_kernel $host 60
	in_kernel 75 "$work/tribd.$host"
done
in_kernel 90 "$work/tribd.s1"

# --- another plane above or below: the wire is the same
tribd_options='--plane udp' tribd_on s1 s4
tribd_options='--plane xdp' tribd_on s2 s3
tree_right "between aggregators in user space" "$three" 6 "${mixed[@]}"
check "... bitwise as in a star" same_digests "$work/mixed"
end_tribds
by_kernel s3 50
down

# --- IPv6, to a parent in user space: what XDP sends has no UDP checksum
up $name --hosts 6 --servers 4 --link 200mbit
hold_frames
n=0
for host in h1 h2 h3 h4 h5 h6 s1 s2 s3; do
	n=$((n + 1))
	on $host sysctl -qw net.ipv6.conf.eth0.disable_ipv6=0
	on $host ip -6 addr add fd00:8::$n/64 dev eth0 nodad
	six[$host]=fd00:8::$n
done
tribd_options='--plane udp' tribd_on s1
tree_right "IPv6, a star" 's1(0-5)' 6 "${sums[@]}" # its blocks are shorter, so it has bits of its own
digests "$out" >"$work/six"
tribd_options='--plane xdp' tribd_on s2 s3
tree_right "IPv6" "$two" 6 "${sums[@]}"
check "... bitwise as in a star" same_digests "$work/six"
end_tribds
by_kernel s2 50
six=()
down

# --- what XDP sends arrives nowhere: noticed, and exact
up $name --hosts 6 --servers 4 --link 200mbit
tribd_options='--plane xdp' tribd_on s1 s2 s3
tree_right "frames that do not arrive" "$two" 6 "${sums[@]}"
check "... bitwise as in a star" same_digests "$work/sums"
end_tribds
check "... which is noticed on the way up" \
	grep -q "go up from user space: .* sent through interface eth0 did not reach the aggregator at $(at_host s1)" \
	"$work/tribd.s2"
check "... and down" grep -q 'user space: rank .* interface eth0 does not reach it' "$work/tribd.s2"
down

# --- every fault
need_faults
up $name --hosts 6 --servers 4 --link 200mbit --loss 0.1 --dup 0.05 --reorder 0.05 --corrupt 0.01 --seed 3
hold_frames
tribd_options='--plane xdp' tribd_on s1 s2 s3 s4
tree_right "all faults, two levels" "$two" 6 "${mixed[@]}"
check "... bitwise as in a star" same_digests "$work/mixed"
tree_right "all faults, three levels" "$three" 6 "${mixed[@]}"
check "... bitwise as in a star" same_digests "$work/mixed"
tree_right "all faults, sums" "$two" 6 "${sums[@]}"
check "... bitwise as in a star" same_digests "$work/sums"
for only in reduce reduce_scatter broadcast; do
	run_options='--pool 100K' tree_right "all faults, $only, a small pool" "$three" 6 \
		--only $only --rounds 30 --seed 112 --max 30000
done
end_tribds
for host in s2 s3; do
	by_kernel $host 50
	in_kernel 75 "$work/tribd.$host"
	check "... $(counter checksum "$work/tribd.$host") corrupt packets at $host" \
		test "$(counter checksum "$work/tribd.$host")" -gt 5
done
down

# --- a switch in the middle: what its parent sends to others passes through it
up $name --hosts 6 --servers 1 --switch
hold_frames
tribd_options='--plane xdp' tribd_on s1
tribd_options='--plane udp' tribd_on h1 h2
tree_right "a switch below a host" "h1(s1(0-2),h2(3-5))" 6 "${sums[@]}"
check "... bitwise as in a star" same_digests "$work/sums"
tree_right "... and everything" "h1(s1(0-2),h2(3-5))" 6 "${mixed[@]}"
check "... bitwise as in a star" same_digests "$work/mixed"
end_tribds
by_kernel s1 50
down
done_checking
