#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whom a tribd lets in: without a cookie this machine alone, an agent the live jobs of its controller alone.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib_control.sh"
start "$@"
unset "${!TRIB_@}"

# refused WORDS COMMAND...: it ends by itself with an error that has these words.
refused() {
	local words=$1
	shift
	not timeout 10 "$@" >"$work/refused" 2>&1 && grep -q -- "$words" "$work/refused"
}

# daemon OPTION...: a tribd with these; its pid is $daemon, its output is in $work/daemon.
daemon() {
	: >"$work/daemon"
	"$tribd" --http off "$@" >"$work/daemon" 2>&1 &
	daemon=$!
	wait_for 10 grep -q 'ready on' "$work/daemon"
}
end_daemon() {
	kill "$daemon"
	wait "$daemon"
}

# pair: two ranks at 127.0.0.1:$port.
pair() {
	local rank pids=()
	for rank in 0 1; do
		TRIB_AGGREGATOR=127.0.0.1:$port TRIB_RANK=$rank TRIB_SIZE=2 TRIB_TIMEOUT=${limit:-10} "$worker" --rounds 1 \
			>"$work/pair.$rank" 2>&1 &
		pids+=($!)
	done
	wait "${pids[0]}" && wait "${pids[1]}"
}

port=$(free_port)
check "without a cookie, other machines are not served" refused 'TRIB_COOKIE is not set' "$tribd" --listen "0.0.0.0:$port"
check "... nor with IPv6" refused 'TRIB_COOKIE is not set' "$tribd" --listen "[::]:$port"
check "... nor rows" refused 'TRIB_COOKIE is not set' "$tribd" --serve-rows "$work/rows" --listen "0.0.0.0:$port"
check "... nor by trib sparse serve" refused 'TRIB_COOKIE is not set' "$trib" sparse serve --dir "$work/rows" --listen "0.0.0.0:$port"
check "... loopback is" daemon --listen "127.0.0.1:$port"
check "... with a warning" grep -q 'TRIB_COOKIE is not set: every process of this machine' "$work/daemon"
check "... and workers join there" pair
end_daemon
check "with --open they are served" daemon --listen "0.0.0.0:$port" --open
check "... with a warning" grep -q 'anyone who reaches this port' "$work/daemon"
end_daemon
check "--open is not for agents" refused 'without a controller' "$tribd" --join 127.0.0.1:1 --open

for short in 5eed 0123456789abcde 0123456789abcdef0; do
	check "the cookie $short is refused" refused '16 hex digits' env TRIB_COOKIE=$short "$tribd" --listen "127.0.0.1:$port"
done
TRIB_COOKIE=$("$trib" cookie)
check "trib cookie draws one: 16 hex digits" eval '[[ $TRIB_COOKIE =~ ^[0-9a-f]{16}$ ]]'
check "... and another one each time" test "$("$trib" cookie)" != "$TRIB_COOKIE"
export TRIB_COOKIE
check "... a tribd serves other machines with it" daemon --listen "0.0.0.0:$port"
check "... workers with it join" pair
check "... workers without it do not" eval 'TRIB_COOKIE="" limit=0.5 not pair'
end_daemon

need_control
port=$(free_port) control=127.0.0.1:$(free_port)
agent a1 "$port"
check "an agent starts before its controller" wait_for 10 grep -q 'ready on' "$work/a1"
# one [NAME=VALUE]...: a job of one rank at that aggregator, without asking the controller.
one() { env TRIB_AGGREGATOR="127.0.0.1:$port" TRIB_RANK=0 TRIB_SIZE=2 TRIB_TIMEOUT=0.5 "$@" "$worker" --rounds 1 >"$work/one" 2>&1; }
check "... and lets nobody in" not one
check "... not even a cookie of 0" grep -q 'with the same TRIB_COOKIE' "$work/one"
check "its controller" controller
check "... has it" wait_for 10 grep -q 'joined the controller' "$work/a1"
eval "$("$trib" job new --controller "$control" --size 2)"
job=(TRIB_JOB="$TRIB_JOB" TRIB_COOKIE="$TRIB_COOKIE")
check "a job's cookie is known at once" not one "${job[@]}"
check "... its rank waits for the other one" grep -q 'rank 1' "$work/one"
"$trib" job end --controller "$control" "$TRIB_JOB"
has_ended() { one "${job[@]}" || grep -q "job $TRIB_JOB has ended" "$work/one"; }
check "... when the job has ended, it joins no more" wait_for 20 has_ended

# Slow clients do not shut the API. Its process may open few files, as many systems have it.
kill "$controller"
wait "$controller"
(ulimit -Sn 1024 -Hn 1024 && exec "$tribd" --controller "$control") >"$work/controller" 2>&1 &
controller=$!
check "a controller with few files" wait_for 10 grep -q 'controller ready' "$work/controller"
"$(dirname "$0")/forge.py" slow "$control" 1100 >"$work/slow" &
check "slow clients connect" wait_for 30 test -s "$work/slow"
check "... the API answers all the same" timeout 8 "$trib" nodes --controller "$control"
check "... and after a while" eval 'sleep 6; timeout 8 "$trib" nodes --controller "$control"'
kill %% 2>/dev/null
done_checking
