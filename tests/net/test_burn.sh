#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A machine that others really overload: busy loops on the core of an aggregator while a job runs there. Its
# agent sees the load of the cores that it may run on, the job leaves, and its sums are exact. Each
# node has a core of its own; what test_moves.sh shows with loads that are made up.
# Usage: test_burn.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
need_clusters "$@"
start "$@"
need_control
mapfile -t cores < <(for core in /sys/devices/system/cpu/cpu[0-9]*; do
	taskset -c "${core##*cpu}" echo "${core##*cpu}" 2>/dev/null
done | sort -n)
[ ${#cores[@]} -ge 2 ] || skip "two cores are needed, one for each node"
export TRIB_LOAD_MAX=80 TRIB_BEAT=0.25 TRIB_EXIT_BELOW=0 TRIB_STRIPES=1
check "a cluster" up burn$$ --hosts 2 --servers 2 --link 300mbit || exit 1
control=$(address h1):7600
scheme=http
curl() { on h1 /usr/bin/env curl "$@"; }

export TRIB_CONTROLLER=http://$control
check "a controller starts" controller h1 --plain || exit 1
declare -A core=([s1]=${cores[0]} [s2]=${cores[1]})
for host in s1 s2; do
	agent_command=(taskset -c "${core[$host]}")
	agent_on $host
done
for host in s1 s2; do
	wait_for 20 node_is $host live || skip "$host has not joined: $(cat "$work/$host")"
done

load() { api GET /v1/nodes | jq -r ".nodes[] | select(.name == \"$1\").load"; }

enough=$work/enough # ranks end when it is there
ranks 2 --rounds 1000000 --until "$enough" --max 20000 --pause 0.3
check "the job has a plan" wait_for 20 plan_is_past 0
if has_plan s1; then burnt=s1 spare=s2; else burnt=s2 spare=s1; fi
check "... at one of the nodes" has_plan $burnt
if node_is $spare loaded || node_is $burnt loaded; then
	skip "the cores are in use already: $(load s1) and $(load s2)"
fi
before=$(generation "$TRIB_JOB")
hogs=()
for _ in 1 2 3; do
	taskset -c "${core[$burnt]}" bash -c 'while [ $SECONDS -lt 90 ]; do :; done' &
	hogs+=($!)
done
# Seldom, as to look costs something too, and the other core is to be free.
for ((tries = 50; tries > 0; tries--)); do
	sleep 0.5
	! plan_is_past "$before" || break
	! node_is $spare loaded || skip "the core of $spare is in use too, by others than this test"
done
echo "loads: $burnt $(load $burnt), $spare $(load $spare)"
check "loops burn the core of $burnt: the job leaves it" plan_is_past "$before"
check "... for a plan at $spare" has_plan $spare
check "... without $burnt" eval '! has_plan $burnt'
check "... which is loaded" node_is $burnt loaded
check "... the controller says so" \
	grep -q "job $TRIB_JOB leaves node .* ($burnt): overloaded, others use \(100\|[89][0-9]\) % of its cores" "$work/controller"
check "... ranks were told why" grep -q 'leaves: overloaded, others use' "$work/rank.1"
kill "${hogs[@]}"
check "all ranks go on" wait_for 20 all_go_on
end_as_undisturbed 2 --max 20000
check "when the loops have ended the node is taken back" wait_for 30 node_is $burnt live
done_checking
