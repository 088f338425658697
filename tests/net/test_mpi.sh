#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# MPI programs with the adapter, on loopback, with Open MPI and MPICH: results are those of the MPI library,
# and every bad set-up ends with a sentence. Usage: test_mpi.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
unset TRIB_RANK TRIB_SIZE TRIB_AGGREGATOR TRIB_CONTROLLER TRIB_RENDEZVOUS TRIB_COOKIE "${!OMPI_@}" "${!PMI_@}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TRIB_LOG=info
export MPIR_CVAR_POLLS_BEFORE_YIELD=1 # MPICH: ranks share cores, so each leaves its core while it waits
out=$work/out

# part N NAME=VALUE... PROGRAM ARGUMENT...: words of a launcher for N ranks with these variables.
part() {
	local n=$1
	shift
	words+=(-n "$n")
	while [[ $1 == *=* ]]; do
		case $mpi in
		openmpi) words+=(-x "$1") ;;
		mpich) words+=(-env "${1%%=*}" "${1#*=}") ;;
		esac
		shift
	done
	words+=("$@")
}

# launch: runs the words, output to $out.
more=()
launch() {
	case $mpi in
	openmpi) timeout -k 5 100 mpirun.openmpi --oversubscribe -x TRIB_LOG -x TRIB_TIMEOUT "${words[@]}" ;;
	mpich) timeout -k 5 100 mpiexec.mpich "${more[@]}" "${words[@]}" ;;
	esac >"$out" 2>&1
}

# mpi_run N NAME=VALUE... PROGRAM ARGUMENT...
mpi_run() {
	words=()
	part "$@"
	launch
}

# mpi_run_two NAME=VALUE... -- NAME=VALUE...: $program on two ranks, which have different variables.
mpi_run_two() {
	local first=()
	while [ "$1" != -- ]; do
		first+=("$1")
		shift
	done
	shift
	words=()
	part 1 "${first[@]}" "$program" --short
	words+=(:)
	part 1 "$@" "$program" --short
	launch
}

# all_right N: all ranks found all results right, and most calls went through the adapter.
all_right() {
	if [ "$(grep -c '^rank [0-9]*: [0-9]* right$' "$out")" = "$1" ] && lacks WRONG "$out"; then
		return 0
	fi
	grep -v ' path ' "$out" | cut -c 1-300 | tail -30
	return 1
}
# carried N: each of N ranks says that the adapter carried at least a hundred calls.
carried() { [ "$(grep -c 'Tributary carried [0-9]\{3,\} collectives' "$out")" = "$1" ]; }
says() { grep -q "$1" "$out" || { tail -20 "$out" && false; }; }

# An aggregator at any free port.
for _ in 1 2 3 4 5; do
	port=$((12000 + RANDOM % 18000)) aggregator ''
	aggregator_ready && break
done
check "an aggregator at $at" aggregator_ready || exit 1

check_mpi() {
	local adapter=$build/adapters/mpi/libtribmpi-$mpi.so other=$build/adapters/mpi/libtribmpi-$2.so program=$3 ranks=$4 length=$5
	local on=(TRIB_MPI=on "LD_PRELOAD=$adapter")
	export TRIB_TIMEOUT=60

	mpi_run "$ranks" "${on[@]}" "$program" "$length"
	check "$mpi, no aggregator: as MPI itself" all_right "$ranks"
	check "... by the adapter" carried "$ranks"
	# By TCP, messages need MPI's progress on both sides.
	mpi_run "$ranks" "${on[@]}" "TRIB_AGGREGATOR=$at" OMPI_MCA_btl=tcp,self "$program" --short --multiple
	check "$mpi, by an aggregator, nonblocking calls too: as MPI itself" all_right "$ranks"
	check "... by the adapter" carried "$ranks"

	TRIB_TIMEOUT=2
	mpi_run_two "LD_PRELOAD=$adapter" -- TRIB_LOG=info
	check "$mpi, a rank without the adapter: MPI does it all" all_right 2
	check "... and a sentence names the rank" says 'MPI itself carries all collectives: rank 1 does not have the adapter'
	not mpi_run_two TRIB_LOG=info -- "LD_PRELOAD=$adapter"
	check "$mpi, rank 0 without the adapter: a sentence says so" says 'rank 0 has not answered for 4 s: it does not have the adapter'
	[ -e "$other" ] || return
	not mpi_run 1 "LD_PRELOAD=$other" "$program" --short
	check "$mpi, the other MPI's adapter: a sentence says so" says "preload libtribmpi-$mpi.so"
}

