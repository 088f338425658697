#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Workers come, leave and are killed. Usage: test_regroup.sh PATH_TO_TRIB [WORKERS]
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
start "$1"
need_control
comers=${2:-20}
epochs=$build/tests/net/worker_epochs
control=127.0.0.1:$(free_port)
export TRIB_CONTROLLER=$control TRIB_TIMEOUT=20
base=$(free_port)
declare -A pids

check "a controller starts" controller || exit 1
for name in a1 a2; do
	agent "$name" $((base + 20 * ${name#a}))
	wait_for 20 node_is "$name" live
done
eval "$("$trib" job new --size 3 --policy shrink)"
unset TRIB_AGGREGATOR
export TRIB_JOB TRIB_COOKIE

# come NUMBER EPOCHS [SETTING...]: a worker that stays for so many; 0: to the end
come() {
	local number=$1 stays=$2
	shift 2
	(cd "$work" && exec env "$@" "$epochs" "$number" 0.4 "$stays" >"$work/worker.$number" 2>&1) &
	pids[$number]=$!
}

# seen NUMBER: in how many epochs it was, as worker 0 saw it
seen() {
	local members n=0
	while read -r _ _ members; do
		n=$((n + (0x$members >> $1 & 1)))
	done < <(grep ^epoch "$work/worker.0")
	echo $n
}

# epochs_are NUMBER: so many are over
epochs_are() { [ "$(grep -c ^epoch "$work/worker.0")" -ge "$1" ]; }

ended_well() { wait "${pids[$1]}" || { cat "$work/worker.$1"; false; }; }

# ---- one comes, one leaves ----
come 0 0 TRIB_RANK=0 TRIB_SIZE=3
come 1 0 TRIB_RANK=1 TRIB_SIZE=3
come 2 1 TRIB_RANK=2 TRIB_SIZE=3
wait_for 10 epochs_are 1
for ((n = 3; n < 3 + comers; n++)); do
	come $n 1
	check "epoch $((n - 1)) is over" wait_for 10 epochs_are $((n - 1))
done
for ((n = 2; n < 3 + comers; n++)); do
	check "worker $n came and left" ended_well $n
	check "... and was in one epoch" test "$(seen $n)" = 1
done

# ---- one dies ----
come 50 0
wait_for 10 epochs_are $((comers + 4))
kill -KILL "${pids[50]}"
wait "${pids[50]}" 2>/dev/null
now=$(grep -c ^epoch "$work/worker.0")
# Killed between epochs, nobody has heard that it is dead: then it is waited for up to its deadline.
check "the others go on without one that was killed" wait_for 40 epochs_are $((now + 3))
check "... as two" test "$(grep ^epoch "$work/worker.0" | tail -n 1)" = "epoch 2 3"
touch "$work/end"
check "the first two end well" ended_well 0
check "... both" ended_well 1
rm "$work/end"

# job_of_three POLICY: a job of three ranks; rank 2 is killed after an epoch
job_of_three() {
	local n
	eval "$("$trib" job new --size 3 --policy "$1")"
	unset TRIB_AGGREGATOR
	export TRIB_JOB TRIB_COOKIE
	for n in 0 1 2; do
		come $n 0 TRIB_RANK=$n TRIB_SIZE=3
	done
	wait_for 10 epochs_are 2
	kill -KILL "${pids[2]}"
	wait "${pids[2]}" 2>/dev/null
}

# ---- the owner of a job chose to wait ----
job_of_three wait
now=$(grep -c ^epoch "$work/worker.0")
sleep 3
check "a job that waits does nothing without a killed rank" test "$(grep -c ^epoch "$work/worker.0")" -lt $((now + 2))
check "... and its ranks live" kill -0 "${pids[0]}" "${pids[1]}"
come 3 0 TRIB_RANK=2 TRIB_SIZE=3
check "... and goes on with one in its place" wait_for 20 epochs_are $((now + 3))
check "... as three" test "$(grep ^epoch "$work/worker.0" | tail -n 1)" = "epoch 3 b"
touch "$work/end"
for n in 0 1 3; do
	check "... worker $n ends well" ended_well $n
done
rm "$work/end"

# ---- or to fail ----
export TRIB_TIMEOUT=6
job_of_three fail
for n in 0 1; do
	check "a job that is to fail ends on worker $n" ends_badly "${pids[$n]}"
	check "... with a word on who is lost: $(tail -n 1 "$work/worker.$n" | cut -c 1-200)" \
		grep -qE '^(regroup|init): .*rank 2 .*(lost|policy fail|did not join)' "$work/worker.$n"
done
done_checking
