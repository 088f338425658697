#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The check queue of the XDP plane, end to end: reports come by it and not by the sockets; where it
# is full, or there is none, they come by those, and nothing is lost: test_xdp_queue.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
need_xdp
export TRIB_COOKIE=0000000000009e0e
a=tq$$
mixed=(--rounds 40 --max 50000 --split)

# works WHAT: three ranks, with the bits that they have to have.
works() {
	go -n 3 --net $a --plane xdp --aggregator "$at" --timeout 30 -- "$worker" "${mixed[@]}" --seed 31
	check "$1: exact on all ranks" right 3
	check "... the same bits" same_digests "$work/expected"
}
up $a --hosts 3 --servers 1 --switch
go_right "udp" 3 "${mixed[@]}" --seed 31
digests "$out" >"$work/expected"
hold_frames

# --- as it is
aggregator s1 --plane xdp && aggregator_ready
works "a queue"
explains() { on s1 "$trib" explain --json --aggregator "$at" | grep -q "$1"; }
check "... of which trib explain --json tells" explains '"kernel_queued":[1-9]'
end_aggregator
by_queue 50 "$work/tribd"
in_kernel 95 "$work/tribd"

# --- none
aggregator s1 --plane xdp --check-queue 0 && aggregator_ready
works "no queue"
end_aggregator
check "... nothing was queued" test "$(counter kernel_queued "$work/tribd")" = 0
check "... of $(counter reports "$work/tribd") reports" test "$(counter reports "$work/tribd")" -gt 50
in_kernel 95 "$work/tribd"

# --- full: nobody reads, until packets of 16 KiB wait at the socket of lane 0 or 1 as well. On a busy machine, one or two
# wait there in any case.
at_socket() {
	on s1 awk '$2 ~ /:1E1[45]$/ && $5 ~ /:(0000[4-9A-F]|000[1-9A-F]|00[1-9A-F])/ { found = 1 } END { exit !found }' \
		/proc/net/udp
}
aggregator s1 --plane xdp --check-queue 4K && aggregator_ready
go -n 3 --net $a --plane xdp --aggregator "$at" --lanes 2 --timeout 30 -- \
	"$worker" --mark "$work/mark" --rounds 400 --max 100000 --seed 5 &
job=$!
check "ranks work" wait_for 20 all_marked 3
kill -STOP "$aggregator"
check "the queue is full" wait_for 20 at_socket
kill -CONT "$aggregator"
wait $job
out=$work/out
check "... exact on all ranks" right 3
works "... and so are those who come then"
end_aggregator
full=$(counter kernel_queue_full "$work/tribd")
check "... ${full:-0} packets came by the sockets for that" test "${full:-0}" -gt 0
by_queue 25 "$work/tribd"
check "... and no lane left the kernel" test -z "$(grep -o 'user space.*' "$work/tribd")"
down
done_checking
