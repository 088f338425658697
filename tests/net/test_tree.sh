#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Trees of aggregators: exact with every fault, the same bits as one star, and errors that name a death at any
# place of the tree. TRIB_PLANE chooses the plane. Usage: test_tree.sh PATH_TO_TRIB [deaths]
# deaths: only the errors, not the sums.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_tree.sh"
need_clusters "$@"
start "$@"
export TRIB_COOKIE=0000000000007ee5
name=tt$$
pids=()

# What aggregators send from the kernel arrives.
let_frames() { [ "${TRIB_PLANE:-udp}" != xdp ] || hold_frames; }

mixed=(--rounds 60 --seed 7 --max 30000)

# sums_without_faults: a star says what the bits have to be
sums_without_faults() {
	up $name --hosts 6 --servers 4 --link 200mbit
	let_frames
	tribd_on s1 s2 s3 s4
	tree_right "a star" 's1(0-5)' 6 "${mixed[@]}" --split
	digests "$out" >"$work/expected"
	tree_right "two levels" "$two" 6 "${mixed[@]}" --split
	check "... bitwise as in a star" same_digests "$work/expected"
	tree_right "three levels" "$three" 6 "${mixed[@]}" --split
	check "... bitwise as in a star" same_digests "$work/expected"
	run_options='--lanes 2 --pool 100K' tree_right "two lanes, a small pool" "$three" 6 "${mixed[@]}" --split
	check "... bitwise as in a star" same_digests "$work/expected"
	TRIB_MULTICAST=off tree_right "no multicast to workers" "$three" 6 "${mixed[@]}" --split
	check "... bitwise as in a star" same_digests "$work/expected"
	end_tribds
	check "sums went up from s2" test "$(counter raised "$work/tribd.s2")" -gt 500
	check "results came down to s4" test "$(counter lowered "$work/tribd.s4")" -gt 500
	down
}

# sums_with_faults: every fault
sums_with_faults() {
	local all=(--loss 0.1 --dup 0.05 --reorder 0.05 --corrupt 0.01)
	need_faults
	up $name --hosts 6 --servers 4 --link 200mbit "${all[@]}" --seed 3
	let_frames
	tribd_on s1 s2 s3 s4
	tree_right "all faults, two levels" "$two" 6 "${mixed[@]}" --split
	check "... bitwise as in a star" same_digests "$work/expected"
	tree_right "all faults, three levels" "$three" 6 "${mixed[@]}" --split
	check "... bitwise as in a star" same_digests "$work/expected"
	for only in reduce reduce_scatter broadcast; do
		run_options='--pool 100K' tree_right "all faults, $only, a small pool" "$three" 6 \
			--only $only --rounds 30 --seed 112 --max 30000
	done
	[ "${TRIB_PLANE:-udp}" = tcp ] || check "$(faults lost) packets lost" test "$(faults lost)" -gt 1000
	end_tribds
	down
}

if [ "${2:-all}" != deaths ]; then
	sums_without_faults
	sums_with_faults
fi

# --- deaths. Workers run one by one, so that each can be looked at.
export TRIB_SIZE=6 TRIB_TIMEOUT=5
up $name --hosts 6 --servers 4 --link 200mbit
let_frames
endless=(--rounds 1000000 --max 100000)

workers() { # SHAPE RANKS WORKER_ARG...
	local shape=$1 ranks=$2 rank tree
	shift 2
	tree=$(tree_of "$shape")
	rm -f "$work"/rank.* "$work"/mark.*
	pids=()
	for rank in $ranks; do
		TRIB_RANK=$rank TRIB_TREES=$tree "$trib" net exec --name "$cluster" "h$((rank + 1))" -- \
			"$worker" --mark "$work/mark" --linger 2 "$@" >"$work/rank.$rank" 2>&1 &
		pids[rank]=$!
	done
}

all_said() {
	local rank
	for rank in $1; do
		grep -q ' error ' "$work/rank.$rank" || return 1
	done
}

errors() { # WHAT RANKS STATUS WORDS
	local what=$1 ranks=$2 status=$3 words=$4 rank
	wait_for 15 all_said "$ranks"
	for rank in $ranks; do
		check "$what: rank $rank has \"$status\" that says \"$words\"" \
			grep -Eq "error ($status)[a-z ]* after .*$words" "$work/rank.$rank" || cat "$work/rank.$rank"
	done
}

