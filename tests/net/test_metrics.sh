#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# /metrics of aggregators and of the controller. Usage: test_metrics.sh PATH_TO_TRIB
# The default port is one for the whole machine, so the test runs on a loopback of its own, if it may.
if [ -z "${own_loopback:-}" ]; then
	for shares in -n -Urn ''; do
		[ -z "$shares" ] || ! unshare $shares ip link set lo up 2>/dev/null || break
	done
	export own_loopback=${shares:-no}
	[ -z "$shares" ] || exec unshare $shares bash -c 'ip link set lo up && exec "$@"' - bash "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
start "$@"
need_control
root=$(realpath "$(dirname "$0")/../..")

# metrics PORT: into $work/metrics.
metrics() {
	curl -s -m 5 -H "Authorization: Bearer $TRIB_TOKEN" -o "$work/metrics" "http://127.0.0.1:$1/metrics"
}

# sample NAME LABELS: the value of the sample with all these labels, separated by blanks.
sample() {
	local name=$1 label lines
	lines=$(grep -E "^$name(\{| )" "$work/metrics")
	for label in ${2:-}; do
		lines=$(grep -F -- "$label" <<<"$lines")
	done
	sed 's/.* //' <<<"$lines" | head -n 1
}

# is_more A B
is_more() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b) }'; }

# good WHAT: the format is right, and every name is in docs/metrics.md with its type.
good() {
	local name type
	if command -v promtool >/dev/null; then
		check "$1: promtool is content" promtool check metrics <"$work/metrics"
	else
		missing="promtool (package prometheus) is not installed"
	fi
	while read -r name type; do
		grep -qE "^\| \`$name(\{[a-z,]*\})?\` \| $type \|" "$root/docs/metrics.md" || {
			check "$1: $name, a $type, is in docs/metrics.md" false
		}
	done < <(sed -n 's/^# TYPE //p' "$work/metrics" | tee -a "$work/seen")
}
missing=''

port=$(free_port) http=$(free_port)
"$tribd" --listen "127.0.0.1:$port" --http "127.0.0.1:$http" --capacity 8 >"$work/tribd" 2>&1 &
aggregator=$!
check "a tribd with /metrics" wait_for 10 grep -q 'metrics on port' "$work/tribd" || exit 1
check "no token, no metrics" test "$(curl -s -m 5 -o /dev/null -w '%{http_code}' "http://127.0.0.1:$http/metrics")" = 401
metrics "$http"
good "without a job"
check "... nothing added yet" test "$(sample trib_payload_bytes_total 'where="user"')" = 0

# Rank 2 is a straggler: it sends at a fraction of the others' pace.
export TRIB_AGGREGATOR=127.0.0.1:$port TRIB_TIMEOUT=30
pids=()
workers() {
	local rank rate
	for rank in 0 1 2; do
		rate=0
		[ $rank != 2 ] || rate=40mbit
		TRIB_RANK=$rank TRIB_SIZE=3 TRIB_RATE=$rate \
			"$worker" --rounds 30000 --max 200000 >"$work/worker.$rank" 2>&1 &
		pids[rank]=$!
	done
}
TRIB_JOB=5 workers
job_runs() { metrics "$http" && is_more "$(sample trib_child_fragments_total 'job="5" rank="2"')" 2000; }
check "a job's children are told" wait_for 60 job_runs
metrics "$http"
good "with a job"
check "three ranks" test "$(sample trib_job_ranks 'job="5" state="running"')" = 3
check "something was added" is_more "$(sample trib_payload_bytes_total 'where="user"')" 10000
late=$(sample trib_child_last_total 'rank="2"')
early=$(($(sample trib_child_last_total 'rank="0"') + $(sample trib_child_last_total 'rank="1"')))
check "the straggler is named: last $late times, the others $early" is_more "$late" "$early"
# It has much to send, but nothing is lost on the way.
judged=$(sample trib_child_judged_total 'rank="2"') missed=$(sample trib_child_missed_total 'rank="2"')
check "... and no loss is made up: $missed of $judged" is_more "$judged" "$((missed * 100))"
end_workers() {
	kill "${pids[@]}"
	wait "${pids[@]}" 2>/dev/null
}
end_workers
kill -TERM "$aggregator"
wait "$aggregator"

