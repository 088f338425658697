#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Jobs migrate from one shared aggregator to another while they run, and do not wait for it.
# Usage: test_star_migration.sh PATH_TO_TRIB [TIMES]; with TIMES, there and back so often, and the durations of
# rounds meanwhile
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
start "$@"
need_control
# Jobs that hardly communicate are for test_telemetry.sh.
export TRIB_EXIT_BELOW=0 TRIB_BEAT=1
port=$(free_port)
control=127.0.0.1:$port
export TRIB_CONTROLLER=http://$control
declare -A at=([one]=127.0.0.1:$((port + 300)) [two]=127.0.0.1:$((port + 400)))

# workers NAME: a job of two ranks, at work until $work/enough is there; its number is ${number[NAME]}.
declare -A number pids
workers() {
	local r
	job '{"size":2}'
	number[$1]=$job pids[$1]=''
	for r in 0 1; do
		TRIB_LOG=notice TRIB_TIMEOUT=60 TRIB_CONTROLLER=$control TRIB_JOB=$job TRIB_COOKIE=$cookie TRIB_RANK=$r TRIB_SIZE=2 \
			"$worker" --seed 7 --max 20000 --rounds 1000000 --pause 0.002 --until "$work/enough" \
			--times "$work/times.$1.$r" >"$work/$1.$r" 2>&1 &
		pids[$1]+=" $!"
	done
}
ended_well() {
	local pid good=0
	for pid in ${pids[$1]}; do wait "$pid" || good=1; done
	[ $good = 0 ] && [ "$(grep -ho 'common [0-9a-f]*' "$work/$1".? | sort -u | wc -l)" = 1 ] && return 0
	cut -c 1-400 "$work/$1".?
	return 1
}

# share NAME WHAT: of the job's newest share, as the controller knows it.
share() { api GET /v1/turns | jq -r "[.groups[] | .aggregator as \$at | .jobs[] | select(.job == ${number[$1]}) | . + {at: \$at}] | max_by(.star) | .$2"; }
is_at() { [ "$(share "$1" at)" = "${at[$2]}" ]; }
joins() { [ "$(share "$1" joining)" -gt 0 ] 2>/dev/null; }
is_in() { [ "$(share "$1" joining)" = 0 ]; }
has_none() { [ "$(share "$1" at)" = null ]; }
# held NAME: has it had a turn where it is now?
held() { [ "$(share "$1" '| .holds or .held_s > 0')" = true ]; }
# rounds_of NAME: so many has its rank 0 done.
rounds_of() { wc -l <"$work/times.$1.0"; }
rounds_past() { [ "$(rounds_of "$1")" -ge "$2" ]; }
said() { grep -q "$2" "$work/$1.0" && grep -q "$2" "$work/$1.1"; } # NAME SENTENCE, on both ranks
same_trees() { [ "$(generation "${number[$1]}")" = 1 ]; }

# find_moved: which job is at the second one, and which is not?
# shellcheck disable=SC2034
find_moved() { if is_at a two; then moved=a other=b; else moved=b other=a; fi; }

shared() { agent "$1" "${at[$1]##*:}" --capacity 1 --threads 1; }
# stopped_when_chosen NAME: the aggregator stands still, and a job is told to go there: its answers will be late. Until
# all have rested and it stands still it is drained, so that nobody goes there before.
chosen() {
	[ "$(grep -c "takes its turns at ${at[$1]}" "$work/controller")" -gt "$before" ] && { is_at a "$1" || is_at b "$1"; }
}
stopped_when_chosen() {
	local try
	for try in 1 2 3 4 5 6; do
		"$trib" node drain --no-wait "$1" >/dev/null
		kill -CONT "${agents[$1]}"
		wait_for 10 node_is "$1" drained || return 1
		sleep 3.5
		before=$(grep -c "takes its turns at ${at[$1]}" "$work/controller")
		kill -STOP "${agents[$1]}"
		"$trib" node resume "$1" >/dev/null
		wait_for 4 chosen "$1" && return 0
		echo "   try $try: no job was told to go there while it stood still"
	done
	return 1
}

# shellcheck disable=SC2119
controller '' --plain
agent own1 $((port + 100)) --threads 1
agent own2 $((port + 200)) --threads 1
shared one
shared two
for name in own1 own2 one two; do
	check "$name joins" wait_for 20 node_is "$name" live || exit 1
done
check "one is to be used later" "$trib" node drain two
for name in a b; do workers $name; done
for name in a b; do check "job $name gets a turn" wait_for 20 held $name; done

