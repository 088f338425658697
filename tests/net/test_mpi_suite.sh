#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Other people's MPI programs with the adapter and without: HPCC has the same results, and mpi4py's own tests have
# the same verdicts. Usage: test_mpi_suite.sh PATH_TO_TRIB [all]
# all: all tests of mpi4py, for ten minutes (make test-mpi); otherwise those of one module.
. "$(dirname "$0")/lib.sh"
start "$@"
folder=$(realpath "$(dirname "$0")/../mpi")
adapter=$build/adapters/mpi/libtribmpi-openmpi.so
command -v mpirun.openmpi >/dev/null || skip "Open MPI is not installed (package openmpi-bin)"
need_built adapters/mpi/libtribmpi-openmpi.so ompi-c # package libopenmpi-dev
unset TRIB_RANK TRIB_SIZE TRIB_AGGREGATOR TRIB_CONTROLLER TRIB_RENDEZVOUS TRIB_COOKIE "${!OMPI_@}" "${!PMI_@}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ours=(-x TRIB_MPI=on -x TRIB_LOG=info -x TRIB_TIMEOUT=60 -x "LD_PRELOAD=$adapter")

# ranks N WORD...
ranks() { timeout -k 5 "${limit:-100}" mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 -n "$@"; }
# carried N FILE: N ranks say that the adapter carried at least a hundred calls.
carried() { [ "$(grep -c 'Tributary carried [0-9]\{3,\} collectives' "$2")" = "$1" ]; }

# results FILE: of HPCC, without times, rates and the residual of a random matrix.
results() { grep -E '^(HPL_N|[A-Za-z]*_(errors|n|N|Procs|ErrorsFraction|residual|maxErr)|Success|CommWorldProcs)=|Ax-b.*PASSED' "$1"; }

check_hpcc() {
	local run settings=/usr/share/doc/hpcc/examples/_hpccinf.txt
	if ! command -v hpcc >/dev/null || [ ! -e "$settings" ]; then
		omit "hpcc is not installed (package hpcc)"
		return
	fi
	for run in plain ours; do
		mkdir "$work/$run"
		sed 's/^1000  /200   /; s/^80   /40   /' $settings >"$work/$run/hpccinf.txt"
	done
	(cd "$work/plain" && ranks 4 hpcc) >"$work/plain/out" 2>&1
	(cd "$work/ours" && ranks 4 "${ours[@]}" hpcc) >"$work/ours/out" 2>&1
	for run in plain ours; do
		results "$work/$run/hpccoutf.txt" >"$work/$run/results"
	done
	check "HPCC: it ends well without the adapter" grep -q '^Success=1' "$work/plain/results"
	check "... with it, the same results" cmp "$work/plain/results" "$work/ours/results"
	check "... and the same checks passed" test "$(grep -c PASSED "$work/plain/hpccoutf.txt")" = "$(grep -c PASSED "$work/ours/hpccoutf.txt")"
	check "... by the adapter" carried 4 "$work/ours/out"
}

check_mpi4py() {
	local python='' each rank tests
	for each in python3 /usr/bin/python3; do
		"$each" -c 'import mpi4py.MPI' 2>/dev/null && python=$each && break
	done
	[ -n "$python" ] || { omit "mpi4py is not installed (package python3-mpi4py)" && return; }
	tests=$(bash "$folder/mpi4py.sh") || { omit "$tests" && return; }
	ranks 3 "$python" "$folder/suite.py" "$tests" "$work/plain" "$@" >"$work/plain.out" 2>&1
	check "mpi4py's tests: they run without the adapter" grep -q '^ok ' "$work/plain.0"
	ranks 3 "${ours[@]}" "$python" "$folder/suite.py" "$tests" "$work/ours" "$@" >"$work/ours.out" 2>&1
	for rank in 0 1 2; do
		check "... with it, rank $rank: $(grep -c '^ok ' "$work/ours.$rank") passed, as without" \
			diff "$work/plain.$rank" "$work/ours.$rank"
	done
	check "... by the adapter" carried 3 "$work/ours.out"
}

check_hpcc
if [ "${2:-}" = all ]; then
	limit=900 check_mpi4py all
else
	check_mpi4py test_cco_buf
fi
done_checking