end() {
	local pid
	for pid; do
		kill -KILL "$pid"
		wait "$pid"
	done 2>/dev/null
}

begin() { # WHAT
	tribd_on s1 s2 s3 s4
	workers "$three" "0 1 2 3 4 5" "${endless[@]}"
	check "$1: all ranks are in mid-round" wait_for 20 all_marked 6 || { tail "$work"/rank.* "$work"/tribd.*; exit 1; }
}

finish_all() {
	end "${pids[@]}" "${tribds[@]}"
	tribds=()
}

begin "a worker two levels down is killed"
end "${pids[4]}"
errors "a worker two levels down is killed" "0 1 2 3 5" peer "rank 4"
finish_all

begin "a leaf is killed"
end "${tribds[s4]}"
errors "a leaf is killed" "0 1 2 3 4 5" aggregator "aggregator at $(at_host s4)"
finish_all

begin "the middle of the tree is killed"
end "${tribds[s3]}"
errors "the middle of the tree is killed" "0 1 2 3 4 5" aggregator "aggregator at $(at_host s3)"
finish_all

begin "the root is killed"
end "${tribds[s1]}"
errors "the root is killed" "0 1 2 3 4 5" aggregator "aggregator at $(at_host s1)"
finish_all

begin "a leaf hangs"
kill -STOP "${tribds[s4]}"
errors "a leaf hangs" "0 1 2 3 4 5" "aggregator|timeout" "aggregator at $(at_host s4)|rank.* 1"
kill -CONT "${tribds[s4]}"
finish_all

# --- rates: three children and a parent share each leaf's link
tribd_options='--link 200mbit' tribd_on s1 s2 s3 s4
workers "$two" "0 1 2 3 4 5" "${endless[@]}"
wait_for 20 all_marked 6
rates() { on s2 -- "$trib" top --once --json --aggregator "$(at_host s2)" | grep -o '"rate":[0-9]*' | cut -d: -f2; }
some_rates() { [ "$(rates | wc -l)" = 3 ]; }
if [ "${TRIB_PLANE:-udp}" = udp ]; then
	check "each of three children has a rate" wait_for 10 some_rates
	check "... of a quarter of the link, or less: $(rates | tr '\n' ' ')" \
		test "$(rates | sort -n | tail -n 1)" -le 50000000
fi
finish_all

# --- ranks call different things, in different subtrees
tribd_on s1 s2 s3 s4
workers "$three" "0 1 2 3 4" "${endless[@]}" --only allreduce --seed 1
first=("${pids[@]}")
TRIB_RANK=5 TRIB_TREES=$(tree_of "$three") "$trib" net exec --name "$cluster" h6 -- \
	"$worker" --only allreduce --seed 2 --linger 2 >"$work/rank.5" 2>&1 &
pids=("${first[@]}" $!)
errors "ranks call different things" "0 1 2 3 4 5" mismatch "(rank|ranks) [0-5].*(rank|ranks) [0-5]"
finish_all

# --- an aggregator or a rank that never comes
tribd_on s2 s3 s4
workers "$three" "0 1 2 3 4 5" "${endless[@]}"
errors "no root" "0 2" aggregator "aggregator at $(at_host s1)"
errors "no root, two levels up" "1 4" aggregator "aggregator at $(at_host s1)"
finish_all
tribd_on s1 s2 s3 s4
workers "$three" "0 1 2 3 5" "${endless[@]}"
errors "a rank never comes" "0 1 2 3 5" timeout "rank 4 of 6 did not join"
finish_all

# --- trees that cannot be
tribd_on s1 s2 s3 s4
workers "$two" "3 4" "${endless[@]}"
both_are_in() { on s3 -- "$trib" explain --json --aggregator "$(at_host s3)" | grep -q '"present":24,'; } # bits 3 and 4
wait_for 10 both_are_in
TRIB_RANK=5 TRIB_TREES=$(tree_of 's1(s2(0-1),s3(2-5))') on h6 -- "$worker" --rounds 1 >"$work/rank.5" 2>&1
check "another tree is refused: $(cut -c 1-300 "$work/rank.5")" grep -q "refused.*ranks 2-5 come together here" "$work/rank.5"
finish_all
done_checking
