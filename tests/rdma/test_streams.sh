#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two workers and an aggregator by RDMA (TRIB_TRANSPORT=verbs on the tcp plane): the same bits as by TCP. A worker or an
# aggregator that is killed is named. An aggregator without RDMA gets TCP, and one line says so.
# Usage: test_streams.sh BUILD-FOLDER
# shellcheck source-path=SCRIPTDIR disable=SC3043
. "${0%/*}/lib.sh"
start "$@"
worker=$build/tests/net/worker_check tribd=$build/src/cli/tribd
[ -x "$worker" ] && [ -x "$tribd" ] || skip "this build has no worker_check or no tribd"
export TRIB_SIZE=2 TRIB_COOKIE=0000000000000a12 TRIB_LOG=info TRIB_PAGES=off TRIB_TIMEOUT=40 TRIB_PLANE=tcp TRIB_LANES=2 TRIB_RING=off
# shellcheck disable=SC2086
TRIB_AGGREGATOR=$(first $address_b):7700
export TRIB_AGGREGATOR TRIB_TRANSPORT

# serve TRANSPORT: the aggregator; $daemon is its process.
serve() {
	TRIB_TRANSPORT=$1 nice -n 19 "$tribd" --plane tcp --listen "$TRIB_AGGREGATOR" >"$work/daemon" 2>&1 &
	daemon=$!
	wait_for 30 grep -q ready "$work/daemon"
}
unserve() {
	kill "$daemon"
	wait "$daemon"
}
# rank N OPTION...: in the background. Its output is in $work/N; $pid its process.
rank() {
	local number=$1
	shift
	TRIB_RANK=$number nice -n 19 "$worker" "$@" >"$work/$number" 2>&1 &
	pid=$!
}
# begun: both workers have marked a round.
begun() { [ -e "$work/mark.0" ] && [ -e "$work/mark.1" ]; }
# in_mid_round: starts endless workers, and waits until they are busy.
in_mid_round() {
	rm -f "$work"/mark.*
	rank 1 --rounds 1000000 --max 100000 --mark "$work/mark"
	victim=$pid
	rank 0 --rounds 1000000 --max 100000 --mark "$work/mark"
	wait_for 40 begun
}

job="--rounds 8 --max 100000 --seed 5"
TRIB_TRANSPORT=verbs
serve sockets
# shellcheck disable=SC2086
check "an aggregator without RDMA: right, by TCP" ranks $job || cat "$work/daemon"
check "... and one line says so" grep -q 'travel by TCP: it takes no RDMA' "$work/0"
expected=$(digest)
unserve

serve verbs
# shellcheck disable=SC2086
check "by RDMA: right" ranks $job || cat "$work/daemon"
check "... the same bits" same_digest
check "... by RDMA indeed" grep -q 'travel by RDMA' "$work/0"

TRIB_TIMEOUT=12
in_mid_round
kill -KILL "$victim"
wait "$pid"
check "a worker is killed: the other one names it" grep -q 'error peer.*rank 1' "$work/0" || cat "$work/0"

in_mid_round
kill -KILL "$daemon"
wait "$pid"
check "the aggregator is killed: the error says so" grep -q "error.*${TRIB_AGGREGATOR%:*}" "$work/0" || cat "$work/0"
wait "$victim" "$daemon"
done_checking
