#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Large vectors take the faster way, through the aggregator or among the ranks, and the log says so. The sums have the
# same bits either way. Usage: test_ways.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
name=tw$$
export TRIB_WAY=auto
job=(--only allreduce --types f32 --ops sum --rounds 40 --seed 5 --max 400000)
told='notice: allreduces from [0-9]* KiB go among the ranks: [0-9.]* times faster than through the aggregator'

# --- a server whose link is a fifth of a rank's
up $name --hosts 4 --servers 1 --link 200mbit --link s1=40mbit
TRIB_LOG=info go_right "a slow server" 4 "${job[@]}"
check "... the log says once that the ranks' way is faster" test "$(grep -c "$told" "$out")" = 1
around=$(counter results)
digests "$out" >"$work/expected"
TRIB_LOG=info TRIB_WAY=ring go_right "around the ring by wish" 4 "${job[@]}"
check "... bitwise the same" same_digests "$work/expected"
check "... no trial" lacks 'KiB go' "$out"
check "... $(counter results) sums at the aggregator" test "$(counter results)" -lt 100

# --- trib explain says so while the job runs
export TRIB_COOKIE=0000000000000a11
aggregator s1
check "an aggregator at $at" aggregator_ready
TRIB_AGGREGATOR=$at go -n 4 --net $name -- "$worker" --only allreduce --max 400000 --rounds 1000000 --until "$work/seen" &
runs=$!
# shellcheck disable=SC2317  # wait_for calls it
explains() { on s1 "$trib" explain --aggregator "$at" | grep -q 'go among the ranks, which is up to [0-9.]* times as fast'; }
check "trib explain says that the ranks' way is faster" wait_for 30 explains
touch "$work/seen"
wait $runs
out=$work/out
check "... exact on all ranks" right 4
end_aggregator
unset TRIB_COOKIE

# --- ranks 2 and 3 cannot reach each other: packets between them end at the loopback interface
on h3 ip route add "$(address h4)/32" dev lo || fail "no route"
TRIB_TIMEOUT=12 go -n 4 --net $name -- "$worker" --rounds 6 --seed 6 --max 60000
check "ranks that cannot reach each other: exact on all ranks" right 4
check "... and they say so" grep -q 'rank [23] cannot reach all other ranks' "$out"
down

# --- a switch
up $name --hosts 4 --servers 1 --switch --link 200mbit
TRIB_LOG=info go_right "a switch" 4 "${job[@]}"
check "... bitwise the same" same_digests "$work/expected"
check "... is faster than the ring" grep -q 'info: allreduces from .* KiB go through the aggregator' "$out"
check "... nobody complains" lacks "$told" "$out"
check "... $(counter results) sums there, with the slow server $around" test "$(counter results)" -gt $((2 * around))
down

# --- short vectors have four ways, one of which sums at one rank: a whole trial, and then the fastest
up $name --hosts 4 --servers 1
short=(--only allreduce --types f32 --ops sum --rounds 1500 --seed 9 --max 16000)
TRIB_WAY=aggregator go_right "short vectors through the aggregator" 4 "${short[@]}"
digests "$out" >"$work/expected"
TRIB_LOG=info go_right "all four ways of short vectors" 4 "${short[@]}"
check "... bitwise the same" same_digests "$work/expected"
check "... the trial has ended" grep -q 'allreduces from 16 KiB go' "$out"
down
done_checking
