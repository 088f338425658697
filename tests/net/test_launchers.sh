#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ranks from other launchers' environments, on loopback, through an aggregator and without one:
# test_launchers.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
unset TRIB_RANK TRIB_SIZE RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR "${!OMPI_@}" "${!PMI_@}" "${!PMIX_@}" "${!SLURM_@}"
export TRIB_COOKIE=0000000000001a2b TRIB_TIMEOUT=20
args=(--rounds 20 --max 20000 --split)
out=$work/out

# Any free port, which another one may take before tribd does: so several tries.
for _ in 1 2 3 4 5; do
	port=$((12000 + RANDOM % 18000)) aggregator ''
	aggregator_ready && break
done
check "an aggregator at $at" aggregator_ready || exit 1
export TRIB_AGGREGATOR=$at

# by_hand WHAT RANK_VARIABLE SIZE_VARIABLE: three processes that have these variables set.
by_hand() {
	local what=$1 rank pids=()
	for rank in 0 1 2; do
		env "$2=$rank" "$3=3" timeout 30 "$worker" "${args[@]}" >"$work/by_hand.$rank" 2>&1 &
		pids+=($!)
	done
	wait "${pids[@]}"
	cat "$work"/by_hand.? >"$out"
	check "$what: exact on all ranks" right 3
	check "... which are 0, 1 and 2" test "$(grep -o 'rank [0-2] of 3' "$out" | sort -u | wc -l)" = 3
}

by_hand "as by trib run" TRIB_RANK TRIB_SIZE
by_hand "as by torchrun" RANK WORLD_SIZE
by_hand "as by Open MPI" OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE
by_hand "as by MPICH" PMI_RANK PMI_SIZE
by_hand "as by srun" SLURM_PROCID SLURM_NTASKS
# One launcher inside an allocation of another: the inner one's count.
export SLURM_PROCID=0 SLURM_NTASKS=1
by_hand "as by torchrun inside srun" RANK WORLD_SIZE
by_hand "as by Open MPI inside srun" OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE
unset SLURM_PROCID SLURM_NTASKS
export RANK=0 WORLD_SIZE=1
by_hand "what the user says comes first" TRIB_RANK TRIB_SIZE
unset RANK WORLD_SIZE

# by_mpirun NAME PROGRAM OPTION...: the real thing. Then two jobs at once that name nothing, not even a cookie.
by_mpirun() {
	local what=$1 jobs=()
	shift
	timeout 60 "$@" -n 3 "$worker" "${args[@]}" >"$out" 2>&1
	check "$what: exact on all ranks" right 3
	check "... which are 0, 1 and 2" test "$(grep -o 'rank [0-2] of 3' "$out" | sort -u | wc -l)" = 3
	for job in 1 2; do
		env -u TRIB_AGGREGATOR -u TRIB_COOKIE timeout 60 "$@" -n 3 "$worker" "${args[@]}" --seed $job >"$work/job.$job" 2>&1 &
		jobs+=($!)
	done
	wait "${jobs[@]}"
	for job in 1 2; do
		out=$work/job.$job
		check "$what, no aggregator, job $job of two: exact on all ranks" right 3
		check "... and it says where they meet" grep -q 'no aggregator is named: 3 ranks .* meet at 127.0.0.1:2' "$out"
	done
	out=$work/out
}

tried=''
for program in mpirun mpirun.openmpi; do
	command -v $program >/dev/null && $program --version 2>/dev/null | grep -q 'Open MPI' || continue
	by_mpirun "Open MPI ($program)" $program --allow-run-as-root --oversubscribe
	tried=yes
	break
done
[ -n "$tried" ] || omit "Open MPI is not installed (package openmpi-bin)"
tried=''
for program in mpiexec.hydra mpirun.mpich; do
	command -v $program >/dev/null || continue
	by_mpirun "MPICH ($program)" $program
	tried=yes
	break
done
[ -n "$tried" ] || omit "MPICH is not installed (package mpich)"

# torchrun and srun without an aggregator: ranks on one host need no cookie.
unset TRIB_AGGREGATOR TRIB_COOKIE
export MASTER_ADDR=no-such-host.invalid MASTER_PORT=$$ LOCAL_WORLD_SIZE=3
by_hand "as by torchrun, no aggregator" RANK WORLD_SIZE
unset MASTER_ADDR MASTER_PORT LOCAL_WORLD_SIZE
export SLURM_JOB_ID=$$ SLURM_STEP_ID=0 SLURM_STEP_NODELIST='no-such-host[1-2]' SLURM_STEP_NUM_NODES=1
by_hand "as by srun, no aggregator" SLURM_PROCID SLURM_NTASKS
SLURM_PROCID=1 SLURM_NTASKS=3 "$trib" check >"$out"
check "trib check says where the ranks meet" grep -q '^ok *launcher: rank 1 of 3, from srun; .* meet at 127.0.0.1:2' "$out"
SLURM_STEP_NUM_NODES=2 SLURM_PROCID=1 SLURM_NTASKS=3 "$trib" check >"$out"
check "... or that they need a cookie" grep -q '^warn *launcher: .* at no-such-host1:2.* need a cookie' "$out"
unset "${!SLURM_@}"
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 OMPI_MCA_ess_base_jobid=1 "$worker" >"$out" 2>&1
check "ranks that cannot know where to meet say what to set" grep -q 'set TRIB_RENDEZVOUS=.*where rank 0 runs' "$out"

kill -TERM "$aggregator"
wait "$aggregator"
check "the aggregator ends well" test $? = 0
check "... having dropped nothing foreign" test "$(counter cookie "$work/tribd")" = 0
done_checking
