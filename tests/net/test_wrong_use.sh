#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Wrong programs, and starts under bad conditions: ranks that call different collectives, a host without a route, a
# controller with a full disk, aggregators that restart while ranks leave. Usage: test_wrong_use.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
need_clusters "$@"
start "$@"
export TRIB_COOKIE=57a9757a9757a975

# ---- different calls ----
planes='udp tcp'
if has_bpf && has_xdp; then
	planes+=' xdp'
else
	omit "XDP needs root, and a build with BPF programs"
fi
up "tw$$" --hosts 3
for plane in $planes; do
	for engine in auto dense; do
		rm -f "$work"/mark.*
		TRIB_ENGINE=$engine TRIB_MTU=1500 go -n 3 --net "$cluster" --plane "$plane" --timeout 20 -- "$worker" \
			--rounds 50 --seed 3 --max 3000 --only allreduce --types i64 --ops sum --mark "$work/mark" --differ 1 --linger 2
		check "$plane, $engine: rank 1 calls something else" \
			test "$(grep -c 'error mismatch' "$out")" = 3
		check "... told in words, with what others called: $(grep -m 1 'error mismatch' "$out" | cut -c 1-300)" \
			grep -q 'error mismatch.*rank 1 .*called allreduce of 181 i64, sum' "$out"
	done
done

# ---- no route yet ----
aggregator h1
aggregator_ready
on h2 ip route flush table main
rm -f "$work"/route.*
for rank in 0 1; do
	TRIB_AGGREGATOR=$at TRIB_RANK=$rank TRIB_SIZE=2 TRIB_TIMEOUT=30 TRIB_LOG=notice "$trib" net exec --name "$cluster" \
		"h$((rank + 2))" -- "$worker" --rounds 3 >"$work/route.$rank" 2>&1 &
	pids[rank]=$!
done
check "a host without a route waits: $(cat "$work/route.0")" wait_for 10 grep -q 'no way to the aggregator at .* yet' "$work/route.0"
device=$(on h2 ip -o link | awk -F'[ :@]+' '$2 != "lo" { print $2; exit }')
on h2 ip route add "${at%.*}.0/24" dev "$device"
for rank in 0 1; do
	check "... and joins when it has one, rank $rank" wait "${pids[rank]}"
done
end_aggregator

# ---- a full disk at the controller ----
need_control
control=127.0.0.1:$(free_port)
export TRIB_CONTROLLER=$control TRIB_TIMEOUT=15 TRIB_STATE=$work/small
mkdir -p "$TRIB_STATE"
if is_real_root && mount -t tmpfs -o size=600k none "$TRIB_STATE"; then
	base=$(free_port)
	controller ''
	agent a1 "$base"
	wait_for 10 node_is a1 live
	eval "$("$trib" job new --size 2)"
	unset TRIB_AGGREGATOR
	export TRIB_JOB TRIB_COOKIE
	dd if=/dev/zero of="$TRIB_STATE/full" bs=4k 2>/dev/null
	# The store's own files may have room left.
	for _ in {1..200}; do
		job '{"name":"fills","size":2}'
		[ "$job" != null ] || break
	done
	for rank in 0 1; do
		TRIB_RANK=$rank TRIB_SIZE=2 TRIB_LOG=warn "$worker" --rounds 3 >"$work/disk.$rank" 2>&1 &
		pids[rank]=$!
	done
	check "a full disk at the controller reaches ranks that wait for a plan" \
		wait_for 10 grep -q 'cannot store the plan' "$work/disk.0"
	check "... all of them" wait_for 10 grep -q 'cannot store the plan' "$work/disk.1"
	check "... and is one line in the controller's log: $(grep -m 1 'could not be stored' "$work/controller")" \
		test "$(grep -c 'could not be stored' "$work/controller")" = 1
	rm "$TRIB_STATE/full"
	for rank in 0 1; do
		check "... and there is a plan when the disk has room, rank $rank" wait "${pids[rank]}"
	done
	kill "$controller" "${agents[a1]}"
	wait "$controller" "${agents[a1]}" 2>/dev/null
	umount "$TRIB_STATE"
else
	omit "a small disk needs root"
fi

# ---- aggregators restart while ranks leave ----
export TRIB_STATE=$work/state TRIB_TIMEOUT=20
control=127.0.0.1:$(free_port)
export TRIB_CONTROLLER=$control

# two_agents [OPTION]...: two of them, the second one with these options
two_agents() {
	agent a1 $((base + 20))
	agent a2 $((base + 40)) "$@"
}

# leave WHAT [OPTION]...: three ranks leave one after the other; the agents are killed and restarted in between.
leave() {
	local what=$1 rank name
	shift
	two_agents "$@"
	for name in a1 a2; do
		wait_for 10 node_is "$name" live
	done
	eval "$("$trib" job new --size 3)"
	unset TRIB_AGGREGATOR
	export TRIB_JOB TRIB_COOKIE
	rm -f "$work"/leave.*
	for rank in 0 1 2; do
		TRIB_RANK=$rank TRIB_SIZE=3 TRIB_LOG=notice "$worker" --rounds 10 --stagger 1.5 >"$work/leave.$rank" 2>&1 &
		pids[rank]=$!
	done
	check "$what: rank 0 leaves" wait "${pids[0]}"
	check "... and rank 1" wait "${pids[1]}"
	for name in a1 a2; do
		kill -KILL "${agents[$name]}"
		wait "${agents[$name]}" 2>/dev/null
	done
	two_agents "$@"
	wait "${pids[2]}"
	check "... and rank 2, after the agents were killed and restarted: $(tail -n 1 "$work/leave.2" | cut -c 1-200)" \
		grep -q 'rank 2 of 3: right' "$work/leave.2"
	kill "${agents[a1]}" "${agents[a2]}"
	wait "${agents[a1]}" "${agents[a2]}" 2>/dev/null
}
base=$(free_port)
controller ''
leave "own trees"
leave "turns at a shared aggregator" --capacity 1
done_checking