# The controller, with an agent of its own in the same process.
control=127.0.0.1:$(free_port)
"$tribd" --controller "$control" --agent --listen "127.0.0.1:$port" --name both >"$work/controller" 2>&1 &
controller=$!
check "a controller that aggregates too" wait_for 10 node_is both live || exit 1
job '{"name":"metrics","size":2}'
ask_all 2 0
check "... gives a plan" all_planned 2 1
metrics "${control#*:}"
good "controller"
check "a node is up" test "$(sample trib_node_up 'name="both"')" = 1
check "a plan is told" test "$(sample trib_plan_generation "job=\"$job\" name=\"metrics\"")" = 1
check "... and that it was made" test "$(sample trib_desk_plans_total)" = 1
check "its aggregator is told too" test "$(sample trib_aggregator_info)" = 1

# The same straggler, as the agent reports it to the controller.
eval "$("$trib" job new -c "$control")"
export TRIB_AGGREGATOR=127.0.0.1:$port
workers
tells() { "$trib" top -c "$control" --once >"$work/top" && awk '$1 == 2 && $4 > 10' "$work/top" | grep -q .; }
check "trib top has the ranks of a job" wait_for 30 tells
straggler_leads() { tells && [ "$(grep -A1 RANK "$work/top" | awk 'END { print $1 }')" = 2 ]; }
check "... the straggler first" wait_for 30 straggler_leads
TRIB_COOKIE=$TRIB_COOKIE TRIB_JOB=$TRIB_JOB "$trib" top -a "127.0.0.1:$port" --once >"$work/top"
check "... of one aggregator too, with what links lose" grep -q 'LATE *LOST UP *LOST DOWN' "$work/top"
TRIB_CONTROLLER=$control TRIB_AGGREGATOR=$control "$trib" top --once >"$work/top.controller"
check "where TRIB_AGGREGATOR is the controller, that one is looked at" grep -q '^both ' "$work/top.controller"
end_workers
kill -TERM "$controller"
wait "$controller"
check "both end well" test $? = 0

