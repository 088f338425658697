#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The systems that trib bench compares with run here too, and their results are right.
# Usage: test_peers.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"

peers=ring,ps,nccl-collnet,nccl-ring
for peer in openmpi gloo; do
	if [ -x "$build/bench/peers/$peer" ]; then
		peers+=,$peer
	else
		omit "this build has no $peer (package lib$peer-dev)"
	fi
done
rows() { grep -c "$1" "$work/json"; }
timeout -k 5 120 "$trib" bench allreduce -n 3 --sizes 64K --iterations 3 --repeats 1 --check --against "$peers" \
	--json "$work/json" >"$work/bench" 2>&1
check "trib bench allreduce against $peers" test $? = 0 || cat "$work/bench"
for peer in tributary ${peers//,/ }; do
	check "... $peer: no sum is wrong" grep -q "\"system\": \"$peer\".*\"failed\": 0" "$work/json" || cat "$work/json"
done
peers=trib-star,trib-ring,${peers/,ps,nccl-collnet,nccl-ring/}
for collective in reduce-scatter allgather; do
	timeout -k 5 120 "$trib" bench allreduce --collective $collective -n 3 --sizes 200K --iterations 3 --repeats 1 --check \
		--against "$peers" --json "$work/json" >"$work/bench" 2>&1
	check "$collective against $peers" test $? = 0 || cat "$work/bench"
	for peer in tributary ${peers//,/ }; do
		check "... $peer: no result is wrong" grep -q "\"system\": \"$peer\".*\"failed\": 0" "$work/json" || cat "$work/json"
	done
done
not "$trib" bench allreduce --collective allgather --against ps >"$work/bench" 2>&1
check "a parameter server has no allgather" grep -q 'ps has no allgather' "$work/bench"
done_checking
