#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Parameter servers that are killed, restarted, full and absent: every push is applied exactly once, or the
# worker gets an error that says why. Usage: test_sparse.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
sparse=$(program tests/net/worker_sparse) || fail "$sparse"
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "SEED=$seed"
export TRIB_TIMEOUT=20
declare -A server # pid of each shard
declare -A port

# serve SHARD N [OPTION]...: starts a shard on its folder, and on the port that it had before.
serve() {
	local shard=$1 n=$2
	shift 2
	: >"$work/serve$shard"
	"$trib" sparse serve --dir "$work/rows$shard" --shard "$shard/$n" --listen "127.0.0.1:${port[$shard]:-0}" "$@" \
		>"$work/serve$shard" 2>"$work/serve$shard.err" &
	server[$shard]=$!
	wait_for 10 grep -q 'ready on' "$work/serve$shard" || fail "shard $shard: $(cat "$work/serve$shard.err")"
	port[$shard]=$(sed -n 's/.*ready on 127.0.0.1:\([0-9]*\).*/\1/p' "$work/serve$shard")
}

servers() { # N: the list for workers
	local i list=''
	for ((i = 0; i < $1; i++)); do list+=${list:+,}127.0.0.1:${port[$i]}; done
	export TRIB_SPARSE_SERVERS=$list
}

unserve() { # SIGNAL SHARD
	kill "-$1" "${server[$2]}"
	{ wait "${server[$2]}"; } 2>/dev/null
}

# push_by N ARG...: N workers push, in the background; their pids are in `workers`.
push_by() {
	local n=$1 rank
	shift
	workers=()
	for ((rank = 0; rank < n; rank++)); do
		TRIB_RANK=$rank TRIB_SIZE=$n "$sparse" push "$@" >"$work/rank$rank" 2>&1 &
		workers+=($!)
	done
}

pushed() {
	local pid
	for pid in "${workers[@]}"; do
		wait "$pid" || { cat "$work"/rank*; return 1; }
	done
}

running() { kill -0 "${workers[@]}" 2>/dev/null; }

# says FILE WORDS: is the sentence there? Shows it if not.
says() { grep -q -- "$2" "$1" || { cat "$1"; return 1; }; }

echo "== servers are killed while workers push"
options=(--sync none --snapshot-every 200K --keep-logs)
serve 0 2 "${options[@]}"
serve 1 2 "${options[@]}"
servers 2
args=(--keys 3000 --width 8 --pushes 250 --batch 60)
push_by 3 "${args[@]}" --pause 4000 --pull-every 7
kills=0
while running && [ "$kills" -lt 12 ]; do
	sleep "0.$((RANDOM % 15 + 5))"
	shard=$((RANDOM % 2))
	unserve KILL "$shard"
	serve "$shard" 2 "${options[@]}"
	kills=$((kills + 1))
done
check "all workers end well, after $kills kills" pushed
check "servers were killed meanwhile" test "$kills" -ge 2
check "each push was applied exactly once" "$sparse" check "${args[@]}" --workers 3
unserve TERM 0
unserve TERM 1
check "an audit of the logs finds no fault" "$trib" sparse audit "$work/rows0" "$work/rows1"
serve 0 2
serve 1 2
check "... and the rows survive a restart" "$sparse" check "${args[@]}" --workers 3

echo "== bounded steps, a second table, f16"
push_by 3 --table second --bounded 1 --pushes 60 --wire f16
check "three workers in step" pushed
check "the second table is right" "$sparse" check --table second --pushes 60 --workers 3
check "the first table is as before" "$sparse" check "${args[@]}" --workers 3

