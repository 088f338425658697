#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job migrates to other trees while it runs: a node is drained, another is overloaded, and the tribd of a
# third is told to stop. Usage: test_migration.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
need_clusters "$@"
start "$@"
need_control
# The load that nodes see is ours: /proc/stat of each is a file.
unshare -m true 2>/dev/null || skip "no mount namespaces here"
# Jobs that hardly communicate are for test_telemetry.sh.
export TRIB_LOAD_MAX=90 TRIB_BEAT=0.25 TRIB_EXIT_BELOW=0 TRIB_GAUGE=on
check "a cluster" up mov$$ --hosts 3 --servers 4 --link 300mbit || exit 1
servers=(s1 s2 s3 s4)
control=$(address h1):7600
scheme=http
curl() { on h1 /usr/bin/env curl "$@"; }

# ---- nodes with a load that is made up ----
for host in "${servers[@]}"; do
	echo idle >"$work/load.$host"
done
# tick: one more second of all machines, four cores each, busy by 98 % or by 2.
tick() {
	local host core busy
	for host in "${servers[@]}"; do
		[ "$(cat "$work/load.$host")" = idle ] && busy=2 || busy=98
		: "${used[$host]:=1000}" "${free[$host]:=1000}"
		used[$host]=$((${used[$host]} + busy)) free[$host]=$((${free[$host]} + 100 - busy))
		for ((core = 0; core < cores; core++)); do
			echo "cpu$core ${used[$host]} 0 0 ${free[$host]} 0 0 0 0 0 0"
		done >"$work/stat.$host"
	done
}
declare -A used free
cores=$(nproc --all)
tick
(while :; do sleep 0.25 && tick; done) &

export TRIB_CONTROLLER=http://$control
check "a controller starts" controller h1 --plain || exit 1
for host in "${servers[@]}"; do
	agent_command=(unshare -m bash -c 'mount --bind "$1" /proc/stat && shift && exec "$@"' - "$work/stat.$host")
	agent_on "$host"
done
for host in "${servers[@]}"; do
	wait_for 20 node_is "$host" live || fail "$host has not joined: $(cat "$work/$host")"
done

# ---- a job ----
first_of_plan() {
	local host
	for host in "${servers[@]}"; do
		has_plan "$host" && echo "$host" && return
	done
}

enough=$work/enough # ranks end when it is there
ranks 3 --rounds 1000000 --until "$enough" --max 100000 --pause 0.1
check "the job has a plan" wait_for 20 plan_is_past 0
check "... and is at work" wait_for 20 all_marked 3

# ---- a node is drained ----
drained=$(first_of_plan)
before=$(generation "$TRIB_JOB")
on h1 "$trib" node drain "$drained" >"$work/drain"
check "a node of the plan is drained" test $? = 0
check "... and told to be empty: $(tail -n 1 "$work/drain")" grep -q 'no job uses it any more' "$work/drain"
check "... by another plan" plan_is_past "$before"
check "... without it" lacks_plan "$drained"
check "... its state is told" node_is "$drained" drained
check "... ranks were told why" grep -q 'leaves: it was drained; asking the controller' "$work/rank.0"
on h1 "$trib" explain "$TRIB_JOB" >"$work/explained"
check "... as is who asks: $(grep drained "$work/explained")" grep -q "plan [0-9]*: node $drained (.*) left: it was drained" "$work/explained"

# ---- another node is overloaded ----
loaded=$(first_of_plan)
before=$(generation "$TRIB_JOB")
echo busy >"$work/load.$loaded"
check "others use the cores of $loaded" wait_for 30 node_is "$loaded" loaded
check "... so the job leaves it" wait_for 30 plan_is_past "$before"
check "... for a plan without it" lacks_plan "$loaded" "$drained"
check "... the controller says so" grep -q "job $TRIB_JOB leaves node .* ($loaded): overloaded, others use 9[0-9] % of its cores" "$work/controller"
check "... ranks were told why" grep -q 'leaves: overloaded, others use' "$work/rank.1"
echo idle >"$work/load.$loaded"

# ---- a tribd is told to stop ----
stopped=$(first_of_plan)
before=$(generation "$TRIB_JOB")
kill -TERM "${agents[$stopped]}"
check "a tribd that is told to stop leaves its trees" wait_for 20 plan_is_past "$before"
check "... and says so" grep -q 'leaves: tribd was told to stop' "$work/rank.2"
check "... the job goes on without it" lacks_plan "$stopped" "$drained"

check "... and so do all ranks" wait_for 20 all_go_on
end_as_undisturbed 3 --max 100000

# ---- all nodes are drained ----
for host in "${servers[@]}"; do
	[ "$host" = "$stopped" ] || on h1 "$trib" node drain --no-wait "$host" >/dev/null
done
ranks 3 --rounds 10
check "with all nodes drained ranks sum around a ring" all_well
check "... and say so" grep -q '3 ranks sum among themselves' "$work/rank.0"
TRIB_RING=off TRIB_TIMEOUT=3 ranks 3 --rounds 10
check "without a ring there is no plan" eval '! all_well >/dev/null'
check "... and that is said" grep -q '3 more are alive but drained (trib node resume)' "$work/rank.0"
on h1 "$trib" node resume "$drained" >/dev/null
check "one is taken back" node_is "$drained" live
ranks 3 --rounds 10
check "... and serves" all_well
done_checking
