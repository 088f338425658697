#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Small vectors by slots: the same bits as by dense, with faults, deaths and a controller, in user space and in the
# kernel. Usage: test_slot.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
need_clusters "$@"
start "$@"
export TRIB_COOKIE=0000000000005107
a=ts$$
planes=udp
if has_bpf && has_xdp; then
	planes='udp xdp tc'
else
	omit "XDP needs root, and a build with BPF programs"
fi
mixed=(--rounds 40 --max 14000 --split --seed 5) # up to 112,000 bytes: both engines have work
small=(--rounds 250 --max 1000 --seed 6)        # up to 8000 bytes: all vectors use slots
pids=()

says() { grep -q "$1" "$work/tribd"; } # WORDS

# same PLANE ENGINE: both kinds of job, with the bits of dense. Where slots carry large vectors too, sums of large
# floats have other blocks, and so other bits.
same() {
	run_options="--plane $1"
	TRIB_ENGINE=$2 go_right "$1, $2, small vectors" 4 "${small[@]}"
	check "... the same bits" same_digests "$work/small"
	# Until the routes to all ranks are known, and on a busy machine, the daemon sums a part.
	[ "$1" != xdp ] || in_kernel 50
	TRIB_ENGINE=$2 go_right "$1, $2, vectors of all sizes" 4 "${mixed[@]}"
	if [ "$2" != slot ]; then
		check "... the same bits" same_digests "$work/mixed"
	elif [ -e "$work/slot" ]; then
		check "... the same bits as before" same_digests "$work/slot"
	else
		digests "$out" >"$work/slot"
	fi
}

# --- what the bits have to be: dense, in user space
up $a --hosts 4 --servers 1
run_options='--plane udp'
TRIB_ENGINE=dense go_right "dense, vectors of all sizes" 4 "${mixed[@]}"
digests "$out" >"$work/mixed"
TRIB_ENGINE=dense go_right "dense, small vectors" 4 "${small[@]}"
digests "$out" >"$work/small"

# --- each engine on each plane
for plane in $planes; do
	for engine in auto slot; do
		[ "$plane $engine" = 'tc slot' ] || same "$plane" $engine
	done
done
if [ "$planes" != udp ]; then
	run_options='--plane xdp'
	TRIB_ENGINE=auto go_right "xdp, barriers" 4 --only barrier --rounds 300 --seed 8
	check "... $(counter kernel_results) of $(counter results) results were made in the kernel" \
		test "$(counter kernel_results)" -ge 150
fi

# --- which engine it is: told by the aggregator
for engine in dense auto; do
	TRIB_LOG=info aggregator s1 && aggregator_ready
	TRIB_ENGINE=$engine go -n 4 --net $a --aggregator "$at" --timeout 30 -- "$worker" "${small[@]}"
	check "$engine: exact on all ranks" right 4
	end_aggregator
	if [ $engine = dense ]; then
		check "... without slots" lacks 'runs with 4 children: slot' "$work/tribd"
	else
		check "... with slots" says 'runs with 4 children: slot, '
	fi
	check "... beside dense" says 'runs with 4 children: dense'
done

# --- large ones of the small vectors are split over lanes, and have the same bits
TRIB_LOG=info aggregator s1 --threads 3 && aggregator_ready
TRIB_LANES=3 TRIB_ENGINE=auto go -n 4 --net $a --aggregator "$at" --timeout 60 -- "$worker" "${mixed[@]}"
check "three lanes: exact on all ranks" right 4
check "... the same bits" same_digests "$work/mixed"
end_aggregator
check "... of slots" says 'runs with 4 children: slot, 3 lanes'
down

# --- faults
all=(--loss 0.1 --dup 0.05 --reorder 0.05 --corrupt 0.01)
if has_bpf; then
	up $a --hosts 4 --servers 1 --link 200mbit "${all[@]}" --seed 2
	for plane in $planes; do
		same "$plane" auto
		check "... $(counter checksum) packets were corrupt" test "$(counter checksum)" -gt 0
		check "... $(worker_sum resent) packets were sent again" test "$(worker_sum resent)" -gt 50
	done
	check "... $(faults lost) packets were lost" test "$(faults lost)" -gt 300
	down
else
	omit "links with faults need root, and a build with BPF programs"
fi

# --- frames of XDP that do not arrive, as the ends of the links have no program; and generic mode
# far WHAT OPTION...: with a tribd that has these options
far() {
	local what=$1
	shift
	aggregator s1 --plane xdp "$@" && aggregator_ready
	go -n 4 --net $a --aggregator "$at" --plane udp --timeout 30 -- "$worker" "${small[@]}"
	check "$what: exact on all ranks" right 4
	check "... the same bits" same_digests "$work/small"
	go -n 4 --net $a --aggregator "$at" --plane udp --timeout 30 -- "$worker" "${mixed[@]}"
	check "$what, vectors of all sizes: exact on all ranks" right 4
	check "... the same bits" same_digests "$work/mixed"
	end_aggregator
}
if [ "$planes" != udp ]; then
	up $a --hosts 4 --servers 1 --no-offload
	far "results from XDP do not arrive"
	aggregator s1 --plane xdp && aggregator_ready
	go -n 4 --net $a --aggregator "$at" --plane udp --timeout 30 -- "$worker" --rounds 1000000 --max 1000 --seed 6 \
		--until "$work/enough" &
	job=$!
	check "... which is noticed" wait_for 30 says 'warn.*rank [0-3] (host.*interface eth0 does not reach it'
	touch "$work/enough"
	wait $job
	out=$work/out
	check "... and the sums are exact" right 4
	end_aggregator
	far "generic mode" --generic
	down
	up $a --hosts 4 --servers 1
	far "generic mode with offloads" --generic
	down
