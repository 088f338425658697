#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What trib jobs and trib explain say of a job: its state, age and rate, why it got another plan, and that it has ended.
# Ended jobs go away. Usage: test_job_list.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
start "$@"
need_control
export TRIB_TIMEOUT=20 TRIB_KEEP_ENDED=8
control=127.0.0.1:$(free_port)
export TRIB_CONTROLLER=$control
check "a controller starts" controller || exit 1
agent a1 "$(free_port)"
check "an agent joins" wait_for 20 node_is a1 live

state() { "$trib" jobs | awk -v job="$TRIB_JOB" '$1 == job { print $3 }'; }
state_is() { [ "$(state)" = "$1" ]; }
rate_shown() { "$trib" jobs | awk -v job="$TRIB_JOB" '$1 == job' | grep -q 'b/s'; }
explains() { "$trib" explain "$TRIB_JOB" >"$work/explain" 2>&1 && grep -q "$1" "$work/explain"; }
gone() { "$trib" jobs >"$work/jobs" && lacks "^ *$TRIB_JOB " "$work/jobs"; }

eval "$("$trib" job new --size 2)"
check "a job that nobody has joined is new" state_is new
check "... and its age is told" grep -qE ' [0-9]+ s ' <("$trib" jobs | awk -v job="$TRIB_JOB" '$1 == job')
go -n 2 -- "$worker" --rounds 1000000 --until "$work/over" --max 100000 &
run=$!
check "with its ranks it is running" wait_for 20 state_is running
check "... and its rate is told" wait_for 30 rate_shown
check "trib explain speaks of the present" explains '  It uses 1 aggregator in 1 tree' || cat "$work/explain"
touch "$work/over"
wait $run
check "when its ranks have left, it has ended" wait_for 10 state_is ended
check "trib explain speaks of the past" explains '  It used 1 aggregator in 1 tree' || cat "$work/explain"
check "... and says that it has ended" grep -q '^Job .* has ended' "$work/explain"

go -n 2 -- "$worker" --rounds 3 --max 1000
check "another run: the history names the cause" \
	explains 'plan [23]: the job started again: the ranks of plan [12] had left' || cat "$work/explain"
check "ended jobs go away" wait_for 40 gone

check "states have colours on a terminal" grep -q $'\033\\[32mlive' <(script -qc "'$trib' nodes" /dev/null </dev/null)
check "... but not with NO_COLOR" lacks $'\033' <(NO_COLOR=1 script -qc "'$trib' nodes" /dev/null </dev/null)
done_checking
