#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Trees whose sums and results pass through the kernel: the bits of one star in user space, with all
# faults, in all shapes, and counters that say that it was the kernel: test_xdp_tree.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
need_xdp
export TRIB_COOKIE=7ee6
name=tk$$
two='s1(s2(0-2),s3(3-5))'
three='s1(s2(0,2),s3(s4(1,4),3),5)'
mixed=(--rounds 60 --seed 7 --max 30000 --split)
sums=(--rounds 40 --seed 8 --max 300000 --only allreduce)
declare -A tribds=()

# tribd_on OPTIONS HOST...: an aggregator on each; its output goes to $work/tribd.HOST.
tribd_on() {
	local options=$1 host
	shift
	for host; do
		: >"$work/tribd.$host"
		# shellcheck disable=SC2086  # options, if any
		"$trib" net exec --name "$cluster" "$host" -- "$tribd" $options \
			--listen "$(at_host "$host")" >"$work/tribd.$host" 2>&1 &
		tribds[$host]=$!
	done
	for host; do
		wait_for 10 grep -q 'ready on' "$work/tribd.$host" || { cat "$work/tribd.$host"; exit 1; }
	done
}

end_tribds() { # they write their counters
	local host
	for host in "${!tribds[@]}"; do
		kill -TERM "${tribds[$host]}"
		wait "${tribds[$host]}"
	done 2>/dev/null
	tribds=()
}

at_host() { echo "${addresses[$1]:-$(address "$1")}:7700"; }
declare -A addresses=()

# tree_right WHAT SHAPE N WORKER_ARG...: names of servers become their addresses.
tree_right() {
	local what=$1 text=$2 n=$3 host
	shift 3
	for host in s1 s2 s3 s4; do
		text=${text//$host/$(at_host $host)}
	done
	# shellcheck disable=SC2086  # options of trib run, if any
	TRIB_TREES=$text go -n "$n" --net "$cluster" --aggregator "$(at_host s1)" \
		--timeout 30 ${run_options:-} -- "$worker" "$@"
	check "$what: exact on all ranks" right "$n"
}

# by_kernel HOST PERCENT: of the sums that went up from there and of the results that came down.
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
up $name --hosts 6 --servers 4 --link 200mbit || skip "no cluster: $(cat "$work/up")"
tribd_on '--plane udp' s1
tree_right "a star, udp" 's1(0-5)' 6 "${mixed[@]}"
digests "$out" >"$work/mixed"
tree_right "a star, udp, sums" 's1(0-5)' 6 "${sums[@]}"
digests "$out" >"$work/sums"
end_tribds

hold_frames
tribd_on '--plane xdp' s1 s2 s3 s4
tree_right "two levels" "$two" 6 "${mixed[@]}"
check "... bitwise as in a star" same_digests "$work/mixed"
tree_right "two levels, sums" "$two" 6 "${sums[@]}"
check "... bitwise as in a star" same_digests "$work/sums"
tree_right "three levels" "$three" 6 "${mixed[@]}"
check "... bitwise as in a star" same_digests "$work/mixed"
end_tribds
for host in s2 s3 s4; do
	by_kernel $host 85
	in_kernel 90 "$work/tribd.$host"
done
in_kernel 90 "$work/tribd.s1"
down
done_checking
