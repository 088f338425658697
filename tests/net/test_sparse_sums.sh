#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Hot rows that an aggregator sums: every push is applied exactly once, on links with faults, and while the
# aggregator, its standby, servers and all of them are killed. Usage: test_sparse_sums.sh PATH_TO_TRIB [KILLS];
# with KILLS it only kills at random, so many times
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$1"
sparse=$(program tests/net/worker_sparse) || fail "$sparse"
command -v python3 >/dev/null || skip "python3 is not installed, and reads JSON"
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "SEED=$seed"
name=tz$$
export TRIB_TIMEOUT=30 TRIB_COOKIE=00000000005ba25e TRIB_JOB=7
declare -A pid

# Processes are started without `on`: their pids are needed, to kill them.
# aggregator HOST [OPTION]...: starts one there, on port 7700.
aggregator() {
	local host=$1
	: >"$work/$host"
	shift
	"$trib" net exec --name "$cluster" "$host" "$tribd" --listen ":7700" --http off "$@" >"$work/$host" 2>&1 &
	pid[$host]=$!
	wait_for 10 grep -q 'ready on' "$work/$host" || fail "$host: $(cat "$work/$host")"
}

# serve SHARD N: a parameter server on host s3, on its folder.
serve() {
	local shard=$1
	: >"$work/serve$shard"
	"$trib" net exec --name "$cluster" s3 "$trib" sparse serve --dir "$work/rows$shard" --shard "$shard/$2" \
		--listen ":$((7800 + shard))" --sync none --snapshot-every 3M --keep-logs --flush "${flush:-0.02}" \
		--memory "${memory:-1M}" --aggregators "$(address s1):7700,$(address s2):7700" \
		>"$work/serve$shard" 2>>"$work/serve$shard.err" &
	pid[shard$shard]=$!
	wait_for 10 grep -q 'ready on' "$work/serve$shard" || fail "shard $shard: $(cat "$work/serve$shard.err")"
}

end() { # SIGNAL WHO
	kill "-$1" "${pid[$2]}"
	{ wait "${pid[$2]}"; } 2>/dev/null
	unset "pid[$2]"
}

servers() { # N: the list for workers
	local i list=''
	for ((i = 0; i < $1; i++)); do list+=${list:+,}$(address s3):$((7800 + i)); done
	export TRIB_SPARSE_SERVERS=$list
}

# push_by N ARG...: N workers push, in the background.
push_by() {
	local n=$1
	shift
	by push "$n" "$@"
}

# by WHAT N ARG...: N workers do that, in the background.
by() {
	local what=$1 n=$2 rank
	shift 2
	workers=()
	for ((rank = 0; rank < n; rank++)); do
		TRIB_RANK=$rank TRIB_SIZE=$n "$trib" net exec --name "$cluster" "h$((rank + 1))" "$sparse" "$what" "$@" \
			>"$work/rank$rank" 2>&1 &
		workers+=($!)
	done
}

pushed() {
	local one
	for one in "${workers[@]}"; do
		wait "$one" || { cat "$work"/rank*; return 1; }
	done
}

running() { kill -0 "${workers[@]}" 2>/dev/null; }
right() { on h1 "$sparse" check "$@"; }
# hot RANKS SHARE: this share of the rows that were pushed went to an aggregator, in percent
hot() {
	cat "$work"/rank[0-9] |
		awk -v n="$1" -v p="$2" '/pushed/ { ranks++; all += $4; hot += $6 } END {
		printf "%.1f %% of %d rows were hot\n", 100 * hot / all, all; exit !(ranks == n && hot >= p / 100 * all) }'
}
hot_pulled() {
	cat "$work"/rank[0-9] |
		awk -v n="$1" -v p="$2" '/pulled/ { ranks++; all += $4; hot += $6 } END {
		printf "%.1f %% of %d rows were hot\n", 100 * hot / all, all; exit !(ranks == n && hot >= p / 100 * all) }'
}
moves() { awk '{ n += $NF } END { exit !(n >= 1) }' "$work"/rank[0-9]; }
status() { # EXPRESSION over v, the status of shard 0
	on h1 "$trib" sparse status --json "$(address s3):7800" >"$work/status" &&
		python3 -c "import json, sys; v = json.load(open('$work/status')); sys.exit(not ($1))"
}
is_hot() { status 'v["tables"] and v["tables"][-1]["hot"] and v["tables"][-1]["hot"]["open"]'; }
explains() { on h1 "$trib" explain --aggregator "$(address s1):7700" | grep -q "$1"; } # WORDS
at_standby() { status "v['tables'][-1]['hot']['open'] and v['tables'][-1]['hot']['aggregator'].startswith('$(address s2):')"; }