fi

# --- somebody dies
# workers: four of them, in the background, with small vectors; outputs in $work/rank.N
workers() {
	local rank
	rm -f "$work"/rank.* "$work"/mark.*
	pids=()
	for rank in 0 1 2 3; do
		TRIB_RANK=$rank TRIB_SIZE=4 TRIB_TIMEOUT=5 TRIB_AGGREGATOR=$at "$trib" net exec --name $a \
			h$((rank + 1)) -- "$worker" --mark "$work/mark" --linger 2 "$@" >"$work/rank.$rank" 2>&1 &
		pids[rank]=$!
	done
	check "four workers work" wait_for 20 all_marked 4
}
end() { # PID...
	kill -KILL "$@"
	wait "$@"
} 2>/dev/null
said() { # WORDS RANK...
	local words=$1 rank
	shift
	for rank; do
		check "... rank $rank: $words" wait_for 15 grep -qE "$words" "$work/rank.$rank" || cat "$work/rank.$rank"
	done
}
endless=(--rounds 100000000 --only allreduce --max 60)
waits_told() { "$trib" net exec --name $a s1 -- "$trib" explain --aggregator "$at" | grep -qE 'Its ranks wait for sums (polling|sleeping) \('; }
up $a --hosts 4 --servers 1
[ "$planes" = udp ] || hold_frames
for plane in ${planes% tc}; do # tribd notices deaths, on tc as on udp
	aggregator s1 --plane "$plane" && aggregator_ready
	workers "${endless[@]}"
	check "... and trib explain says how they wait" wait_for 10 waits_told
	end "${pids[2]}"
	echo "$plane: a worker is killed"
	said 'error peer.*rank 2 \(host' 0 1 3
	end "${pids[@]}" "$aggregator"
	aggregator s1 --plane "$plane" && aggregator_ready
	workers "${endless[@]}"
	end "$aggregator"
	echo "$plane: the aggregator is killed"
	said "error aggregator.*aggregator at $at" 0 1 2 3
	end "${pids[@]}"
	aggregator s1 --plane "$plane" && aggregator_ready
	workers "${endless[@]}" --absent 3
	echo "$plane: a worker lives, and does not call"
	said 'error timeout.*rank 3' 0 1 2
	end "${pids[@]}" "$aggregator"
done
down

# --- with a controller, an aggregator that dies is survived
need_control
control=127.0.0.1:$(free_port)
export TRIB_CONTROLLER=$control
base=$(free_port)
# job ROUNDS: four ranks on this machine, in the background; outputs in $run
job() {
	local rank
	run=$(mktemp -d "$work/run.XXXX") pids=()
	eval "$("$trib" job new --size 4)"
	for rank in 0 1 2 3; do
		TRIB_MTU=1500 TRIB_RANK=$rank TRIB_SIZE=4 TRIB_AGGREGATOR=$TRIB_AGGREGATOR TRIB_JOB=$TRIB_JOB \
			TRIB_COOKIE=$TRIB_COOKIE "$worker" --rounds "$1" --seed 7 --max 60 --pause 0.01 \
			--mark "$run/mark" >"$run/worker.$rank" 2>&1 &
		pids+=($!)
	done
}
all_well() {
	local pid well=0
	for pid in "${pids[@]}"; do
		wait "$pid" || well=1
	done
	[ $well = 0 ] || tail -n 5 "$run"/worker.?
	return $well
}
bits() { cat "$run"/worker.? | grep -o 'rank.*right.*common [0-9a-f]*'; }
check "a controller starts" controller || exit 1
for name in a1 a2; do
	agent $name $((base + 20 * ${name#a}))
	check "... and $name" wait_for 20 node_is $name live
done
job 300
check "a controller's job" all_well
bits >"$work/right"
check "... has digests" test "$(wc -l <"$work/right")" = 4
job 300
check "the job works" wait_for 20 all_marked 4 "$run"
for name in a1 a2; do
	kill -KILL "${agents[$name]}"
	wait "${agents[$name]}" 2>/dev/null
	agent $name $((base + 20 * ${name#a}))
	wait_for 20 node_is $name live
done
check "both aggregators are killed, one after the other, and the job goes on" all_well
check "... by another plan" plan_is_past 1
check "... with the same sums" cmp "$work/right" <(bits)
done_checking