echo "== sentences"
"$sparse" push --table second --width 5 >"$work/out" 2>&1
check "another width" says "$work/out" "table 'second' has width 4 at the server, this worker asks for 5"
TRIB_SPARSE_SERVERS='' "$sparse" push >"$work/out" 2>&1
check "no servers are named" says "$work/out" "TRIB_SPARSE_SERVERS is not set and options.servers is NULL"
TRIB_TIMEOUT=0.5 TRIB_SPARSE_SERVERS=127.0.0.1:9,127.0.0.1:${port[1]} "$sparse" push --table second >"$work/out" 2>&1
check "a server is absent" says "$work/out" "shard 0 (127.0.0.1:9) did not welcome this worker: Connection refused"
TRIB_SPARSE_SERVERS=127.0.0.1:${port[1]},127.0.0.1:${port[0]} "$sparse" push >"$work/out" 2>&1
check "servers in another order" says "$work/out" "takes it for shard"
check "the folder is taken" not "$trib" sparse serve --dir "$work/rows0" --listen 127.0.0.1:0 --shard 0/2
"$trib" sparse serve --dir "$work/both" --listen 127.0.0.1:0 --shards 2 >"$work/serve" 2>&1 &
serve=$!
both_ready() { [ "$(grep -c 'shard [01] of 2 ready' "$work/serve")" -eq 2 ]; }
check "a command makes the folders of two shards" wait_for 20 both_ready
kill "$serve"
check "... and ends them" wait "$serve"
check "no shards are refused" not "$trib" sparse serve --dir "$work/both" --listen 127.0.0.1:0 --shards 0
TRIB_TIMEOUT=4
push_by 2 --table killed --bounded 0 --pushes 1000000 --mark "$work/mark"
check "two workers are in step" wait_for 20 all_marked 2
kill -KILL "${workers[1]}"
check "a bounded worker whose peer was killed ends" ends_badly "${workers[0]}"
check "... and names it" says "$work/rank0" "rank 1 on .* has left table 'killed' without closing it"
{ wait "${workers[1]}"; } 2>/dev/null
TRIB_TIMEOUT=20

echo "== workers that leave, and workers that come back"
# worker RANK N ARG...: one of N workers, in the background; its pid is $!.
worker() {
	local rank=$1 n=$2
	shift 2
	TRIB_RANK=$rank TRIB_SIZE=$n "$sparse" push "$@" >"$work/rank$rank" 2>&1 &
}
args=(--table leaving --keys 200 --bounded 1 --pause 5000)
worker 0 3 "${args[@]}" --pushes 400
long=$!
worker 1 3 "${args[@]}" --pushes 40
other=$!
worker 2 3 "${args[@]}" --pushes 10
check "a worker of three closes the table early" wait $!
unserve KILL 0
serve 0 2
check "... after a restart of the server nobody waits for it" wait "$other"
unserve KILL 0
unserve KILL 1
serve 0 2
serve 1 2
check "... nor for the second one" wait "$long"
args=(--table away --keys 200 --bounded 5)
worker 1 2 "${args[@]}" --pushes 40 --pause 100000
long=$!
worker 0 2 "${args[@]}" --pushes 1 --pause 1500000 --mark "$work/away"
other=$!
check "a worker has pushed, and will close the table" wait_for 20 test -e "$work/away.0"
sleep 0.5
unserve KILL 0
sleep 2
serve 0 2
check "... a server was away meanwhile, and hears it" wait "$other"
check "... nobody waits for that worker" wait "$long"
for way in free bounded; do
	args=(--table "again$way" --keys 200 --pushes 150)
	[ "$way" = free ] || args+=(--bounded 1)
	worker 0 2 "${args[@]}" --pause 10000
	long=$!
	worker 1 2 "${args[@]}" --pushes 1000000 --mark "$work/$way"
	other=$!
	check "a worker pushes, $way" wait_for 20 test -e "$work/$way.1"
	kill -KILL "$other"
	{ wait "$other"; } 2>/dev/null
	worker 1 2 "${args[@]}"
	check "... it is killed, and started again: it joins its job" wait $!
	check "... the other one ends well" wait "$long"