planes='udp pisa'
if has_bpf && has_xdp; then
	planes='udp pisa xdp'
else
	omit "XDP needs root, and a build with BPF programs"
fi

sums_on_planes() {
	echo "== sums on each plane"
	for plane in $planes; do
		[ "$plane" != xdp ] || hold_frames || fail "links do not take what XDP sends"
		aggregator s1 --plane "$plane"
		serve 0 2
		serve 1 2
		servers 2
		args=(--table "on$plane" --keys 4000 --width 8 --pushes 400 --batch 80)
		push_by 4 "${args[@]}" --pause 2000
		check "$plane: four workers, two shards" pushed
		check "... many rows were hot" hot 4 20
		check "... each push was applied exactly once" right "${args[@]}" --workers 4
		args=(--table "steps$plane" --keys 500 --width 3 --pushes 200 --batch 30)
		push_by 4 "${args[@]}" --bounded 1 --pull-every 5 --pause 2000
		check "$plane: bounded steps" pushed
		check "... each push was applied exactly once" right "${args[@]}" --workers 4
		args=(--table "own$plane" --keys 2000 --width 8 --pushes 700 --batch 60)
		by own 4 "${args[@]}" --workers 4 --pause 1000
		check "$plane: a worker sees its own gradients whose push has ended" pushed
		check "... many rows came from the aggregator" hot_pulled 4 10
		by seen 4 --table "seen$plane" --workers 4 --keys 2000 --width 8 --pushes 400 --batch 60 --bounded 1 --pause 1000
		check "$plane: after a step, a worker sees what all have pushed up to there" pushed
		check "... many rows came from the aggregator" hot_pulled 4 10
		check "... and no worker said that other rows are hot" status 'all(t["hot"]["moved"] == 0 for t in v["tables"] if t["hot"])'
		if [ "$plane" = pisa ]; then
			args=(--table wide --keys 1000 --width 128 --pushes 500 --batch 20)
			push_by 4 "${args[@]}" --pause 2000
			check "pisa: rows that are too wide for the switch" pushed
			check "... each push was applied exactly once" right "${args[@]}" --workers 4
			check "... the server names the limit" \
				wait_for 10 grep -q 'a row of 128 values does not fit a packet' "$work/serve0.err"
		fi
		end TERM shard0
		end TERM shard1
		end TERM s1
		# The last packet of a step is left to the daemon, for it tells the server that a worker waits.
		[ "$plane" != xdp ] || in_kernel 30 "$work/s1"
	done
}

drift() {
	echo "== other rows become hot"
	rm -rf "$work"/rows*
	aggregator s1
	memory=64K
	serve 0 1
	servers 1
	args=(--table drift --keys 20000 --width 8 --pushes 2800 --batch 60 --skew 40 --drift 700)
	push_by 4 "${args[@]}" --pause 3000
	check "four workers push" pushed
	check "... the map follows" hot 4 25
	check "... since workers say that other rows are hot" status 'v["tables"][-1]["hot"]["moved"] >= 1'
	check "... each push was applied exactly once" right "${args[@]}" --workers 4
	end TERM shard0
	end TERM s1
	unset memory
}

one_by_one() {
	echo "== the aggregator dies, and its standby; then a server"
	rm -rf "$work"/rows*
	serve 0 1
	args=(--table killed --keys 3000 --width 8 --pushes 2500 --batch 60)
	push_by 4 "${args[@]}" --pause 3000
	check "rows are hot" wait_for 10 is_hot
	check "trib explain says how rows are summed" explains 'rows in fixed point .*the workers opened the table with sums = "fixed"'
	end KILL s1
	check "the standby takes over" wait_for 20 at_standby
	aggregator s1
	end KILL s2
	check "and the first one again" wait_for 20 is_hot
	aggregator s2
	end KILL shard0
	serve 0 1
	check "the server comes back" wait_for 20 is_hot
	check "all workers end well" pushed
	check "... they have moved" moves
	check "... each push was applied exactly once" right "${args[@]}" --workers 4
	end TERM shard0
}

