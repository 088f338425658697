#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ranks without an aggregator sum around a ring: the same bits as through an aggregator, also on links with faults.
# Ranks that die or never come are named. Usage: test_ring.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_death.sh"
need_clusters "$@"
start "$@"
name=tr$$
job=(--rounds 60 --seed 7 --max 100000 --split)

# --- through an aggregator: what the bits have to be
up $name --hosts 4 --servers 1 --switch --link 500mbit
TRIB_RING=off go_right "through an aggregator" 4 "${job[@]}"
digests "$out" >"$work/expected"
TRIB_RING=all go_right "around the ring, by an aggregator's hosts" 4 "${job[@]}"
check "... bitwise the same" same_digests "$work/expected"
go_right "the faster of both ways" 4 "${job[@]}"
check "... bitwise the same" same_digests "$work/expected"

# --- no aggregator
run_options=--ring go_right "no aggregator" 4 "${job[@]}"
check "... bitwise the same" same_digests "$work/expected"
check "... and no daemon has run" lacks '"tribd":' "$out"
for only in allreduce reduce broadcast allgather reduce_scatter barrier; do
	run_options=--ring go_right "$only" 4 --only $only --rounds 6 --seed 8 --max 1000000
done
run_options=--ring go_right "two ranks" 2 --rounds 20 --seed 9

# --- ranks that die, hang, never come, or belong to another job
export TRIB_COOKIE=0000000000000a11 TRIB_SIZE=4 TRIB_TIMEOUT=5
at=$(address h1):7651
meet=TRIB_RENDEZVOUS
endless=(--rounds 1000000 --max 200000)
workers "0 1 2 3" "${endless[@]}"
in_mid_round "a rank is killed"
end "${pids[2]}"
errors "a rank is killed" "0 1 3" "peer|timeout" "rank 2"
end "${pids[@]}"

workers "0 1 2 3" "${endless[@]}" --absent 3
in_mid_round "a rank does not call"
errors "a rank does not call" "0 1 2" timeout "rank 3"
end "${pids[@]}"

# Small vectors go directly from each rank to each other rank.
workers "0 1 2 3" --rounds 1000000 --max 2000
in_mid_round "a rank is killed amid small vectors"
end "${pids[1]}"
errors "a rank is killed amid small vectors" "0 2 3" "peer|timeout" "rank 1"
end "${pids[@]}"

workers "0 1 3" "${endless[@]}"
errors "a rank never comes" 0 timeout "have not come to the rendezvous of rank 0: .*2"
end "${pids[@]}"

workers "0 1 2" --rounds 3
(TRIB_COOKIE=0000000000000b22 && workers 3 --rounds 3 && wait)
check "a rank of another job is refused" grep -q 'refused at the rendezvous: rank 0 belongs to another job' "$work/rank.3"
end "${pids[@]}"
unset TRIB_COOKIE TRIB_SIZE TRIB_TIMEOUT
down

# --- links with faults
if has_bpf; then
	up $name --hosts 4 --servers 1 --switch --link 500mbit --loss 0.02 --dup 0.02 --reorder 0.02 --corrupt 0.005 --seed 3
	TRIB_TRANSPORT=udp run_options=--ring go_right "all faults" 4 "${job[@]}"
	check "... bitwise the same" same_digests "$work/expected"
	check "... the ranks sent $(worker_sum resent) packets again" test "$(worker_sum resent)" -gt 20
	check "... and got $(worker_sum duplicates) packets twice" test "$(worker_sum duplicates)" -gt 20
	run_options=--ring go_right "all faults, long messages by TCP" 4 "${job[@]}"
	check "... bitwise the same" same_digests "$work/expected"
	go_right "all faults, the faster of both ways" 4 "${job[@]}"
	check "... bitwise the same" same_digests "$work/expected"
	down
else
	omit "links with faults need root, and a build with BPF programs"
fi
# --- a rank leaves while its vector is still on the way, longer than a failed ring takes to close
unset TRIB_SIZE TRIB_TIMEOUT
up $name --hosts 2 --link 1mbit
run_options=--ring go_right "a root leaves at once" 2 --only broadcast --rounds 1 --max 60000 --seed 2
down
# --- a message takes longer than a connection may stall
up $name --hosts 2 --link 5mbit
TRIB_LOG=info run_options=--ring go_right "a slow link" 2 --only allreduce --rounds 8 --max 250000 --types f32 --seed 2
check "... is no stall" lacks 'the TCP connection stalls' "$out"
down
done_checking
