#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ranks from other launchers' environments, on loopback: test_launchers.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
unset TRIB_RANK TRIB_SIZE RANK WORLD_SIZE "${!OMPI_@}" "${!PMI_@}" "${!PMIX_@}" "${!SLURM_@}"
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

# by_mpirun NAME PROGRAM OPTION...: the real thing.
by_mpirun() {
	local what=$1
	shift
	timeout 60 "$@" -n 3 "$worker" "${args[@]}" >"$out" 2>&1
	check "$what: exact on all ranks" right 3
	check "... which are 0, 1 and 2" test "$(grep -o 'rank [0-2] of 3' "$out" | sort -u | wc -l)" = 3
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

kill -TERM "$aggregator"
wait "$aggregator"
check "the aggregator ends well" test $? = 0
check "... having dropped nothing foreign" test "$(counter cookie "$work/tribd")" = 0
done_checking
