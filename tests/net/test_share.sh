#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Jobs take turns at an aggregator with a capacity. Usage: test_share.sh PATH_TO_TRIB [PLANE]
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
start "$@"
need_control
export TRIB_PLANE=${2:-udp}
replay=$(program bench/replay) || fail "$replay"
port=$(free_port)
control=127.0.0.1:$port

# workers NAME STEPS [COMPUTE]: a job of two ranks that trains; its number is in ${jobs[NAME]}, its ranks' pids
# in ${ranks[NAME]}.
declare -A jobs cookies ranks
workers() {
	local name=$1 r
	job '{"size":2}'
	jobs[$name]=$job cookies[$name]=$cookie ranks[$name]=''
	for r in 0 1; do
		TRIB_TIMEOUT=20 TRIB_CONTROLLER=$control TRIB_JOB=$job TRIB_COOKIE=$cookie TRIB_RANK=$r TRIB_SIZE=2 \
			"$replay" "$2" 2 "${3:-40000}" 4000:200000 12000:400000 20000:400000 32000:800000 \
			>"$work/$name.$r" 2>&1 &
		ranks[$name]+=" $!"
	done
}

# ended NAME: both ranks, with every sum right?
ended() {
	local pid good=0
	for pid in ${ranks[$1]}; do
		wait "$pid" || good=1
	done
	[ $good = 0 ] || cat "$work/$1".?
	return $good
}

# turns FILTER: of what the controller says of them.
turns() { api GET /v1/turns | jq -r ".groups[0] | $1"; }
holds() { [ "$(turns ".jobs[] | select(.job == ${jobs[$1]}).holds")" = true ]; }
freed() { [ "$(turns "[.jobs[]? | select(.job == ${jobs[$1]}).holds] | any | not")" = true ]; }
has_given() { [ "$(turns .given)" -gt "$1" ]; }

# metric NAME: of the aggregator's own counters.
metric() {
	curl -sk -m 5 -H "Authorization: Bearer $TRIB_TOKEN" "http://$metrics/metrics" | awk -v n="$1" '$1 == n { print $2 }'
}

# never_over: as the aggregator itself has counted it.
never_over() { [ "$(metric trib_over_capacity_total)" = 0 ] && [ "$(metric trib_at_once_most)" = 1 ]; }

# shellcheck disable=SC2119
controller
agent own1 $((port + 100))
agent own2 $((port + 200))
metrics=127.0.0.1:$((port + 400))
agent shared $((port + 300)) --capacity 1 --http $metrics
at=127.0.0.1:$((port + 300))
for name in own1 own2 shared; do
	check "$name joins" wait_for 20 node_is "$name" live || exit 1
done

# Three at once.
for name in a b c; do workers $name 60; done
check "jobs get turns" wait_for 20 has_given 5
plan=$(api GET "/v1/jobs/${jobs[a]}" | jq -r '.communicators[0].plan')
check "a plan has trees of its own and the shared aggregator: $plan" grep -q "|$at(0-1)\$" <<<"$plan"
for name in a b c; do check "job $name: every sum is right" ended $name; done
check "... and the aggregator never had two at once" never_over

# agreed: since `given` and `refused` were noted, ranks have refused no more turns than they have taken.
agreed() { [ $(($(turns .refused) - refused)) -le $(($(turns .given) - given)) ]; }

# Three whose steps vary by up to 30 %.
given=$(turns .given) refused=$(turns .refused)
for name in va vb vc; do workers $name 60 40000~30; done
check "jobs whose steps vary get turns" wait_for 20 has_given $((given + 15))
check "... and agree to most of them" agreed
for name in va vb vc; do check "job $name: every sum is right" ended $name; done
check "... and the aggregator never had two at once" never_over

# From here on the first job gets the turn, whatever it gains: on loopback no job gains much.
kill -TERM "$controller"
wait "$controller"
export TRIB_SHARING=greedy
# shellcheck disable=SC2119
controller
for name in own1 own2 shared; do
	check "$name is back" wait_for 20 node_is "$name" live || exit 1
done

was_fenced() { [ "$(turns .fenced)" -gt "$fenced" ]; }

