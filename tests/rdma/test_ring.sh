#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two ranks sum around a ring by RDMA (TRIB_TRANSPORT=verbs): the same bits as by UDP, over all paths, also while a path
# is cut. A rank that is killed is named. Without a device at one end, one line says so, and messages travel by UDP.
# Usage: test_ring.sh BUILD-FOLDER
# shellcheck source-path=SCRIPTDIR disable=SC3043
. "${0%/*}/lib.sh"
start "$@"
worker=$build/tests/net/worker_check
[ -x "$worker" ] || skip "this build has no worker_check"
export TRIB_SIZE=2 TRIB_COOKIE=0000000000000a11 TRIB_LOG=info TRIB_PAGES=off TRIB_TIMEOUT=60 TRIB_RING=all
TRIB_RENDEZVOUS=$(first $address_b):7700
export TRIB_RENDEZVOUS TRIB_TRANSPORT

commas() { echo "$*" | tr ' ' ,; }
# rank N OPTION...: of worker_check, in the background. Its output is in $work/N; $pid its process.
rank() {
	local number=$1 addresses=$address_a
	shift
	[ "$number" = 1 ] || addresses=$address_b
	[ "$number" != "${bare:-}" ] || addresses=none
	# shellcheck disable=SC2086
	TRIB_RANK=$number TRIB_VERBS_ADDRESSES=$(commas $addresses) \
		nice -n 19 "$worker" "$@" >"$work/$number" 2>&1 &
	pid=$!
}
has_failed() { grep -q 'path [0-9]* to rank .* has failed' "$work/0" "$work/1"; }
has_moved() { [ "$(path bytes 2 | cut -d ' ' -f 1)" -gt "$1" ]; }
# cut_one: when data flows on path 2, until a rank has noticed; then until data flows again.
cut_one() {
	local before
	before=$(path bytes 2 | cut -d ' ' -f 1)
	wait_for 100 has_moved $((before + 300000))
	path cut 2
	wait_for 60 has_failed
	path restore 2
	before=$(path bytes 2 | cut -d ' ' -f 1)
	wait_for 60 has_moved $((before + 300000)) && touch "$work/again"
	touch "$work/seen"
}

job="--rounds 3 --max 150000 --only allreduce --seed 7"
TRIB_TRANSPORT=sockets
# shellcheck disable=SC2086
check "by UDP: right" ranks $job
expected=$(digest)
TRIB_TRANSPORT=verbs
[ "$paths" = 0 ] || crossed >"$work/before"
# shellcheck disable=SC2086
check "by RDMA: right" ranks $job
check "... the same bits" same_digest
check "... no message by UDP" grep -q 'messages with rank 1 travel by RDMA' "$work/0"
if [ "$paths" -gt 1 ]; then
	shares=$(shares "$work/before")
	check "... over all paths ($shares%)" all_paths_share "$shares"
	cut_one &
	check "a path is cut and restored: right" ranks --rounds 100000 --until "$work/seen" --max 150000 --only allreduce --seed 8
	wait $!
	check "... its messages went over other paths" has_failed
	check "... and it was used again" test -e "$work/again"
fi

TRIB_TIMEOUT=8
rank 1 --rounds 100000 --max 150000 --only allreduce
victim=$pid
rank 0 --rounds 100000 --max 150000 --only allreduce
sleep 3
kill -KILL "$victim"
wait "$pid"
check "a rank is killed: the other one names it" grep -qE 'rank 1 .*has not answered|no RDMA connection to rank 1' "$work/0" || cat "$work/0"

# --- one end has no device
TRIB_TIMEOUT=60 bare=1
# shellcheck disable=SC2086
check "no device at one end: right" ranks $job
check "... the same bits" same_digest
check "... that end says why" grep -q 'no RDMA, so messages travel by UDP: none of' "$work/1"
check "... the other end names it" grep -q 'messages with rank 1 do not travel by RDMA: it has no RDMA device' "$work/0"
done_checking
