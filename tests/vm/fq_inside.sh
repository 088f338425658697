#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Inside the virtual machine; see test_fq.sh. A veth with fq leads to a namespace.
# Usage: fq_inside.sh BUILD-FOLDER
set -u
build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../net/check.sh"

# of_fq KEY: a counter of fq's own, of the interface's only one or the sum over its queues.
of_fq() { tc -s qdisc show dev near | tr -s ' ,()' '\n' | awk -v k="$1" 'l == k { n += $1 } { l = $1 } END { print n + 0 }'; }

uname -r
mkdir -p /run/netns
ip netns add peer
ip link add near numtxqueues 2 type veth peer name far netns peer
ip address add 10.77.0.1/24 dev near
ip link set near up
ip -n peer address add 10.77.0.2/24 dev far
ip -n peer link set far up
ip -n peer link set lo up

# go PACING [PORT RATE]: two workers here, the aggregator there; what the workers say is in /tmp/out.
go() {
	rm -f /tmp/out.*
	for rank in 0 1; do
		TRIB_AGGREGATOR=10.77.0.2:${2:-7700} TRIB_RANK=$rank TRIB_SIZE=2 TRIB_LANES=1 TRIB_TIMEOUT=60 \
			TRIB_RATE=${3:-20mbit} TRIB_MULTICAST=off TRIB_LOG=info TRIB_PACING=$1 \
			timeout 150 "$build"/tests/net/worker_check --rounds 6 --max 100000 --seed 7 >/tmp/out.$rank 2>&1 &
		pids="${pids:-} $!"
	done
	# shellcheck disable=SC2086  # one word each
	wait $pids
	pids=''
	cat /tmp/out.*
}
said() { grep -ho "$1" /tmp/out.* | sort -u; }
right() { [ "$(cat /tmp/out.* | grep -c 'right, ')" = 2 ] && [ "$(said 'common [0-9a-f]*' | wc -l)" = 1 ]; }
# How many messages of the workers carried the time when they are to leave.
timed() { cat /tmp/out.* | sed -n 's/.*; \([0-9]*\) messages had a time to leave.*/\1/p' | awk '{ n += $1 } END { print n + 0 }'; }

ip netns exec peer "$build"/src/cli/tribd --open --listen 10.77.0.2:7700 >/tmp/tribd 2>&1 &
daemons=$!
ip netns exec peer "$build"/src/cli/tribd --open --listen 10.77.0.2:7710 --link 30mbit >/tmp/tribd 2>&1 &
daemons="$daemons $!"
listens() { ip netns exec peer grep -q ":$(printf %04X "$1") " /proc/net/udp; }
for _ in $(seq 50); do
	! listens 7700 || ! listens 7710 || break
	sleep 0.2
done

echo "-- no fq: a token bucket"
go auto
check "no fq: exact on all ranks" right
check "... paced by a token bucket" grep -q 'is paced by a token bucket: the queue of near is' /tmp/out.0
"$build"/src/cli/trib check --aggregator 10.77.0.2:7700 | grep -A1 ' pacing:'
common=$(said 'common [0-9a-f]*')
check "... no message has a time to leave" test "$(timed)" = 0

# Of some 3500 packets: one machine inside another may stand still while packets' times pass, and then a flow has
# more in fq than it takes. Who fills a flow regardless loses hundreds.

# go_by_fq: the same sums as without, and fq had to do with it.
go_by_fq() {
	go auto
	tc -s qdisc show dev near
	check "... exact on all ranks" right
	check "... with the same bits" test "$(said 'common [0-9a-f]*')" = "$common"
	check "... fq held packets until their time" test "$(of_fq throttled)" -gt 10
}

echo "-- fq"
check "the interface takes fq" tc qdisc replace dev near root fq || exit 1
"$build"/src/cli/trib check --aggregator 10.77.0.2:7700 | tee /tmp/check | grep ' pacing:'
check "fq: trib check says so" grep -q 'pacing: by the kernel: the queue of near is fq' /tmp/check
go_by_fq
check "... paced by the kernel" grep -q 'is paced by the kernel: the queue of near is fq' /tmp/out.0
check "... and dropped hardly any" test "$(of_fq dropped)" -le 30
check "... most messages have a time to leave" test "$(timed)" -gt 50
before=$(of_fq throttled)
go bucket
check "TRIB_PACING=bucket: exact on all ranks" right
check "... fq held nothing" test "$(of_fq throttled)" = "$before"

before=$(of_fq throttled)
go auto 7710 0
check "rates that an aggregator gives and changes: exact on all ranks" right
check "... given" grep -q 'the queue of near is fq; at first [0-9.]* Mbit' /tmp/out.0
check "... fq held packets until their time" test "$(of_fq throttled)" -gt "$((before + 10))"
check "... and dropped hardly any" test "$(of_fq dropped)" -le 30

echo "-- times"
for rate in 10mbit 50mbit 400mbit; do # the last one in messages of several packets (GSO)
	"$build"/tests/vm/fq_times 10.77.0.2:7801 /run/netns/peer $rate 3000
	check "$rate: nothing leaves before its time, nothing is lost" test $? = 0
done

echo "-- fq below mq"
tc qdisc replace dev near root handle 1: mq && tc qdisc replace dev near parent 1:1 fq
"$build"/src/cli/trib check --aggregator 10.77.0.2:7700 | tee /tmp/check | grep ' pacing:'
check "one of two queues is not enough" grep -q 'pacing: by a token bucket' /tmp/check
tc qdisc replace dev near parent 1:2 fq
"$build"/src/cli/trib check --aggregator 10.77.0.2:7700 | tee /tmp/check | grep ' pacing:'
check "both are" grep -q 'pacing: by the kernel: the queue of near is fq, below mq' /tmp/check
go_by_fq
# shellcheck disable=SC2086  # one word each
kill $daemons
done_checking
