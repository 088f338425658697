#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Jobs with a controller, started by several launchers. The controller and aggregators are killed while jobs
# run. Usage: test_control_jobs.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
start "$@"
need_control
unset TRIB_RANK TRIB_SIZE RANK WORLD_SIZE "${!OMPI_@}" "${!PMI_@}" "${!PMIX_@}" "${!SLURM_@}"
export TRIB_TIMEOUT=20
control=127.0.0.1:$(free_port)
one=$(free_port) two=$((one + 20)) three=$((one + 40))
out=$work/out
check "a controller starts" controller || exit 1
agent a1 "$one"
agent a2 "$two"
for name in a1 a2; do
	check "$name joins" wait_for 20 node_is $name live
done

# new_job N [OPTION]...: its settings are in the environment.
new_job() {
	local size=$1
	shift
	eval "$("$trib" job new -c "$control" --size "$size" "$@")"
}

# by_hand WHAT RANK_VARIABLE SIZE_VARIABLE: three processes that have these variables set.
by_hand() {
	local what=$1 rank pids=()
	new_job 3
	for rank in 0 1 2; do
		env "$2=$rank" "$3=3" timeout 40 "$worker" --rounds 20 --max 20000 --split >"$work/by_hand.$rank" 2>&1 &
		pids+=($!)
	done
	wait "${pids[@]}"
	cat "$work"/by_hand.? >"$out"
	check "$what: exact on all ranks" right 3
}
by_hand "as by trib run" TRIB_RANK TRIB_SIZE
by_hand "as by torchrun" RANK WORLD_SIZE
by_hand "as by srun" SLURM_PROCID SLURM_NTASKS
by_hand "with no rank, which the controller gives" NO_RANK NO_SIZE
check "the controller tells how many aggregators its plan uses" \
	test "$(api GET "/v1/jobs/$TRIB_JOB" | jq -r '.communicators[] | select(.key == "0").verdict.aggregators')" -ge 1

tried=0
for program in mpirun.openmpi mpirun; do
	command -v $program >/dev/null && $program --version 2>/dev/null | grep -q 'Open MPI' || continue
	new_job 3
	timeout 60 $program --allow-run-as-root --oversubscribe -x TRIB_AGGREGATOR -x TRIB_JOB -x TRIB_COOKIE \
		-x TRIB_TIMEOUT -n 3 "$worker" --rounds 20 --max 20000 >"$out" 2>&1
	check "Open MPI's mpirun: exact on all ranks" right 3
	tried=1
	break
done

new_job 3
go -n 3 --aggregator "$control" --timeout 20 -- "$worker" --rounds 20 --max 20000
check "trib run: exact on all ranks" right 3
go -n 3 --aggregator "$control" --timeout 20 -- "$worker" --rounds 20 --max 20000
check "... and once more in the same job" right 3

# shellcheck disable=SC2016 # the shell of each rank expands TRIB_RANK
unlike=(sh -c 'TRIB_WIRE=$((TRIB_RANK ? 32 : 16)) exec "$0" "$@"' "$worker" --only allreduce --rounds 100 --max 50000
	--hold "$work/hold")
three_rest() { [ "$(grep -c rests "$out")" = 3 ]; }
touch "$work/hold"
new_job 3
go -n 3 --aggregator "$control" --timeout 20 -- "${unlike[@]}" &
launcher=$!
check "ranks with different values of TRIB_WIRE start" wait_for 20 three_rest
"$trib" explain -c "$control" "$TRIB_JOB" >"$work/explained"
check "... and trib explain tells it: $(grep different "$work/explained")" \
	grep -q 'different values of TRIB_WIRE (32: ranks 1-2; 16: ranks 0), so sums of large vectors fail if their widths differ' "$work/explained"
kill -KILL "$controller"
wait "$controller" 2>/dev/null
check "... the controller is killed and starts again" controller || exit 1
check "... and tells it still" grep -q 'different values of TRIB_WIRE (32: ranks 1-2; 16: ranks 0)' \
	<("$trib" explain -c "$control" "$TRIB_JOB")
