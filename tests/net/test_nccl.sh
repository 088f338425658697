#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# NCCL's calls over the plugin, on hosts with shaped links: sums through the aggregator and around a ring, and
# what happens when the aggregator or a rank is killed, or no aggregator can be had.
# Usage: test_nccl.sh PATH_TO_TRIB
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
plugin=$build/adapters/nccl/libnccl-net-tributary.so
[ -e "$plugin" ] || fail "this build has no $plugin"
peer=$(program bench/peers/nccl) || fail "$peer"
out=$work/out

# says TEXT N: N ranks said so.
says() { [ "$(grep -c -- "$1" "$out")" = "$2" ] || { cut -c 1-300 "$out" | tail -n 20; return 1; }; }

# sums ARGS...: ranks of `trib run --nccl` that check every sum. They give up an aggregator after $patience seconds.
patience=20
sums() { go -n 3 --net "$cluster" --nccl --timeout $patience "${run_options[@]}" -- "$peer" --check --iterations 3 --warmup 1 "$@"; }

up "nccl$$" --hosts 3 --link 300mbit
run_options=()

# --- sums are right, in every type that the program knows
for type in f32 bf16 i32; do
	check "$type through the aggregator" sums --bytes 1000004 --type $type
	check "... in the network" says 'this rank uses collnet' 3
done
check "a ring over the plugin's connections" sums --bytes 1000004 --algorithm ring
check "one element" sums --bytes 4

# --- no aggregator: NCCL goes on with rings
patience=4
run_options=(--aggregator "$(address h1):9")
check "sums without an aggregator" sums --bytes 100000
check "... around a ring" says 'this rank uses ring' 3
check "... and each rank has one line that says so" says 'NCCL WARN' 3

# --- an aggregator that refuses them
TRIB_COOKIE=0000000000000001 aggregator h1
check "an aggregator with another cookie" aggregator_ready
run_options=(--aggregator "$at")
TRIB_COOKIE=0000000000000002 check "sums without its help" sums --bytes 100000
check "... around a ring" says 'this rank uses ring' 3
end_aggregator

# --- killed while it sums
aggregator h1
check "an aggregator" aggregator_ready

# ranks: starts them one by one, so that the end of one is not the end of all.
ranks() {
	local rank
	pids=()
	for rank in 0 1 2; do
		: >"$work/rank.$rank"
		TRIB_RANK=$rank TRIB_SIZE=3 TRIB_AGGREGATOR=$at TRIB_TIMEOUT=4 NCCL_NET_PLUGIN=$plugin TRIB_JOB=$1 \
			MASTER_ADDR=$(address h1) MASTER_PORT=7600 "$trib" net exec --name "$cluster" "h$((rank + 1))" -- \
			"$peer" --bytes 20000000 --iterations 1000 --algorithm collnet >"$work/rank.$rank" 2>&1 &
		pids+=($!)
	done
}
all_begun() { [ "$(cat "$work"/rank.* | grep -c '^NETWORK')" = 3 ]; }
all_gone() { ! kill -0 "$@" 2>/dev/null; }

ranks 1
check "ranks that sum" wait_for 20 all_begun
kill -KILL "${pids[2]}"
wait_for 20 all_gone "${pids[0]}"
wait_for 20 all_gone "${pids[1]}"
check "a killed rank ends rank 0" ends_badly "${pids[0]}"
check "... and rank 1" ends_badly "${pids[1]}"
check "... and nobody hangs or crashes" lacks 'hangs\|Sanitizer' "$work/rank.0" "$work/rank.1"

ranks 2
check "ranks that sum" wait_for 20 all_begun
kill -KILL "$aggregator"
for rank in 0 1 2; do
	wait_for 20 all_gone "${pids[$rank]}"
	check "a killed aggregator ends rank $rank" ends_badly "${pids[$rank]}"
done
check "... with an error of the plugin" grep -q 'an error of the plugin' "$work/rank.0"
check "... and nobody hangs" lacks 'hangs' "$work/rank.0" "$work/rank.1" "$work/rank.2"

# --- what `trib check --nccl` says
TRIB_AGGREGATOR=10.0.0.9:7700 "$trib" check --nccl >"$work/check" 2>&1
check "the plugin loads" grep -q '^ok *nccl plugin' "$work/check"
check "... with all versions" grep -q 'nccl versions: ncclNet 11, 10, 9, 8; ncclCollNet 11, 10, 9, 8' "$work/check"
check "... and it is known where it sums" grep -q 'nccl sums: at 10.0.0.9:7700' "$work/check"
NCCL_NET_PLUGIN=/nowhere.so "$trib" check --nccl --json >"$work/check"
check "another plugin does not" grep -q '"level":"fail","name":"nccl plugin"' "$work/check"
done_checking