# ---- in a tree: all wait for rank 1, though others are last among their siblings ----
unset TRIB_AGGREGATOR TRIB_JOB TRIB_COOKIE
TRIB_FAN_IN=2 TRIB_STRIPES=1 controller
for name in a1 a2 a3; do
	agent $name $((port + 20 * ${name#a}))
	wait_for 20 node_is $name live
done
eval "$("$trib" job new -c "$control" --size 4)"
for rank in 0 1 2 3; do
	rate=0
	[ $rank != 1 ] || rate=40mbit
	TRIB_AGGREGATOR=$TRIB_AGGREGATOR TRIB_JOB=$TRIB_JOB TRIB_COOKIE=$TRIB_COOKIE TRIB_RANK=$rank TRIB_SIZE=4 \
		TRIB_RATE=$rate "$worker" --rounds 30000 --max 200000 >"$work/worker.$rank" 2>&1 &
	pids[rank]=$!
done
tells_tree() { "$trib" top -c "$control" --once >"$work/top" && awk '$1 == 1 && $3 > 3000' "$work/top" | grep -q .; }
check "trib top has the ranks of a tree" wait_for 60 tells_tree
check "... the straggler of all first" test "$(grep -A1 RANK "$work/top" | awk 'END { print $1 }')" = 1 || cat "$work/top"
check "... and the aggregators below others by their ranks" grep -qE '^ +[0-9]+[-,][-,0-9]+ .*\(sums\)' "$work/top" ||
	cat "$work/top"
end_workers
kill -TERM "$controller" "${agents[@]}"
wait "$controller" "${agents[@]}"

# ---- without --http: on loopback, at a port that all know ----
# code [HOST]: the HTTP status of a request without a token; 000: no answer.
code() { curl -s -m 5 -o "$work/metrics" -w '%{http_code}' "http://${1:-127.0.0.1}:7601/metrics"; }
# here [NAME=VALUE]... OPTION...: a tribd with these; its output is in $work/here, its pid in $here.
here() {
	: >"$work/here" # without the lines of an earlier tribd
	env "${@:1:$#-1}" "$tribd" --listen "127.0.0.1:$port" ${!#} >"$work/here" 2>&1 &
	here=$!
	wait_for 10 grep -q "ready on" "$work/here"
}
by_default() {
	controller
	agent plain $((port + 100))
	check "an agent without options has /metrics" wait_for 10 grep -q '/metrics on port 7601' "$work/plain" || return
	check "... for who has the token" test "$(code)" = 401
	metrics 7601
	good "an agent without options"
	check "... its own" test "$(sample trib_aggregator_info)" = 1
	check "... on loopback alone" test "$(code 127.0.0.2)" = 000
	agent second $((port + 200))
	check "a second one on this machine goes on" wait_for 20 node_is second live
	check "... and says why it has none, and what to do" wait_for 10 \
		grep -q 'no /metrics: .*127.0.0.1:7601.*in use.*--http HOST:PORT.*--http off' "$work/second" ||
		cat "$work/second"
	check "... in one line" test "$(grep -c metrics "$work/second")" = 1
	timeout 10 "$tribd" --listen "127.0.0.1:$((port + 300))" --http 127.0.0.1:7601 >"$work/taken" 2>&1
	check "one that was asked for and cannot be is an error" test $? = 1
	kill -TERM "$controller" "${agents[plain]}" "${agents[second]}"
	wait "$controller" "${agents[plain]}" "${agents[second]}"

	here "--http off"
	check "off is off" test "$(code)" = 000
	kill -TERM "$here" && wait "$here"
	check "... without a word" test "$(grep -c metrics "$work/here")" = 0

	# Nobody asked for a token, nor for a folder.
	here -u TRIB_TOKEN TRIB_STATE="$work/none" ""
	check "an aggregator that knows no token has /metrics" wait_for 10 grep -q '/metrics on port 7601.*no token' "$work/here"
	check "... for all on this machine" test "$(code)" = 200
	good "an aggregator without a token"
	local before fd fds=()
	before=$(find "/proc/$here/fd" | wc -l)
	for _ in {1..100}; do
		exec {fd}<>/dev/tcp/127.0.0.1/7601 && fds+=("$fd")
	done
	check "... who comes behind ${#fds[@]} connections is served" test "$(code)" = 200
	check "... and they take few of its files" \
		test $(($(find "/proc/$here/fd" | wc -l) - before)) -le 20
	for fd in "${fds[@]}"; do
		exec {fd}>&-
	done
	check "... and leaves no file" test ! -e "$work/none"
	kill -TERM "$here" && wait "$here"
	mkdir "$work/some"
	echo a-token-that-is-there >"$work/some/token"
	here -u TRIB_TOKEN TRIB_STATE="$work/some" ""
	check "one that finds a token has /metrics" wait_for 10 grep -q '/metrics on port 7601' "$work/here"
	check "... and asks for it" test "$(code)" = 401
	kill -TERM "$here" && wait "$here"
	mkdir -p "$work/bad/token"
	here -u TRIB_TOKEN TRIB_STATE="$work/bad" ""
	check "where it cannot be read" wait_for 10 grep -q 'no /metrics: .*bad/token' "$work/here"
	check "... nobody is let in" test "$(code)" = 000
	kill -TERM "$here" && wait "$here"
}
if [ "$own_loopback" != no ]; then
	by_default
else
	omit "a loopback of our own needs rights"
fi

# ---- what is documented is there ----
while read -r name; do
	grep -q "^$name " "$work/seen" || check "docs/metrics.md: $name is told by some tribd" false
done < <(grep -oE '^\| `trib_[a-z_]+' "$root/docs/metrics.md" | grep -o 'trib_.*')
check "all that docs/metrics.md has is told" test -s "$work/seen"
[ -z "$missing" ] || omit "$missing"
done_checking