# kill_round MOST: up to so many kills while four workers push; $kills says how many.
kill_round() {
	rm -rf "$work"/rows*
	serve 0 1
	args=(--table random --keys 3000 --width 8 --pushes 2500 --batch 60)
	push_by 4 "${args[@]}" --pause 3000
	kills=0
	while running && [ "$kills" -lt "$1" ]; do
		sleep "0.$((RANDOM % 9 + 1))"
		case $((RANDOM % 3)) in
		0) end KILL s1 && aggregator s1 ;;
		1) end KILL s2 && aggregator s2 ;;
		2) end KILL shard0 && serve 0 1 ;;
		esac
		kills=$((kills + 1))
	done
	check "all workers end well, after $kills kills" pushed
	check "... each push was applied exactly once" right "${args[@]}" --workers 4
	end TERM shard0
	check "... so says an audit of the log" "$trib" sparse audit "$work/rows0"
	serve 0 1
	check "... and the rows survive a restart" right "${args[@]}" --workers 4
	end TERM shard0
}

# at_random KILLS: of the aggregator, its standby and the server.
at_random() {
	local all
	echo "== all of them, at random"
	# Flushes follow each other, so that a kill often comes between the log and the news of it.
	flush=0.0005
	for ((all = 0; all < $1; all += kills)); do
		kill_round $(($1 - all < 10 ? $1 - all : 10))
		check "servers and aggregators were killed" test "$kills" -gt 0 || return
	done
	unset flush
	echo "$all kills"
}

late() {
	local i
	echo "== workers join the aggregator after the server: memory that is filled is slow to get"
	rm -rf "$work"/rows*
	aggregator s1
	serve 0 2
	serve 1 2
	servers 2
	for i in 1 2 3 4 5 6; do
		MALLOC_PERTURB_=155 by own 4 --table "late$i" --workers 4 --keys 2000 --width 8 --pushes 300 --batch 60 --pause 1000
		check "a worker sees its own gradients whose push has ended ($i)" pushed || break
	done
	end TERM shard0
	end TERM shard1
	end TERM s1
}

worker_killed() {
	echo "== a worker is killed"
	serve 0 1
	args=(--table alone --keys 1000 --width 8 --pushes 1500 --batch 60)
	push_by 3 "${args[@]}" --pause 2000 --mark "$work/mark" --sums table
	check "three workers push" wait_for 20 all_marked 3
	check "rows are hot" wait_for 10 is_hot
	check "trib explain says how rows are summed" explains 'as floats, by table: the workers opened the table with sums = "table"'
	kill -KILL "${workers[2]}"
	{ wait "${workers[2]}"; } 2>/dev/null
	unset 'workers[2]'
	check "the others end well" pushed
	end TERM shard0
}

faults() {
	echo "== faults"
	if has_bpf; then
		up $name --hosts 4 --servers 3 --switch --loss 0.05 --dup 0.05 --reorder 0.05 --seed $((seed + 1))
		rm -rf "$work"/rows*
		two_aggregators
		serve 0 1
		args=(--table faulty --keys 3000 --width 8 --pushes 1000 --batch 60)
		push_by 4 "${args[@]}" --pause 3000
		check "rows are hot" wait_for 20 is_hot
		end KILL s1
		check "all workers end well" pushed
		check "... some rows were hot" hot 4 10
		check "... each push was applied exactly once" right "${args[@]}" --workers 4
		by own 4 --table faultyown --workers 4 --keys 2000 --width 8 --pushes 300 --batch 60
		check "a worker sees its own gradients whose push has ended" pushed
		by seen 4 --table faultyseen --workers 4 --keys 2000 --width 8 --pushes 150 --batch 60 --bounded 0
		check "after a step, a worker sees what all have pushed up to there" pushed
		push_by 4 --table faultyadam --optimizer adam --keys 3000 --width 8 --pushes 200 --batch 60
		check "four workers push to a table with Adam" pushed
		end TERM shard0
		check "... the rows are those of one process that applies the log" "$trib" sparse audit "$work/rows0"
	else
		omit "links with faults need root, and a build with BPF programs"
	fi
}

# An aggregator, its standby, and a list of one server.
two_aggregators() {
	aggregator s1
	aggregator s2
	servers 1
}

up $name --hosts 4 --servers 3 --switch
if [ -n "${2:-}" ]; then
	two_aggregators
	at_random "$2"
	done_checking
fi
sums_on_planes
late
drift
two_aggregators
one_by_one
at_random 10
worker_killed
end TERM s1
end TERM s2
down
faults
done_checking
