#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Jobs that go on in other trees while they run: a node is drained, another is overloaded, a third is
# told to stop: test_moves.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
need_clusters "$@"
start "$@"
need_control
# The load that nodes see is ours: /proc/stat of each is a file.
unshare -m true 2>/dev/null || skip "no mount namespaces here"
# That communication takes little of the step is for test_words.sh.
export TRIB_LOAD_MAX=90 TRIB_BEAT=0.25 TRIB_EXIT_BELOW=0
check "a cluster" up mov --hosts 3 --servers 4 --link 300mbit || exit 1
servers=(s1 s2 s3 s4)
control=$(address h1):7600
scheme=http
curl() { on h1 /usr/bin/env curl "$@"; }

# ---- machines whose load is what we say ----
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

"$trib" net exec --name "$cluster" h1 -- "$tribd" --controller "$control" --plain >"$work/controller" 2>&1 &
check "a controller starts" wait_for 10 grep -q 'controller ready' "$work/controller" || exit 1
export TRIB_CONTROLLER=http://$control

declare -A pids
agent_on() {
	"$trib" net exec --name "$cluster" "$1" -- unshare -m bash -c \
		'mount --bind "$1" /proc/stat && shift && exec "$@"' - "$work/stat.$1" \
		"$tribd" --join "$TRIB_CONTROLLER" --name "$1" --listen :7700 >"$work/$1" 2>&1 &
	pids[$1]=$!
}
for host in "${servers[@]}"; do
	agent_on "$host"
done
for host in "${servers[@]}"; do
	wait_for 20 node_is "$host" live || skip "$host has not joined: $(cat "$work/$host")"
done

# ---- a job ----
# ranks ROUNDS OPTION...: three of them, in the background; outputs in $work/rank.N
ranks() {
	local rank rounds=$1
	shift
	eval "$(on h1 "$trib" job new --size 3 -c "$TRIB_CONTROLLER")"
	workers=()
	for rank in 0 1 2; do
		TRIB_LOG=notice TRIB_RANK=$rank TRIB_SIZE=3 on "h$((rank + 1))" \
			"$worker" --rounds "$rounds" --seed 7 --max 100000 "$@" >"$work/rank.$rank" 2>&1 &
		workers+=($!)
	done
}
all_well() {
	local pid
	for pid in "${workers[@]}"; do
		wait "$pid" || return 1
	done
}
sums() { grep -ho 'rank.*right.*common [0-9a-f]*' "$work"/rank.?; }
plan() { api GET "/v1/jobs/$TRIB_JOB" | jq -r '.communicators[0].plan'; }
plan_is_past() { [ "$(generation "$TRIB_JOB")" -gt "$1" ]; }
# has_plan HOST...: is one of them in the plan?
has_plan() {
	local host now
	now=$(plan)
	for host; do
		[[ $now != *"$(address "$host"):7700("* ]] || return 0
	done
	return 1
}
first_of_plan() {
	local host
	for host in "${servers[@]}"; do
		has_plan "$host" && echo "$host" && return
	done
}

ranks 200
check "an undisturbed run" all_well || tail -n 3 "$work"/rank.?
sums >"$work/right"
check "... has sums" test -s "$work/right"

ranks 200 --pause 0.45
check "the job has a plan" wait_for 20 plan_is_past 0

# ---- a node is drained ----
sleep 1
drained=$(first_of_plan)
before=$(generation "$TRIB_JOB")
on h1 "$trib" node drain -c "$TRIB_CONTROLLER" "$drained" >"$work/drain"
check "a node of the plan is drained" test $? = 0
check "... and told to be empty: $(tail -n 1 "$work/drain")" grep -q 'no job uses it any more' "$work/drain"
check "... by another plan" plan_is_past "$before"
check "... without it" eval '! has_plan "$drained"'
check "... its state is told" node_is "$drained" drained
check "... ranks were told why" grep -q 'leaves: it was drained; asking the controller' "$work/rank.0"
TRIB_CONTROLLER=$TRIB_CONTROLLER on h1 "$trib" explain "$TRIB_JOB" >"$work/explained"
check "... as is who asks: $(grep drained "$work/explained")" grep -q "plan [0-9]*: node $drained (.*) left: it was drained" "$work/explained"

# ---- another one is overloaded ----
loaded=$(first_of_plan)
before=$(generation "$TRIB_JOB")
echo busy >"$work/load.$loaded"
check "others use the cores of $loaded" wait_for 30 node_is "$loaded" loaded
check "... so the job leaves it" wait_for 30 plan_is_past "$before"
check "... for a plan without it" eval '! has_plan "$loaded" "$drained"'
check "... the controller says so" grep -q "job $TRIB_JOB leaves node .* ($loaded): overloaded, others use 9[0-9] % of its cores" "$work/controller"
check "... ranks were told why" grep -q 'leaves: overloaded, others use' "$work/rank.1"
echo idle >"$work/load.$loaded"

# ---- one is told to stop ----
stopped=$(first_of_plan)
before=$(generation "$TRIB_JOB")
kill -TERM "${pids[$stopped]}"
check "a tribd that is told to stop leaves its trees" wait_for 20 plan_is_past "$before"
check "... and says so" grep -q 'leaves: tribd was told to stop' "$work/rank.2"
check "... the job goes on without it" eval '! has_plan "$stopped" "$drained"'

check "all ranks end well" all_well || tail -n 3 "$work"/rank.?
sums >"$work/got"
check "... with the same sums" cmp "$work/right" "$work/got"
grep -ho 'goes on in the trees.*' "$work"/rank.?

# ---- the last one ----
for host in "${servers[@]}"; do
	[ "$host" = "$stopped" ] || on h1 "$trib" node drain --no-wait -c "$TRIB_CONTROLLER" "$host" >/dev/null
done
TRIB_TIMEOUT=3 ranks 10
check "with all nodes drained there is no plan" eval '! all_well'
check "... and that is said" grep -q '3 beat but are drained (trib node resume)' "$work/rank.0"
on h1 "$trib" node resume -c "$TRIB_CONTROLLER" "$drained" >/dev/null
check "one is taken back" node_is "$drained" live
ranks 10
check "... and serves" all_well || tail -n 3 "$work"/rank.?
done_checking
