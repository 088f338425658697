# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of the control plane share; sourced behind lib.sh.
# shellcheck disable=SC2154,SC2034  # what lib.sh sets, and what tests read

# need_control: a build that has it, and what looks at it.
need_control() {
	local tool
	"$trib" check | grep -q '^ok *control plane:' || skip "this build has no control plane"
	for tool in curl jq; do
		command -v $tool >/dev/null || skip "$tool is not installed"
	done
	ask=$build/tests/net/ask
	unset "${!TRIB_@}"
	export TRIB_STATE=$work/state TRIB_TOKEN=a-token-for-tests TRIB_LOAD_MAX=100
	# Room for a busy machine: a beat that comes late is no death.
	export TRIB_BEAT=0.5
}

# free_port: below those that the kernel gives to whoever asks for any.
free_port() { echo $((12000 + RANDOM % 18000)); }

# controller [HOST]: tribd --controller at $control, on a host or here; its pid is $controller.
controller() {
	local host=${1:-} prefix=()
	[ -z "$host" ] || prefix=("$trib" net exec --name "$cluster" "$host" --)
	: >"$work/controller" # or what an earlier one said would be taken for its word
	"${prefix[@]}" "$tribd" --controller "$control" >"$work/controller" 2>&1 &
	# shellcheck disable=SC2034
	controller=$!
	wait_for 10 grep -q 'controller ready' "$work/controller"
}

# agent NAME PORT [OPTION]...: one on loopback; its pid is in ${agents[NAME]}, its output in $work/NAME.
declare -A agents
agent() {
	local name=$1 port=$2
	shift 2
	"$tribd" --join "$control" --name "$name" --listen "127.0.0.1:$port" "$@" >"$work/$name" 2>&1 &
	agents[$name]=$!
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

# ask RANK SIZE NONCE GENERATION SECONDS [LOST]
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
