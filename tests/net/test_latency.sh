#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# trib bench latency: its rows, its JSON, its plot, and what it refuses.
# Usage: test_latency.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"

benchmark=latency
measure=(--iterations 4 --warmup 1)
. "$(dirname "$0")/lib_bench.sh"

ours=udp
[ "$planes" = udp ] || ours=xdp,udp,dense,auto,auto-udp
adapter=$build/adapters/mpi/libtribmpi-openmpi.so
if [ -e "$adapter" ] && [ -x "$build/bench/peers/openmpi" ]; then
	ours+=",mpi-udp$([ "$planes" = udp ] || echo ,mpi-xdp)"
fi
peers=''
for peer in openmpi gloo; do
	if [ -x "$build/bench/peers/$peer" ]; then
		peers+=${peers:+,}$peer
	else
		omit "this build has no $peer (package lib$peer-dev)"
	fi
done
IFS=, read -ra all <<<"$ours${peers:+,$peers},veth$([ "$(nproc)" -lt 2 ] || echo ,veth-spin)"
IFS=, read -ra posting <<<"udp${peers:+,$peers}"

bench "against ${peers:-none}" --hosts 2 --sizes 32 --systems "$ours" --against "${peers:-none}" --plot "$work/plot.svg"
for name in "${all[@]}"; do
	check "... $name has one row, and no run has failed" rows 1 "\"system\": \"$name\".*\"failed\": 0"
	check "... $name is in the table" grep -q " $name" "$work/out" || cat "$work/out"
done
for field in plane hosts bytes median_s p1_s p99_s; do
	check "... every row has $field" rows ${#all[@]} "\"$field\": [\"0-9]"
done
check "... and there is no other row" rows ${#all[@]} '"hosts": 2, "bytes": 32,'
check "... the plot is there" grep -q '</svg>' "$work/plot.svg"

bench "with two numbers of hosts and two sizes" --hosts 2,3 --sizes 4,4K --systems udp --against none --type i32
check "... a row for each" rows 4 '"system": "udp".*"failed": 0'
check "... and a bare round trip where one packet is enough" rows 2 '"system": "veth", .*"bytes": 4,'
check "... and nowhere else" rows 2 '"system": "veth"'

bench "with many vectors at once" --hosts 2 --sizes 1K --many 20 --systems udp --against "${peers:-none}"
check "... a row for each system" rows ${#posting[@]} '"many": 20,.*"failed": 0'

bench "with the plane pisa" --hosts 2 --systems pisa,udp --against none
if rows 0 '"system": "pisa"'; then
	check "... pisa is left out, and the table says why" grep -q 'left out: pisa (' "$work/out"
	check "... and JSON says why" grep -q '"left_out": "pisa (' "$work/json"
else
	check "... pisa has one row, and no run has failed" rows 1 '"system": "pisa".*"failed": 0'
fi

check "one host is refused" refuses '2 hosts at least' --hosts 1
check "a wrong list of hosts is refused" refuses '"x" is not a whole number' --hosts 2,x
check "a wrong size is refused" refuses 'not a multiple of 4' --sizes 6
check "a wrong system is refused" refuses 'is not one of xdp, tc, udp' --systems udp,foo
check "a wrong peer is refused" refuses 'is not one of all, none' --against foo
check "a wrong type is refused" refuses 'is not one of f32, i32' --type f64
check "no calls are refused" refuses 'at least 1' --iterations 0
check "a wrong option is refused" refuses 'not an option' --bogus
done_checking