rm "$work/hold"
wait "$launcher"
check "... sums of large vectors fail, and ranks are named: $(grep -om 1 "ranks called.*" "$out")" \
	grep -q 'ranks called different collectives: rank .*(host .* called allreduce.* bits (TRIB_WIRE)' "$out"

# A worker that shows a cookie of another job is not let in by the aggregators either.
TRIB_AGGREGATOR=127.0.0.1:$one TRIB_JOB=1 TRIB_COOKIE=0000000000001234 TRIB_TIMEOUT=1 TRIB_RANK=0 TRIB_SIZE=2 \
	timeout 10 "$worker" --rounds 1 >"$out" 2>&1
check "an aggregator keeps out who has no job's cookie" grep -q 'refused rank .*wrong cookie' "$out"

# long_job ROUNDS [OPTION]...: three ranks, until they are in the middle of it; then do something, then see_right.
long_job() {
	local rank rounds=$1
	shift
	new_job 3
	pids=()
	rm -f "$work"/mark.*
	for rank in 0 1 2; do
		TRIB_RANK=$rank TRIB_SIZE=3 timeout 100 "$worker" --rounds "$rounds" --max 50000 --mark "$work/mark" "$@" >"$work/long.$rank" 2>&1 &
		pids+=($!)
	done
	wait_for 20 all_marked 3
}
see_right() {
	wait "${pids[@]}"
	cat "$work"/long.? >"$out"
	check "$1" right 3
}

long_job 600
"$trib" explain -c "$control" "$TRIB_JOB" >"$work/explained"
check "trib explain says the width of elements: $(grep 'On the wire' "$work/explained")" \
	grep -q 'On the wire, .* bf16 and f16 16 bits, f32 32 bits (TRIB_WIRE=auto)' "$work/explained"
kill -KILL "$controller"
wait "$controller" 2>/dev/null
see_right "a job goes on when the controller is killed"
check "the controller starts again" controller || exit 1
for name in a1 a2; do
	check "... $name is back" wait_for 20 node_is $name live
done

agent a3 "$three"
check "a3 joins" wait_for 20 node_is a3 live
long_job 1500 --pause 0.005
TRIB_RANK=2 TRIB_SIZE=3 timeout 40 "$worker" --rounds 1 >"$out" 2>&1
check "a rank that is started twice is refused while the first one works" grep -q 'rank 2 (host .*) has joined job .* already' "$out"
before=$(generation "$TRIB_JOB")
for name in a1 a2; do
	kill -KILL "${agents[$name]}"
done
see_right "a job goes on when its aggregators are killed"
check "... by another plan: $before, then $(generation "$TRIB_JOB")" test "$(generation "$TRIB_JOB")" -gt "$before"
# On TCP too, a worker finds out by itself that TRIB_AGGREGATOR is the address of a controller.
agent t1 $((one + 60)) --plane tcp
check "an aggregator on TCP joins" wait_for 20 node_is t1 live
TRIB_PLANE=tcp by_hand "on TCP, given the controller as TRIB_AGGREGATOR" TRIB_RANK TRIB_SIZE
TRIB_PLANE=tcp by_hand "... and no rank" NO_RANK NO_SIZE
by_hand "on UDP, beside an aggregator on TCP" TRIB_RANK TRIB_SIZE
"$trib" node drain -c "$control" a3 >/dev/null
new_job 2
pids=()
for rank in 0 1; do
	TRIB_RING=off TRIB_TIMEOUT=2 TRIB_RANK=$rank TRIB_SIZE=2 timeout 20 "$worker" --rounds 1 >"$work/apart.$rank" 2>&1 &
	pids+=($!)
done
wait "${pids[@]}"
cat "$work"/apart.? >"$out"
check "with that one alone, UDP's ranks are told: $(cat "$out")" \
	grep -q "no live aggregator is on the ranks' plane (udp), but 1 on another (t1 is on tcp)" "$out"
kill -TERM "${agents[t1]}"
wait "${agents[t1]}"
kill -TERM "$controller" "${agents[a3]}"
wait "$controller" "${agents[a3]}"
[ $tried = 1 ] || omit "Open MPI is not installed (package openmpi-bin)"
done_checking
