#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Exact results on links that lose, duplicate, reorder and corrupt packets. Usage: test_faults.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"
name=tf$$

happened() { # COUNTER AT_LEAST
	local n
	n=$(faults "$1")
	check "$n packets $1" test "$n" -ge "$2"
}

# --- a run without faults: what the bits have to be
up $name --hosts 4 --servers 1 --switch --link 200mbit
go_right "no faults" 4 --rounds 100 --seed 7 --max 30000 --split
digests "$out" >"$work/expected"
check "no packet is corrupt" test "$(counter checksum)" = 0
down

# --- all at once
all=(--loss 0.1 --dup 0.05 --reorder 0.05 --corrupt 0.01)
need_faults
up $name --hosts 4 --servers 1 --switch --link 200mbit "${all[@]}" --seed 1
go_right "all faults, 100 rounds" 4 --rounds 100 --seed 7 --max 30000 --split
check "... bitwise as without faults" same_digests "$work/expected"
happened lost 300
happened duplicated 150
happened reordered 50
happened corrupted 30
check "the aggregator counted $(counter checksum) corrupt packets" test "$(counter checksum)" -gt 5
check "the workers dropped $(worker_sum dropped) packets" test "$(worker_sum dropped)" -gt 5
check "the workers sent $(worker_sum resent) packets again" test "$(worker_sum resent)" -gt 100
down

# --- one by one, other seeds
seed=10
for fault in "loss 0.1 lost" "dup 0.2 duplicated" "reorder 0.2 reordered" "corrupt 0.05 corrupted"; do
	read -r option rate counter <<<"$fault"
	seed=$((seed + 1))
	up $name --hosts 4 --servers 1 --switch --link 200mbit "--$option" "$rate" --seed $seed
	go_right "$option $rate" 4 --rounds 40 --seed $seed --max 30000
	happened "$counter" 50
	down
done

# --- reduces of floats: a rank that gets no result has only the aggregator's word that its part,
# at the highest exponent of all, is there
up $name --hosts 4 --servers 1 --switch --link 200mbit "${all[@]}" --seed 112
for only in reduce reduce_scatter; do
	run_options='--pool 100K' go_right "all faults, $only, a small pool" 4 \
		--only $only --rounds 60 --seed 112 --max 30000
done
down

# --- on a bridge with one link for the aggregator, several lanes, a small pool
up $name --hosts 3 --servers 1 --link 200mbit "${all[@]}" --seed 21
run_options='--lanes 2 --pool 256K' go_right "all faults, 2 lanes, a small pool" 3 \
	--rounds 30 --seed 22 --max 60000
happened lost 100
down

# --- trib top shows the loss of every rank's link, up and down
up $name --hosts 3 --servers 1 --switch --link 200mbit --loss 0.1 --seed 31
export TRIB_COOKIE=0000000000001055
aggregator s1 && aggregator_ready
"$trib" run -n 3 --net $name --aggregator "$at" --timeout 30 -- "$worker" --only allreduce \
	--rounds 30000 --max 200000 >"$work/load" 2>&1 &
load=$!
# asked JOB: do three children know?
asked() { on s1 "$trib" top --json -a "$at" | grep "\"job\":$1,.*\"state\":\"running\"" | grep -oE '"judged":([3-9][0-9]{3}|[0-9]{5,}),' | wc -l | grep -qx 3; }
check "ranks know what became of 3000 packets each" wait_for 60 asked '[0-9]*'
on s1 "$trib" top --once -a "$at" >"$work/top"
grep -A3 ' RANK ' "$work/top"
# lost COLUMN LEAST MOST: is it between these, of all three ranks?
lost() { [ "$(awk -v c="$1" -v l="$2" -v m="$3" '$1 ~ /^[0-2]$/ && $c > l && $c < m' "$work/top" | wc -l)" = 3 ]; }
# Of 10 %: what was sent on a guess, and had to be sent again anyway, is not counted as lost; a result that
# comes very late is.
check "trib top says what is lost on the way up" lost 6 4 13
check "... and on the way down" lost 8 4 30
kill -TERM $load
wait $load 2>/dev/null

# --- errors show it too: a rank stops for good, and the others learn which rank, and what its link lost
pids=()
for rank in 0 1 2; do
	TRIB_AGGREGATOR=$at TRIB_TIMEOUT=6 TRIB_JOB=2 TRIB_RANK=$rank TRIB_SIZE=3 "$trib" net exec --name $name \
		h$((rank + 1)) -- "$worker" --only allreduce --rounds 30000 --max 200000 >"$work/rank.$rank" 2>&1 &
	pids+=($!)
done
check "three ranks work" wait_for 60 asked 2
kill -STOP "${pids[2]}"
for rank in 0 1; do
	wait "${pids[rank]}"
	check "rank $rank is told: $(grep -o 'rank 2 (host.*' "$work/rank.$rank" | cut -c 1-300)" \
		grep -qE 'rank 2 .* is lost.*; its link lost [0-9.]+ % of [0-9]+ packets' "$work/rank.$rank"
done
kill -KILL "${pids[2]}"
wait "${pids[2]}" 2>/dev/null
# A rank lives but does not call. The error of the others has the loss of their own links, if it is known. After
# a few vectors it may not be known yet, so there are several tries.
told() { grep -hE 'waiting for rank 2 .*packets from here to .* [0-9.]+ % were lost' "$work"/rank.[01]; }
is_told() { told >/dev/null; }
for try in 3 4 5 6; do
	for rank in 0 1 2; do
		TRIB_AGGREGATOR=$at TRIB_TIMEOUT=3 TRIB_JOB=$try TRIB_RANK=$rank TRIB_SIZE=3 "$trib" net exec \
			--name $name h$((rank + 1)) -- "$worker" --only allreduce --rounds 30000 --max 200000 --seed 5 \
			--pause $((rank == 2 ? 20 : 0)) >"$work/rank.$rank" 2>&1 &
		pids[rank]=$!
	done
	wait "${pids[0]}" "${pids[1]}"
	kill -KILL "${pids[2]}"
	wait "${pids[2]}" 2>/dev/null
	is_told && break
done
check "a rank that waits in vain says what its own link lost: $(told | grep -o 'waiting for .*' | head -n 1)" is_told
kill -TERM "$aggregator"
wait "$aggregator"
down
done_checking