# What does not depend on the MPI.
check_set_ups() {
	local adapter=$build/adapters/mpi/libtribmpi-$mpi.so program=$1 version
	local on=(TRIB_MPI=on "LD_PRELOAD=$adapter")

	mpi_run 2 "LD_PRELOAD=$adapter" TRIB_MPI=auto "TRIB_AGGREGATOR=$at" TRIB_LOG=info "$program" --short
	check "$mpi, ranks of one host: MPI does it all" all_right 2
	check "... which the log says" says 'ranks share hosts'
	mpi_run 2 "LD_PRELOAD=$adapter" TRIB_MPI=auto TRIB_LOG=info "$program" --short
	check "$mpi, no aggregator, short calls: MPI does it all" says 'go through Tributary from 512 KiB on'
	check "... and ranks do not look for each other" test "$(grep -c 'ranks share hosts' "$out")" = 0

	not mpi_run 2 "${on[@]}" TRIB_AGGREGATOR=127.0.0.1:9 "$program" --short
	check "$mpi, no aggregator where it should be: a sentence says so" says 'there is no aggregator at 127.0.0.1:9'
	not mpi_run 2 "${on[@]}" TRIB_CONTROLLER=127.0.0.1:9 "$program" --short
	check "$mpi, no controller: a sentence says so" says 'controller.*127.0.0.1:9'
	not mpi_run_two "${on[@]}" -- "${on[@]}" TRIB_MPI_EXACT=all
	check "$mpi, settings differ: a sentence says so" says 'TRIB_MPI_EXACT differs between ranks 0 and 1'
	not mpi_run_two "LD_PRELOAD=$adapter" -- "${on[@]}"
	check "$mpi, only one rank demands the adapter: the job ends, and a sentence says why" says 'error: .*TRIB_MPI differs between ranks 0 and 1'
	mpi_run_two "LD_PRELOAD=$adapter" -- "LD_PRELOAD=$adapter" "TRIB_AGGREGATOR=$at"
	check "$mpi, only one rank knows the aggregator: MPI does it all" all_right 2
	check "... and a sentence names the ranks" says 'rank 1 knows an aggregator, rank 0 does not'
	# The same library, but for the text of its version.
	version=$("$trib" --version | grep -o '[0-9][0-9.]*' | head -n 1)
	sed "s/$version/9.9.9/g" "$adapter" >"$work/other.so"
	mpi_run_two "LD_PRELOAD=$adapter" -- "LD_PRELOAD=$work/other.so"
	check "$mpi, versions differ: MPI does it all" all_right 2
	check "... and a sentence names the rank" says "rank 1 has version 9.9.9 of the adapter, rank 0 has $version"
}

# The launcher leaves the other ranks alone, so that they find out themselves.
check_death() {
	local adapter=$build/adapters/mpi/libtribmpi-mpich.so
	words=()
	export TRIB_TIMEOUT=4
	part 3 TRIB_MPI=on "TRIB_AGGREGATOR=$at" "LD_PRELOAD=$adapter" "$build/tests/net/mpi_check_mpich" --short --die 1
	more=(-disable-auto-cleanup)
	not launch
	more=()
	check "a rank dies: others name it" says 'rank 1.*\(has left\|is dead\|died\|lost\|ended\)'
}

check_fortran() {
	local compiler=mpif90.$mpi
	if ! { command -v gfortran && command -v "$compiler"; } >/dev/null; then
		omit "$mpi: no Fortran (packages gfortran, lib$mpi-dev)"
		return
	fi
	"$compiler" -w -o "$work/fortran-$mpi" "$(dirname "$0")/mpi_fortran.f90" >"$out" 2>&1 ||
		check "$mpi: a Fortran program is built" cat "$out"
	mpi_run 3 TRIB_MPI=on TRIB_TIMEOUT=60 "LD_PRELOAD=$build/adapters/mpi/libtribmpi-$mpi.so" "$work/fortran-$mpi"
	check "$mpi, Fortran: right" test "$(grep -c '^rank [0-9]: right$' "$out")" = 3
	check "... by the adapter" test "$(grep -c 'Tributary carried 6 collectives' "$out")" = 3 || cat "$out"
}

# mpirun is that of the system's choice.
check_run() {
	local kind=mpich
	mpirun --version 2>/dev/null | grep -q 'Open MPI' && kind=openmpi
	[ -x "$build/tests/net/mpi_check_$kind" ] || return
	TRIB_TIMEOUT=60 timeout 60 "$trib" run -n 2 --mpi -- "$build/tests/net/mpi_check_$kind" --short 2>&1 | sed 's/^.mpirun. //' >"$out"
	check "trib run --mpi: as MPI itself" all_right 2
	check "... by the adapter" carried 2
	not timeout 60 "$trib" run -n 2 --mpi --mpirun false -- true >"$out" 2>&1
	check "trib run --mpi without mpirun: a sentence says so" says 'false is not a launcher of Open MPI or MPICH'
}
check_run
for mpi in openmpi mpich; do
	if ! { command -v mpirun.$mpi && pkg-config --exists "${mpi/openmpi/ompi-c}"; } >/dev/null 2>&1; then
		omit "no $mpi (packages $mpi or $mpi-bin, and lib$mpi-dev)"
		continue
	fi
	if [ $mpi = openmpi ]; then
		check_mpi "$mpi" mpich "$build/tests/net/mpi_check_openmpi" 4 --long
		check_set_ups "$build/tests/net/mpi_check_openmpi"
	else # its ranks spin while they wait, so they take long if they share cores
		check_mpi "$mpi" openmpi "$build/tests/net/mpi_check_mpich" 2 --short
		check_death
	fi
	check_fortran
done
end_aggregator
check "the aggregator ends well" test $? = 0
done_checking
