#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Clusters, lanes, pools and settings of all shapes: test_shapes.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
a=ts$$ b=ts$$-b

# How often a result leaves, repeats left out, in hundredths.
sends() { echo $((($(counter sends) - $(counter repeats)) * 100 / ($(counter results) + 1))); }

# sends_each MIN MAX
sends_each() {
	local n
	n=$(sends)
	check "... a result leaves in $n/100 sends" test $n -ge "$1" -a $n -le "$2"
}

jobs_started=()
mixed=(--rounds 40 --max 50000 --split)
sums=(--rounds 30 --max 200000 --only allreduce)

# --- --switch: one port a worker
up $a --hosts 4 --servers 1 --switch --link 1gbit
go_right "a switch" 4 "${mixed[@]}" --seed 31
go_right "a switch, sums" 4 "${sums[@]}" --seed 31
digests "$out" >"$work/expected"
same() { check "... bitwise the same" same_digests "$work/expected"; }
sends_each 95 200
TRIB_MULTICAST=off go_right "no multicast" 4 "${sums[@]}" --seed 31
same
sends_each 380 420 # four children; an answer to a late child counts as a send as well
TRIB_OFFLOAD=off go_right "no offload in the programs" 4 "${sums[@]}" --seed 31
same
run_options='--lanes 2' go_right "2 lanes" 4 "${sums[@]}" --seed 31
same
run_options='--lanes 4' go_right "4 lanes" 4 "${mixed[@]}" --seed 32
TRIB_LANES=2 TRIB_MULTICAST=off TRIB_OFFLOAD=off go_right "2 lanes, neither multicast nor offload" 4 \
	"${mixed[@]}" --seed 33
run_options='--pool 256K' go_right "a small pool" 4 "${sums[@]}" --seed 31
same
run_options='--pool 16K --lanes 2' go_right "a tiny pool, 2 lanes" 4 --rounds 20 --max 30000 --seed 34
TRIB_RATE=50mbit go_right "paced to 50 Mb/s" 4 --rounds 20 --max 30000 --seed 35
TRIB_BUSY_POLL=20 go_right "busy polling" 4 --rounds 20 --max 30000 --seed 36
go_right "more ranks than hosts" 6 --rounds 20 --max 30000 --seed 37
go_right "2 ranks of 4 hosts" 2 "${mixed[@]}" --seed 38
go_right "1 rank" 1 --rounds 20 --seed 39

# --- another cluster beside it, both at work
up $b --hosts 3 --servers 1 --link 500mbit
go -n 3 --net $b --timeout 30 -- "$worker" "${mixed[@]}" --seed 41 &
beside=$!
out=$work/out-a
timeout 60 "$trib" run -n 4 --net $a --timeout 30 -- "$worker" "${mixed[@]}" --seed 42 >"$out" 2>&1
wait $beside
check "one of two clusters at once" right 4
out=$work/out
check "the other one: exact on all ranks" right 3
down

# --- two jobs at one aggregator at once
cluster=$a
export TRIB_COOKIE=000000000000cafe
aggregator s1 && aggregator_ready
for job in 5 6; do
	TRIB_JOB=$job timeout 60 "$trib" run -n 4 --net $a --aggregator "$at" --timeout 30 -- \
		"$worker" "${mixed[@]}" --seed $job >"$work/job.$job" 2>&1 &
	jobs_started[job]=$!
done
wait "${jobs_started[@]}"
for job in 5 6; do
	out=$work/job.$job
	check "job $job of two at one aggregator: exact on all ranks" right 4
done
kill -TERM "$aggregator"
wait "$aggregator"
check "the aggregator has added for both" test "$(counter completed "$work/tribd")" -gt 1000
unset TRIB_COOKIE
down

# --- a bridge: the aggregator has one link for all
up $a --hosts 4 --servers 1 --link 500mbit
# The bridge learns the members from packets, which a new link may drop. So there are three tries.
for _ in 1 2 3; do
	go_right "a bridge" 4 "${sums[@]}" --seed 31
	same
	[ "$(sends)" -gt 200 ] || break
done
sends_each 95 200
down
up $a --hosts 4 --servers 1 --link 500mbit --no-offload
go_right "a bridge without offloads" 4 "${sums[@]}" --seed 31
same
down

# --- no server: the aggregator is on h1, beside rank 0
up $a --hosts 4 --servers 0 --link 500mbit
go_right "no server" 4 "${mixed[@]}" --seed 51
down

# --- unlike links
up $a --hosts 4 --servers 1 --switch --link 500mbit --link h2=100mbit --link h3=20mbit
go_right "unlike links" 4 --rounds 20 --max 50000 --seed 61
run_options='--pool 64K' go_right "unlike links, a small pool" 4 --rounds 20 --max 50000 --seed 62
down

# --- 8 hosts
up $a --hosts 8 --servers 1 --switch --link 500mbit
go_right "8 hosts" 8 "${mixed[@]}" --seed 71
go_right "8 hosts, sums" 8 "${sums[@]}" --seed 71
sends_each 95 200
done_checking