# ---- a second aggregator, whose answers are late ----
check "a job is told to go to another aggregator" stopped_when_chosen two || { cat "$work/controller"; exit 1; }
find_moved
check "... job $moved joins it" wait_for 10 joins $moved
from=$(rounds_of $moved)
check "... and does 20 rounds meanwhile" wait_for 20 rounds_past $moved $((from + 20))
check "... in which nobody has joined" eval 'joins $moved && lacks "takes its turns at" "$work/$moved.0" "$work/$moved.1"'
check "... the other one has the first aggregator" eval 'is_at $other one && wait_for 10 held $other'
kill -CONT "${agents[two]}"
check "... it answers: all ranks join" wait_for 10 is_in $moved
check "... and say so" wait_for 20 said $moved "takes its turns at ${at[two]} from now on"
check "... and get turns there" wait_for 10 held $moved
check "... with the trees that they had" same_trees $moved

# ---- it is drained: the way back ----
check "it is drained" "$trib" node drain two >"$work/drained"
check "... and the job takes its turns at the first one" wait_for 10 is_at $moved one
check "... which its ranks join" wait_for 10 is_in $moved
check "... with the trees that they had" same_trees $moved

# ---- to and fro, if wanted: the longest round while a job goes, and in as long a time in which nobody does ----
longest() { # NAME FROM TO
	awk -v from="$2" -v to="$3" 'FNR == 1 { last = 0 } last && $1 > from && last < to && $1 - last > most { most = $1 - last }
		{ last = $1 } END { printf "%.1f\n", 1000 * most }' "$work/times.$1".?
}
settles() { is_at "$1" "$2" && is_in "$1" && held "$1"; } # NAME AGGREGATOR
go_to() { # AGGREGATOR
	local from=$EPOCHREALTIME to
	if [ "$1" = one ]; then "$trib" node drain two >/dev/null; else "$trib" node resume two >/dev/null; fi
	if [ "$1" = two ]; then
		wait_for 20 eval 'is_at a two || is_at b two' || return 1
		find_moved
		from=$(awk -v t="$EPOCHREALTIME" 'BEGIN { printf "%.6f", t - 0.5 }')
	fi
	wait_for 20 settles $moved "$1" || return 1
	to=$EPOCHREALTIME
	sleep 1.5
	longest $moved "$from" "$to" >>"$work/going"
	longest $moved "$(awk -v b="$to" 'BEGIN { printf "%.6f", b + 0.2 }')" \
		"$(awk -v a="$from" -v b="$to" 'BEGIN { printf "%.6f", b + 0.2 + (b - a) }')" >>"$work/resting"
}
spread() { sort -n "$1" | awk '{ a[NR] = $1 } END { printf "least %s, median %s, 90 %% %s, longest %s ms, of %d\n", a[1], a[int((NR + 1) / 2)], a[int(0.9 * NR + 0.5)], a[NR], NR }'; }
for ((i = 0; i < ${2:-0}; i++)); do
	check "to the other aggregator" go_to two && check "... and back" go_to one
done
if [ -s "$work/going" ]; then
	echo "   the longest round while a job goes: $(spread "$work/going")"
	echo "   ... and while none does: $(spread "$work/resting")"
fi

# ---- an aggregator that ends while it is joined ----
check "a job is told to go there" stopped_when_chosen two || { cat "$work/controller"; exit 1; }
find_moved
check "... job $moved joins it" wait_for 10 joins $moved
kill -KILL "${agents[two]}"
from=$(rounds_of $moved)
check "... it is killed: ranks say that they use their own trees" wait_for 20 said $moved "cannot join the shared aggregator at .*; requests use the job's own trees"
check "... the controller learns of it" wait_for 10 has_none $moved
check "... and says so" grep -q "job ${number[$moved]} takes no turns for now: not all of its ranks have joined ${at[two]}" "$work/controller"
check "... the job goes on" wait_for 20 rounds_past $moved $((from + 100))
shared two
check "... and joins one again, when there is one" wait_for 30 is_in $moved
check "... and gets turns" wait_for 20 held $moved
check "... with the trees that it had" same_trees $moved

for name in a b; do
	check "job $name never looked for other trees" lacks "goes on in the trees" "$work/$name.0" "$work/$name.1" ||
		grep -h "other trees\|goes on in the trees" "$work/$name".?
done

# ---- one of the own trees is lost while a star is joined ----
check "a job is told to go there" stopped_when_chosen two || { cat "$work/controller"; exit 1; }
find_moved
check "... job $moved joins it" wait_for 10 joins $moved
own=own1
grep -q ":$((port + 100))(" <<<"$(api GET "/v1/jobs/${number[$moved]}" | jq -r '.communicators[0].plan')" || own=own2
kill -KILL "${agents[$own]}"
check "... $own, of its own trees, is killed: it goes on in others" wait_for 20 said $moved 'goes on in the trees of plan 2'
kill -CONT "${agents[two]}"
from=$(rounds_of $moved)
check "... and does so" wait_for 20 rounds_past $moved $((from + 100))
for name in a b; do check "... job $name gets turns" wait_for 20 held $name; done

touch "$work/enough"
for name in a b; do check "job $name: exact sums" ended_well $name; done
for name in one two; do
	kill -TERM "${agents[$name]}"
	check "aggregator $name had one job at once" wait_for 20 grep -q '"over_capacity":0' "$work/$name"
done
done_checking