# has_requests NAME: a turn that all have agreed on, and requests in it that have not begun.
has_requests() { [ "$(turns ".jobs[] | select(.job == ${jobs[$1]}) | .holds and .to > .next")" = true ]; }

# stopped_with_turn NAME: its ranks stand still, all that they have said has come, and it has a turn, which it cannot
# give back now; else they go on.
# shellcheck disable=SC2086
stopped_with_turn() {
	fenced=$(turns .fenced) stopped_at=$EPOCHREALTIME
	kill -STOP ${ranks[$1]}
	sleep 0.15
	if has_requests "$1" || was_fenced; then return 0; fi
	kill -CONT ${ranks[$1]}
	return 1
}

# A job is idle in the middle of its turn, and another job wants it.
job '{"size":2}'
jobs[idle]=$job ranks[idle]=''
for r in 0 1; do
	TRIB_TIMEOUT=20 TRIB_CONTROLLER=$control TRIB_JOB=$job TRIB_COOKIE=$cookie TRIB_RANK=$r TRIB_SIZE=2 \
		"$worker" --rounds 1000000 --pause 0.002 --until "$work/enough" --hold "$work/hold" >"$work/idle.$r" 2>&1 &
	ranks[idle]+=" $!"
done
check "a job has a long turn" wait_for 20 eval '[ "$(turns ".jobs[] | select(.job == ${jobs[idle]}) | .holds and .to > .next + 1000")" = true ]'
touch "$work/hold"
check "... rests in the midst of it" wait_for 20 eval 'grep -q rests "$work/idle.0" && grep -q rests "$work/idle.1"'
workers busy 40
check "... does nothing, and loses it to one that works" wait_for 20 holds busy
check "... which ends with every sum right" ended busy
rm "$work/hold"
touch "$work/enough"
check "... as the first one does" ended idle
check "... and never two at once" never_over

# One is killed while it has the turn.
workers killed 100000
workers other 400
check "jobs get turns" wait_for 20 has_given 1
check "a job has the turn" wait_for 20 stopped_with_turn killed
# shellcheck disable=SC2086
kill -KILL ${ranks[killed]}
check "... its turn is taken back when it is killed" wait_for 10 freed killed
awk -v a="$stopped_at" -v b="$EPOCHREALTIME" 'BEGIN { printf "   after %.2f s\n", b - a }'
check "... by the aggregator, which has ended it" was_fenced
check "... and the other job gets it" wait_for 20 holds other
check "... with every sum right" ended other
check "... and never two at once" never_over

# One rank is killed: the other learns of it, and the turn is free.
workers half 100000
check "a job has the turn" wait_for 20 holds half
kill -KILL "${ranks[half]##* }"
check "... and loses it with one of its ranks" wait_for 10 freed half
read -r left _ <<<"${ranks[half]}"
check "... the other one ends with an error" ends_badly "$left"

# The controller is started again in the midst of it.
workers d 150
workers e 150
given=$(turns .given)
check "jobs get turns" wait_for 20 has_given $((given + 5))
kill -KILL "$controller"
# shellcheck disable=SC2119
controller
check "a controller that was started again gives turns too" wait_for 20 has_given 3
for name in d e; do check "job $name: every sum is right" ended $name; done
check "... and never two at once" never_over

# The controller ends for good: a job with a turn keeps it, and a job without uses its own trees.
workers f 100
check "a job has the turn" wait_for 20 holds f
kill -KILL "$controller"
check "without a controller a job goes on" ended f

# Jobs that use the aggregator without asking for turns are counted there.
for name in d e; do
	ranks[$name]=''
	for r in 0 1; do
		TRIB_TIMEOUT=20 TRIB_AGGREGATOR=$at TRIB_JOB=${jobs[$name]} TRIB_COOKIE=${cookies[$name]} TRIB_RANK=$r \
			TRIB_SIZE=2 "$replay" 40 2 1000 0:800000 0:800000 >"$work/$name.$r" 2>&1 &
		ranks[$name]+=" $!"
	done
done
for name in d e; do check "job $name without turns: every sum is right" ended $name; done
check "... and the aggregator has counted that two were there at once: $(metric trib_over_capacity_total) times" \
	test "$(metric trib_at_once_most)" = 2
done_checking