done
worker 0 2 --table twice --pushes 1000000
other=$!
check "a rank is taken" wait_for 20 eval '"$trib" sparse status "127.0.0.1:${port[0]}" | grep -q "rank 0 of 0.twice\|rank 0 of 1.twice"'
TRIB_TIMEOUT=4 TRIB_RANK=0 TRIB_SIZE=2 "$sparse" push --table twice --pushes 1 >"$work/out" 2>&1
check "... a second process of this rank hears why it may not join" says "$work/out" "rank 0 of table 'twice' is connected already"
kill "$other"
{ wait "$other"; } 2>/dev/null

echo "== status"
check "status for people" says <("$trib" sparse status "127.0.0.1:${port[0]}") "table 1.second: .* rows of width 4"
"$trib" sparse status --json >"$work/status"
check "a line of JSON for each server" test "$(wc -l <"$work/status")" = 2
check "... with the log's length" says "$work/status" '"log":{"bytes":[1-9]'

echo "== a full disk"
if is_real_root; then
	mkdir "$work/small"
	mount -t tmpfs -o size=2m none "$work/small"
	"$trib" sparse serve --dir "$work/small/rows" --listen 127.0.0.1:0 >"$work/full" 2>&1 &
	full=$!
	wait_for 10 grep -q 'ready on' "$work/full"
	TRIB_SPARSE_SERVERS=127.0.0.1:$(sed -n 's/.*ready on 127.0.0.1:\([0-9]*\).*/\1/p' "$work/full")
	head -c 1900000 /dev/zero >"$work/small/ballast"
	push_by 1 --pushes 600
	check "the server says that its disk is full" wait_for 10 grep -q 'No space left' "$work/full"
	TRIB_TIMEOUT=3 "$sparse" push --table other >"$work/out" 2>&1
	check "... and tells workers" says "$work/out" "No space left on device"
	rm "$work/small/ballast"
	check "with room again, all pushes end" pushed
	check "... exactly once" "$sparse" check --pushes 600
	kill "$full"
	wait "$full"
	umount "$work/small"
else
	omit "a full disk needs root, to mount a tmpfs"
fi

echo "== tribd as a parameter server"
rows_daemon() { # starts it on its folder and on the port that it had before
	: >"$work/daemon"
	TRIB_COOKIE=${1:-} "$tribd" --serve-rows "$work/daemonrows" --listen "127.0.0.1:${daemon_port:-0}" --sync none \
		>"$work/daemon" 2>"$work/daemon.err" &
	daemon=$!
	wait_for 10 grep -q '^tribd: shard 0 of 1 ready on' "$work/daemon" || fail "tribd: $(cat "$work/daemon.err")"
	daemon_port=$(sed -n 's/.*ready on 127.0.0.1:\([0-9]*\).*/\1/p' "$work/daemon")
	export TRIB_SPARSE_SERVERS=127.0.0.1:$daemon_port
}
rows_daemon 00000000005ba25e
check "a worker without the cookie is refused" says <("$sparse" push --pushes 40 2>&1) "the cookie differs"
TRIB_COOKIE=00000000005ba25e push_by 2 --pushes 40
check "workers push to tribd" pushed
kill "$daemon"
wait "$daemon"
check "SIGTERM ends it well" test $? = 0
rows_daemon
check "... it warns without a cookie" says "$work/daemon.err" "TRIB_COOKIE is not set"
check "... and goes on with its rows" "$sparse" check --pushes 40 --workers 2
kill "$daemon"
wait "$daemon"
"$tribd" --serve-rows "$work/daemonrows" --controller :0 >"$work/out" 2>&1
check "it has no other role" says "$work/out" "a role of its own"

echo "== trib run --servers"
unset TRIB_SPARSE_SERVERS
go -n 3 --servers 2 --server-dir "$work/kept" -- "$sparse" push --pushes 50
check "trib run starts servers and ends them" test $? = 0
go -n 1 --servers 2 --server-dir "$work/kept" -- "$sparse" check --pushes 50 --workers 3
check "the next job has their rows" says "$out" "right: 1000 rows"
example=$(program examples/sparse) || fail "$example"
go -n 3 --servers 2 -- "$example"
check "the example reaches its goal" test "$(grep -c 'largest distance 0.0' "$out")" = 3
done_checking
