#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Aggregators, agents and the controller are killed while ranks work, and come back a moment later, as with
# systemd. Usage: test_recover.sh PATH_TO_TRIB [KILLS [SEED]]; KILLS of each kind, default 3
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
start "$1"
need_control
command -v python3 >/dev/null || skip "python3 is not installed"
unset TRIB_BEAT TRIB_GAUGE # all settings are the default ones, but for trees of two levels:
export TRIB_FAN_IN=2 TRIB_STRIPES=1
kills=${2:-3}
seed=${3:-$(($(date +%s) % 32768))}
RANDOM=$seed
echo "seed $seed"
control=127.0.0.1:$(free_port)
export TRIB_CONTROLLER=$control
base=$(free_port)
names=(a1 a2 a3 a4) # a root, two leaves, and one to spare
ranks=4

port_of() { echo $((base + 20 * ${1#a})); }

agents_live() {
	local name
	for name in "${names[@]}"; do
		wait_for 20 node_is "$name" live || return 1
	done
}

check "a controller starts" controller || exit 1
for name in "${names[@]}"; do
	agent "$name" "$(port_of "$name")"
done
check "... and four agents" agents_live || exit 1

# workers ROUNDS: four of them, in the background; their output is in $run
workers() {
	local rank
	pids=()
	run=$(mktemp -d "$work/run.XXXX")
	eval "$("$trib" job new --size $ranks)"
	for ((rank = 0; rank < ranks; rank++)); do
		TRIB_MTU=1500 TRIB_LOG=notice TRIB_RANK=$rank TRIB_SIZE=$ranks TRIB_AGGREGATOR=$TRIB_AGGREGATOR \
			TRIB_JOB=$TRIB_JOB TRIB_COOKIE=$TRIB_COOKIE \
			"$worker" --rounds "$1" --seed 7 --max 200000 --pause 0.03 --mark "$run/mark" \
			--times "$run/times.$rank" >"$run/worker.$rank" 2>&1 &
		pids+=($!)
	done
}

all_well() { # they end, and end well
	local pid well=0
	for pid in "${pids[@]}"; do
		wait "$pid" || well=1
	done
	[ $well = 0 ] || tail -n 5 "$run"/worker.?
	return $well
}

digests() { grep -ho 'rank.*right.*common [0-9a-f]*' "$run"/worker.?; }

# working: is any of them?
working() { kill -0 "${pids[@]}" 2>/dev/null; }

# plan: the trees of the job as they are now; empty where the controller has made none yet.
plan() { api GET "/v1/jobs/$TRIB_JOB" | jq -r '.communicators[0].plan // ""'; }

# pick KIND: an agent that is that now, or nothing; by $draw, as a subshell has random numbers of its own. A root
# and a leaf are agents that sum for the job; a plain agent sums for nobody.
pick() {
	local name address trees roots kind found=()
	trees=$(plan)
	roots=$(tr ';' '\n' <<<"$trees" | sed 's/^[^:(]*\*//; s/(.*/(/')
	for name in "${names[@]}"; do
		address=127.0.0.1:$(port_of "$name")
		kind=agent
		grep -qF "$address(" <<<"$trees" && kind=leaf
		grep -qxF "$address(" <<<"$roots" && kind=root
		[ "$kind" != "$1" ] || found+=("$name")
	done
	[ ${#found[@]} = 0 ] || echo "${found[draw % ${#found[@]}]}"
}

# moment: up to 0.9 s; one time in ten nothing at all.
moment() { sleep "0.$((RANDOM % 10))"; }

# draw_kind: one of the kinds that are owed a kill, in $kind.
draw_kind() {
	local one kinds=()
	for one in "${!owed[@]}"; do
		[ "${owed[$one]}" = 0 ] || kinds+=("$one")
	done
	[ ${#kinds[@]} -gt 0 ] && kind=${kinds[RANDOM % ${#kinds[@]}]}
}

# kill_one: somebody ends without a word, and is there again a moment later.
kill_one() {
	local name='' pid
	draw=$RANDOM
	[ "$kind" = controller ] || name=$(pick "$kind")
	[ "$kind" = controller ] || [ -n "$name" ] || return 0
	if [ "$kind" = controller ]; then
		pid=$controller
	else
		pid=${agents[$name]}
	fi
	kill -KILL "$pid"
	echo "$(date +%s.%N) $label$kind" >>"$run/kills"
	wait "$pid" 2>/dev/null
	owed[$kind]=$((owed[$kind] - 1))
	moment
	if [ "$kind" = controller ]; then
		controller || echo "the controller does not come back"
	else
		agent "$name" "$(port_of "$name")"
	fi
}

workers 200
check "an undisturbed run" all_well
digests >"$work/right"
check "... has digests" test "$(wc -l <"$work/right")" = $ranks

stood() { python3 "$(dirname "$0")/standstill.py" "$@" "$work"/run.*; }

# count_owed KILLS KIND...: how many kills of each kind are still to come. A kill after the last round does not count.
count_owed() {
	local one
	stood --kinds >"$work/hit"
	for one in "${@:2}"; do
		owed[$one]=$(($1 - $(grep -cx "$label$one" "$work/hit")))
	done
}

# kill_many KILLS LABEL KIND...: so many of each kind, while ranks do 200 rounds again and again.
kill_many() {
	local label=$2 kind
	declare -A owed
	count_owed "$1" "${@:3}"
	while draw_kind; do
		workers 200
		while working && draw_kind; do
			moment
			kill_one
		done
		check "somebody is killed" test -s "$run/kills" || break
		check "200 rounds, while $(wc -l <"$run/kills") were killed" all_well
		digests >"$work/got"
		check "... have the same sums" cmp "$work/right" "$work/got"
		[ $failures -lt 3 ] || break
		count_owed "$1" "${@:3}"
	done
	check "all agents are back" agents_live
}

kill_many "$kills" '' leaf root controller agent
# The same with plans as they are by default: a star at each agent, and each is in use.
unset TRIB_FAN_IN TRIB_STRIPES
kill -KILL "$controller"
wait "$controller" 2>/dev/null
controller && agents_live
kill_many "$kills" striped- root controller
check "there was something to recover from" stood

# ---- without a controller, and with one that comes back when it is needed ----
workers 200
wait_for 20 all_marked $ranks "$run"
kill -KILL "$controller"
wait "$controller" 2>/dev/null
check "ranks do not need the controller to go on" all_well
digests >"$work/got"
check "... and have the same sums" cmp "$work/right" "$work/got"
check "it starts again" controller
agents_live
workers 400
wait_for 20 all_marked $ranks "$run"
draw=0
name=$(pick root)
kill -KILL "$controller" "${agents[$name]}"
wait "$controller" "${agents[$name]}" 2>/dev/null
sleep 0.5 # ranks have nobody to ask for so long
check "both at once, and the controller comes back" controller
check "... ranks go on" all_well
done_checking
