#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The XDP program leaves interfaces where what it sends does not arrive: ports of a bridge whose other ends have no
# program. tribd then sums as with --plane udp: no program slows the links down, and results leave in batches.
# Usage: test_xdp_leave.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
need_xdp
export TRIB_COOKIE=1eaf1eaf1eaf1eaf
a=tv$$
long=(--rounds 30 --max 1000000 --seed 9)

programs() { # how many ports of s1 have one; nothing if s1 cannot be asked
	local links
	links=$(on s1 ip link) && grep -c 'prog/xdp' <<<"$links"
}
has_programs() { [ "$(programs)" = "$1" ]; }
explains() { on s1 "$trib" explain --aggregator "$at" >"$work/explain" 2>&1 && grep -q "$1" "$work/explain"; }
job() { go -n 3 --net $a --aggregator "$at" --plane udp --timeout 20 -- "$worker" "$@"; }
now() { on s1 "$trib" explain --json --aggregator "$at" | grep -o "\"$1\":[0-9]*" | head -n 1 | cut -d: -f2; }

# batches WHAT SENDS MESSAGES: do messages carry at least three results on average?
batches() {
	check "$1: $2 results left in $3 messages" test "${3:-0}" -gt 0 -a "${2:-0}" -ge $((3 * ${3:-1}))
}

up $a --hosts 3 --servers 1 --switch
aggregator s1 --plane udp && aggregator_ready
job "${long[@]}"
check "udp: exact on all ranks" right 3
digests "$out" >"$work/expected"
end_aggregator
batches "udp" "$(counter sends "$work/tribd")" "$(counter messages "$work/tribd")"

# --- no other end has a program
aggregator s1 --plane xdp && aggregator_ready
check "a program on every port" has_programs 3
job "${long[@]}"
check "results from XDP do not arrive: exact on all ranks" right 3
check "... the same bits" same_digests "$work/expected"
check "... no port has a program any more" wait_for 20 has_programs 0
check "... trib explain says where it sums" wait_for 20 explains 'user space (udp: XDP was asked for, but'
check "... and why" grep -q 'p1: not any more: what XDP sends through p[1-3] does not reach rank [0-2]' "$work/explain"
batches "... user space sent the repeats" "$(($(now sends) - $(now kernel_results)))" "$(now messages)"

kernel=$(now kernel_payload_bytes) sends=$(now sends) messages=$(now messages)
job "${long[@]}"
check "the next job: exact on all ranks" right 3
check "... the same bits" same_digests "$work/expected"
check "... the kernel added nothing" test "$(now kernel_payload_bytes)" = "${kernel:-0}"
batches "..." "$(($(now sends) - sends))" "$(($(now messages) - messages))"
end_aggregator

# --- small vectors alone: the slot lanes notice it, too
aggregator s1 --plane xdp && aggregator_ready
job --rounds 1000000 --max 1000 --seed 6 --until "$work/enough" &
small=$!
check "small vectors: no port has a program any more" wait_for 30 has_programs 0
touch "$work/enough"
wait $small
out=$work/out
check "... exact on all ranks" right 3
check "... trib explain says why" wait_for 20 explains 'p1: not any more: what XDP sends through p[1-3] does not reach'
end_aggregator

# --- the other ends of two ports have one
takes_frames() { on "$1" ip link set dev eth0 xdp obj "$build/src/net/pass.bpf.o" sec xdp 2>"$work/other"; }
if takes_frames h1 && takes_frames h2; then
	aggregator s1 --plane xdp && aggregator_ready
	job "${long[@]}"
	check "one of three ranks is not reached: exact on all ranks" right 3
	check "... its port has no program any more" wait_for 20 explains 'p3: not any more: what XDP sends through p3'
	check "... the others do ($(programs))" wait_for 20 has_programs 2
	job "${long[@]}"
	check "... the next job: exact on all ranks" right 3
	check "... the same bits" same_digests "$work/expected"
	end_aggregator
else
	omit "ip takes no XDP program here: $(tail -n 1 "$work/other")"
fi
down
done_checking
