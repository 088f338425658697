# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of the control plane share; sourced behind lib.sh.
# shellcheck disable=SC2154,SC2034  # what lib.sh sets, and what tests read

# control_libraries: what the control plane is built with, each with its version, as pkg-config wants it.
control_libraries() {
	sed -n "s/^ *'\(.*\)': '\(>=\)\(.*\)',\$/\1 \2 \3/p" "$(dirname "${BASH_SOURCE[0]}")/../../src/control/meson.build"
}

# has_control: the build has the control plane; or $why says what this machine lacks for it.
has_control() {
	local libraries
	mapfile -t libraries < <(control_libraries)
	[ ${#libraries[@]} -gt 0 ] || fail "src/control/meson.build names no libraries"
	is_built tests/unit/test_node_report "${libraries[@]}"
}

# need_control: a build that has it, and what looks at it.
need_control() {
	local tool
	has_control || skip "$why"
	check "trib check knows the control plane" eval '"$trib" check | grep -q "^ok *control plane:"'
	for tool in curl jq; do
		command -v $tool >/dev/null || skip "$tool is not installed"
	done
	ask=$build/tests/net/ask
	unset "${!TRIB_@}"
	export TRIB_STATE=$work/state TRIB_TOKEN=a-token-for-tests TRIB_LOAD_MAX=100 TRIB_COUNTERS=on
	# As in start(): a rate is told of trees alone, and on a busy machine a ring may be faster.
	export TRIB_WAY=aggregator
	# Room for a busy machine: a late heartbeat is no death.
	export TRIB_BEAT=0.5
	# Link probes are for test_link_probe.sh and test_migration.sh.
	export TRIB_GAUGE=off
}

# free_port: below the ports that the kernel chooses by itself.
free_port() { echo $((12000 + RANDOM % 18000)); }

# controller [HOST [OPTION]...]: tribd --controller at $control, on a host or here; its pid is $controller.
controller() {
	local host=${1:-} prefix=()
	shift $(($# > 0))
	[ -z "$host" ] || prefix=("$trib" net exec --name "$cluster" "$host" --)
	: >"$work/controller" # without the lines of an earlier controller
	"${prefix[@]}" "$tribd" --controller "$control" "$@" >"$work/controller" 2>&1 &
	# shellcheck disable=SC2034
	controller=$!
	wait_for 30 grep -q 'controller ready' "$work/controller"
}

# agent NAME PORT [OPTION]...: one on loopback; its pid is in ${agents[NAME]}, its output in $work/NAME.
declare -A agents
agent() {
	local name=$1 port=$2
	shift 2
	"$tribd" --join "$control" --name "$name" --listen "127.0.0.1:$port" "$@" >"$work/$name" 2>&1 &
	agents[$name]=$!
}

# agent_on HOST [OPTION]...: the same on a host of the cluster, started by $agent_command if it is set.
agent_command=()
agent_on() {
	local host=$1
	shift
	"$trib" net exec --name "$cluster" "$host" -- "${agent_command[@]}" \
		"$tribd" --join "$TRIB_CONTROLLER" --name "$host" --listen :7700 "$@" >"$work/$host" 2>&1 &
	agents[$host]=$!
}

# api METHOD PATH [BODY]: the controller's answer; $code is its status.
api() {
	local body=()
	rm -f "$work/answer"
	[ -z "${3:-}" ] || body=(--data-binary @-)
	curl -sk -m 5 -o "$work/answer" -w '%{http_code}' -X "$1" \
		-H "Authorization: Bearer ${token-$TRIB_TOKEN}" "${body[@]}" "${scheme:-http}://$control$2" \
		>"$work/code" <<<"${3:-}"
	cat "$work/answer" 2>/dev/null
}

code_is() { [ "$(cat "$work/code")" = "$1" ]; }

# node_is NAME STATE
node_is() { [ "$(api GET /v1/nodes | jq -r ".nodes[] | select(.name == \"$1\").state")" = "$2" ]; }

# generation JOB: of its plan, 0 where it has none.
generation() { api GET "/v1/jobs/$1" | jq '[.communicators[].generation] | max // 0'; }

# job WISH: makes one; leaves its number in $job and its cookie in $cookie.
job() {
	api POST /v1/jobs "$1" >"$work/job"
	job=$(jq -r .id "$work/job") cookie=$(jq -r .cookie "$work/job")
}

# plan: the trees of job $TRIB_JOB as they are now; nothing if it has no plan, or nobody answers.
plan() { api GET "/v1/jobs/$TRIB_JOB" | jq -r '.communicators[0].plan // empty'; }

# has_plan HOST...: an aggregator on one of the hosts is in the plan.
# lacks_plan HOST...: there is a plan, and no aggregator on any of the hosts is in it.
# Both are false if there is no plan or the controller does not answer. So never write `! has_plan`.
has_plan() { [ "$(plan_has "$@")" = yes ]; }
lacks_plan() { [ "$(plan_has "$@")" = no ]; }
plan_has() {
	local host now at
	now=$(plan)
	[ -n "$now" ] || return
	for host; do
		at=$(address "$host")
		[ -n "$at" ] || return
		[[ $now != *"$at:7700("* ]] || { echo yes && return; }
	done
	echo no
}
plan_is_past() { [ "$(generation "$TRIB_JOB")" -gt "$1" ]; }

# ranks N OPTION...: a new job's, rank 0 on host h1 and so on, in the background; outputs in $work/rank.N
ranks() {
	local rank size=$1
	shift
	rm -f "$work"/mark.*
	eval "$(on h1 "$trib" job new --size "$size")"
	workers=()
	for ((rank = 0; rank < size; rank++)); do
		TRIB_LOG=notice TRIB_RANK=$rank TRIB_SIZE=$size "$trib" net exec --name "$cluster" "h$((rank + 1))" -- \
			"$worker" --seed 7 --mark "$work/mark" "$@" >"$work/rank.$rank" 2>&1 &
		workers+=($!)
	done
}

# all_go_on: all ranks use the trees of the newest plan.
all_go_on() {
	local plan
	plan=$(generation "$TRIB_JOB")
	[ "$(grep -l "goes on in the trees of plan $plan," "$work"/rank.? | wc -l)" = ${#workers[@]} ]
}

# all_well: all ranks end, with exit code 0.
all_well() {
	local pid
	for pid in "${workers[@]}"; do
		wait "$pid" || { tail -n 3 "$work"/rank.? && return 1; }
	done
}
# rounds: how many rounds all ranks did. sums: a digest of all results.
rounds() { sed -n 's/.*right, \([0-9]*\) rounds.*/\1/p' "$work/rank.0"; }
sums() { grep -ho 'rank.*right.*common [0-9a-f]*' "$work"/rank.?; }

# end_as_undisturbed N OPTION...: ends N ranks that run until $enough is there. They must have the sums of N ranks
# with the same options that nothing disturbs.
end_as_undisturbed() {
	touch "$enough"
	check "all ranks end well" all_well
	sums >"$work/got"
	check "... and have sums" test -s "$work/got"
	grep -ho 'goes on in the trees.*' "$work"/rank.?
	ranks "$1" --rounds "$(rounds)" "${@:2}"
	check "an undisturbed run" all_well
	sums >"$work/right"
	check "... has the same sums" cmp "$work/right" "$work/got"
}

# ask RANK SIZE NONCE GENERATION SECONDS [LOST]; with the rank "bye" it leaves
ask() { "$ask" "$control" "$job" "$cookie" "$@"; }

# ask_all SIZE GENERATION [SECONDS]: all ranks at once, rank r with nonce r + 1; answers in $work/ask.r
ask_all() {
	local r pids=()
	for ((r = 0; r < $1; r++)); do
		ask "$r" "$1" $((r + 1)) "$2" "${3:-20}" >"$work/ask.$r" &
		pids+=($!)
	done
	wait "${pids[@]}"
}

# all_planned SIZE GENERATION
all_planned() {
	local r
	for ((r = 0; r < $1; r++)); do
		grep -q "^plan $2 $r/$1 " "$work/ask.$r" || {
			head "$work"/ask.?
			return 1
		}
	done
}
