#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A controller without aggregators: ranks sum around a ring. Usage: test_ring_plan.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
start "$1"
need_control
control=127.0.0.1:$(free_port)
export TRIB_CONTROLLER=$control TRIB_TIMEOUT=10
declare -A pids

check "a controller starts" controller || exit 1

# job_of SIZE POLICY: sets and exports its number and cookie
job_of() {
	eval "$("$trib" job new --size "$1" --policy "$2")"
	unset TRIB_AGGREGATOR
	export TRIB_JOB TRIB_COOKIE TRIB_SIZE=$1
}

# start_rank RANK COMMAND...: in the background, with its output in $work/rank.RANK
start_rank() {
	(cd "$work" && TRIB_LOG=notice TRIB_RANK=$1 exec "${@:2}" >"$work/rank.$1" 2>&1) &
	pids[$1]=$!
}

ended_well() { wait "${pids[$1]}" || { cat "$work/rank.$1"; false; }; }

# ring: the plan of the job's first communicator
ring() { api GET "/v1/jobs/$TRIB_JOB" | jq -r '.communicators[] | select(.key == "0").plan'; }
# ring_of N: it is a ring of so many ranks
ring_of() { [[ $(ring) == "ring("* ]] && [ "$(ring | tr , '\n' | wc -l)" = "$1" ]; }

# ---- every collective, and a split ----
job_of 4 fail
for rank in 0 1 2 3; do
	start_rank $rank "$build/tests/net/worker_check" --rounds 40 --seed 5 --max 60000 --split
done
for rank in 0 1 2 3; do
	check "rank $rank has right results around a ring" ended_well $rank
done
check "... and says why" grep -q 'no aggregator is available: 4 ranks sum among themselves' "$work/rank.2"
check "the plan is a ring of four" ring_of 4
"$trib" explain "$TRIB_JOB" >"$work/explained"
check "trib explain says so" grep -q 'summed among its 4 ranks' "$work/explained"
check "... and why" grep -q 'plan 1: among the ranks: no aggregator is available: of 0' "$work/explained"

# ---- a rank dies; the others regroup, and get another ring ----
epochs_are() { [ "$(grep -c ^epoch "$work/rank.0")" -ge "$1" ]; }
job_of 3 shrink
for rank in 0 1 2; do
	start_rank $rank "$build/tests/net/worker_epochs" $rank 0.4 0
done
check "three ranks regroup" wait_for 20 epochs_are 3
kill -KILL "${pids[2]}"
wait "${pids[2]}" 2>/dev/null
now=$(grep -c ^epoch "$work/rank.0")
check "two go on without one that was killed" wait_for 40 epochs_are $((now + 3))
check "... as two" test "$(grep ^epoch "$work/rank.0" | tail -n 1)" = "epoch 2 3"
check "... around a ring of two" ring_of 2

# ---- an aggregator comes: the next plan has trees ----
agent a1 "$(free_port)"
wait_for 10 node_is a1 live
has_trees() { [[ $(ring) == *"(0-1)" ]]; }
check "the next plan has trees" wait_for 20 has_trees
touch "$work/end"
check "rank 0 ends well" ended_well 0
check "... and rank 1" ended_well 1
rm "$work/end"
kill -KILL "${agents[a1]}"
wait "${agents[a1]}" 2>/dev/null

# ---- the only aggregator is for turns, and the ranks have no trees of their own ----
agent a2 "$(free_port)" --capacity 1
wait_for 10 node_is a2 live
wait_for 10 node_is a1 silent
job_of 2 fail
for rank in 0 1; do
	start_rank $rank "$build/tests/net/worker_check" --rounds 5 --seed 6 --max 5000
done
check "without own trees rank 0 has right results" ended_well 0
check "... and rank 1" ended_well 1
check "... around a ring" ring_of 2
"$trib" explain "$TRIB_JOB" >"$work/explained"
check "... because the aggregator is for turns" grep -q 'among the ranks: .*only for turns (--capacity)' "$work/explained"

# ---- the controller knows that ranks around a ring live ----
job_of 2 fail
for rank in 0 1; do
	start_rank $rank "$build/tests/net/worker_check" --rounds 1000000000 --max 1000 --pause 10 \
		--until "$work/enough" --mark "$work/mark"
done
check "two ranks are at work" wait_for 20 test -e "$work/mark.0"
check "trib jobs says that they sum among themselves" grep -q '^ *among the ranks' <("$trib" jobs)
check "... and trib explain" grep -q 'sums among its 2 ranks' <("$trib" explain "$TRIB_JOB")
TRIB_RANK=0 "$build/tests/net/worker_check" --rounds 1 >"$work/twin" 2>&1
check "a second rank 0 is refused" grep -q 'has joined job .* already, and is alive' "$work/twin"
touch "$work/enough"
check "... and rank 0 ends well" ended_well 0
check "... and rank 1" ended_well 1

# ---- TRIB_RING=off: as without rings ----
job_of 2 fail
for rank in 0 1; do
	TRIB_RING=off TRIB_TIMEOUT=4 start_rank $rank "$build/tests/net/worker_check" --rounds 1
done
for rank in 0 1; do
	wait "${pids[$rank]}"
	check "without a ring rank $rank gets an error" test $? = 3
	check "... which says why" grep -q 'refused rank .*: no aggregator is available: of 2' "$work/rank.$rank"
done

done_checking
