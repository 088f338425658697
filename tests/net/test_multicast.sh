#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# From a job's first vector on, one multicast send carries a result to all ranks. Usage: test_multicast.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
up ty$$ --hosts 4 --servers 1 --link 500mbit
run_options=--lanes=1
export TRIB_RATE=100mbit # four of them fit the link
vector=(--only allreduce --rounds 1 --max 1500000 --seed 3)
before_heard=64 # src/path/group_probe.h: fragments that a rank sends before it hears the group

firsts() { echo $(($(counter sends) - $(counter repeats))); }

# A bridge forwards a multicast group when it has learned the members, some ticks after the job has begun.
go_right "a job's first vector" 4 "${vector[@]}"
check "... is long: $(counter results) results" test "$(counter results)" -gt 1000
check "... and they left by $(firsts) sends" test "$(firsts)" -le $(($(counter results) + 3 * before_heard))

deafen() { # PORT...: what is for a group does not leave by these any more
	local port
	for port; do
		ip netns exec "$cluster-net" ip link set "$port" type bridge_slave mcast_flood off
	done
	ip netns exec "$cluster-net" ip link set br0 type bridge mcast_snooping 0
}

# Two ranks stop hearing what two others hear, as when a switch forgets them.
rm -f "$work"/mark.*
go -n 4 --net "$cluster" "$run_options" --timeout 30 -- "$worker" --only allreduce --rounds 80 --pause 0.02 --max 300000 --seed 3 \
	--mark "$work/mark" &
job=$!
check "a job is in the middle of its rounds" wait_for 20 all_marked 4
deafen p1 p2
wait $job
out=$work/out
check "two ranks do not hear the group any more: exact on all ranks" right 4
# About 80 on a quiet machine. If the two ranks were not noticed, more than half of the results.
check "... $(counter repeats) results besides $(counter results) were sent again" \
	test "$(counter repeats)" -lt $(($(counter results) / 4))

deafen p3 p4
go_right "where no group is heard" 4 "${vector[@]}"
check "... $(counter results) results leave by $(firsts) sends" test "$(firsts)" = $((4 * $(counter results)))
down
done_checking
