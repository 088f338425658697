#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What `trib run` does with its processes, with plain shell commands as workers.
# Usage: test_run.sh PATH_TO_TRIB
# shellcheck disable=SC2016  # the workers expand their variables
set -u
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/check.sh"
trib=${1:?usage: test_run.sh PATH_TO_TRIB}
# No aggregator is started: nothing here sends a packet.
run=("$trib" run --aggregator 127.0.0.1:9)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out='' err='' code=0

# go ARGS...: runs trib with them, keeps out, err and code.
go() {
	"${run[@]}" "$@" >"$work/out" 2>"$work/err"
	code=$?
	out=$(cat "$work/out") err=$(cat "$work/err")
}

# expect WHAT CONDITION...: CONDITION is a command.
expect() {
	local what=$1
	shift
	if "$@"; then
		echo "ok - $what"
	else
		echo "not ok - $what"
		printf '  code %s\n  out: %s\n  err: %s\n' "$code" "${out:0:500}" "${err:0:500}"
		failures=$((failures + 1))
	fi
}

has() { [[ $1 == *"$2"* ]]; }
lacks() { [[ $1 != *"$2"* ]]; }
lines() { [[ $(wc -l <"$work/out") -eq $1 ]]; }

# gone TAG: waits up to 3 s until no process has TAG in its environment.
gone() {
	for _ in $(seq 30); do
		grep -lsz "^TAG=$1\$" /proc/[0-9]*/environ >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	return 1
}

# appears FILE: waits up to 5 s for it.
appears() {
	for _ in $(seq 50); do
		[[ -e $1 ]] && return 0
		sleep 0.1
	done
	return 1
}

# --- environment and prefixes
go -n 3 --timeout 7 --pool 2M --lanes 2 -- sh -c \
	'echo "$TRIB_RANK/$TRIB_SIZE $TRIB_AGGREGATOR $TRIB_TIMEOUT $TRIB_POOL $TRIB_LANES"; echo "e$TRIB_RANK" >&2'
expect "all went well" test "$code" -eq 0
for rank in 0 1 2; do
	expect "rank $rank has its environment and its label" \
		has "$out" "[rank $rank] $rank/3 127.0.0.1:9 7 2097152 2"
	expect "stderr of rank $rank stays stderr" has "$err" "[rank $rank] e$rank"
done
expect "no colours where there is no terminal" lacks "$out" $'\033'

go -n 2 -- sh -c 'echo "$TRIB_COOKIE $TRIB_JOB"'
cookies=$(sed 's/^\[rank .\] //' "$work/out" | sort -u)
expect "one cookie and one job for all ranks" test "$(wc -l <<<"$cookies")" -eq 1
expect "an aggregator that is there gets no random cookie, but a random job" \
	test -n "$(grep -E '^0{16} [0-9]+$' <<<"$cookies")"
go -n 2 -- sh -c 'echo "$TRIB_COOKIE $TRIB_JOB"'
expect "another run has another job" \
	test "$cookies" != "$(sed 's/^\[rank .\] //' "$work/out" | sort -u)"
run=("$trib" run --ring)
go -n 1 -- sh -c 'echo "$TRIB_COOKIE"'
first=$out
go -n 1 -- sh -c 'echo "$TRIB_COOKIE"'
expect "a cookie has 16 hex digits" test -n "$(grep -E '[0-9a-f]{16}$' <<<"$out")"
expect "another run has another cookie" test "$first" != "$out"
run=("$trib" run --aggregator 127.0.0.1:9)
TRIB_JOB=77 TRIB_COOKIE=00000000000000ab go -n 1 -- sh -c 'echo "$TRIB_COOKIE $TRIB_JOB"'
expect "job and cookie of the user are kept" test "$out" = '[rank 0] 00000000000000ab 77'

# --- variables of NCCL and of torch.distributed; those that are set stay
NCCL_ALGO=ring go -n 2 --nccl -- sh -c \
	'echo "$RANK/$WORLD_SIZE $NCCL_HOSTID $NCCL_ALGO $NCCL_COLLNET_ENABLE ${NCCL_NET_PLUGIN##*/} $MASTER_ADDR"'
expect "a rank of NCCL knows its place" has "$out" \
	'[rank 1] 1/2 tributary-rank-1 ring 1 libnccl-net-tributary.so 127.0.0.1'

# --- lines
go -n 1 -- printf 'first\n\nlast'
expect "the last line may lack its newline" test "$out" = $'[rank 0] first\n[rank 0] \n[rank 0] last'
go -n 1 -- sh -c 'head -c 300000 /dev/zero | tr "\0" x; echo; echo after'
expect "a long line stays one line" lines 2
expect "a long line is whole" test "$(head -n 1 "$work/out" | wc -c)" -eq 300010
go -n 4 -- seq 20000
expect "nothing is lost of much output" lines 80000
go -n 1 -- cat
expect "stdin is empty, not the terminal" test "$code$out" = 0

# --- failures
go -n 4 -- sh -c 'if [ "$TRIB_RANK" = 2 ]; then sleep 0.2; exit 3; fi; sleep 60'
expect "the exit code is the first failed one's" test "$code" -eq 3
expect "the first failed one is named" has "$err" "rank 2 ended first, with exit code 3"
go -n 2 -- sh -c 'if [ "$TRIB_RANK" = 1 ]; then kill -SEGV $$; fi; sleep 60'
expect "a signal is 128 + its number" test "$code" -eq 139
expect "a signal is named" has "$err" "rank 1 ended first, killed by SIGSEGV"
go -n 2 -- "$work/no-such-command"
expect "a command that is not there gives 127" test "$code" -eq 127
expect "a command that is not there is named" has "$err" "no-such-command: No such file"
SECONDS=0
go -n 2 -- sh -c '[ "$TRIB_RANK" = 0 ] && { sleep 0.5; exit 5; }; trap "" TERM; while :; do sleep 0.1; done'
expect "one that ignores SIGTERM is killed" test "$code" -eq 5
# Two seconds of grace, and time for a slow machine or a sanitizer; not 60.
expect "... and soon" test "$SECONDS" -le 20
go -n 2 -- sh -c '[ "$TRIB_RANK" = 0 ] && { sleep 0.5; exit 6; }; trap "echo told; exit 0" TERM; sleep 60 & wait'
expect "the others are told first, and may say goodbye" has "$out" "[rank 1] told"

# --- nobody stays behind
export TAG=run-$$-a
go -n 2 -- sh -c 'sleep 300 & [ "$TRIB_RANK" = 0 ] && exit 1; sleep 300'
expect "children of workers end with them" gone "$TAG"

for how in TERM KILL; do
	export TAG=run-$$-$how
	"${run[@]}" -n 2 -- sh -c 'sleep 300 & echo $$ >'"$work/pid-$how"'-$TRIB_RANK; sleep 300' \
		>"$work/out" 2>"$work/err" &
	parent=$!
	appears "$work/pid-$how-0" && appears "$work/pid-$how-1"
	kill -$how "$parent"
	wait "$parent" 2>/dev/null
	code=$?
	err=$(cat "$work/err")
	expect "SIG$how of trib leaves no process behind" gone "$TAG"
	[[ $how == TERM ]] && expect "SIGTERM is told" has "$err" "ended by SIGTERM"
	[[ $how == TERM ]] && expect "SIGTERM gives 143" test "$code" -eq 143
done
unset TAG

# --- an aggregator of our own: a copy of trib finds the tribd beside it
mkdir "$work/bin"
cp "$trib" "$work/bin/trib"
# daemon SCRIPT: what tribd does; $2 is the address to listen on.
daemon() {
	printf '#!/bin/sh\n%s\n' "$1" >"$work/bin/tribd"
	chmod +x "$work/bin/tribd"
}
expect "a copy of trib runs alone" "$work/bin/trib" --version
if "$work/bin/trib" --version >"$work/out" 2>&1; then
	run=("$work/bin/trib" run)
	daemon 'trap "echo bye; exit 0" TERM; sleep 0.3; echo "tribd: ready on $2"; sleep 60 & wait'
	go -n 2 -- sh -c 'echo "to $TRIB_AGGREGATOR"'
	port=$(sed -n 's/.*ready on 127.0.0.1:\([0-9]*\)$/\1/p' "$work/out")
	expect "a tribd is started, on a free port" test -n "$port"
	expect "workers start when it is ready" \
		test "$(head -n 1 "$work/out")" = "[aggregator] tribd: ready on 127.0.0.1:$port"
	expect "workers are told where it is" has "$out" "[rank 1] to 127.0.0.1:$port"
	expect "it is ended after them" test "$(tail -n 1 "$work/out")" = "[aggregator] bye"
	expect "... and all is well" test "$code" -eq 0
	where='echo "at $TRIB_AGGREGATOR trees $TRIB_TREES ring $TRIB_RENDEZVOUS job $TRIB_JOB cookie $TRIB_COOKIE"'
	TRIB_AGGREGATOR=10.0.0.9:7700 TRIB_JOB=77 TRIB_COOKIE=00000000000000ab go -n 1 -- sh -c "$where"
	expect "the aggregator, job and cookie of the environment are used, and no other is started" \
		test "$out" = '[rank 0] at 10.0.0.9:7700 trees  ring  job 77 cookie 00000000000000ab'
	TRIB_TREES='h:1(0-1)' TRIB_JOB=77 TRIB_COOKIE=00000000000000ab go -n 1 -- sh -c "$where"
	expect "... and its trees" \
		test "$out" = '[rank 0] at  trees h:1(0-1) ring  job 77 cookie 00000000000000ab'
	TRIB_RENDEZVOUS=h:1 TRIB_JOB=77 TRIB_COOKIE=00000000000000ab go -n 1 -- sh -c "$where"
	expect "... and its meeting place" test "$out" = '[rank 0] at  trees  ring h:1 job 77 cookie 00000000000000ab'
	TRIB_AGGREGATOR=10.0.0.9:7700 TRIB_TREES='h:1(0-1)' go -n 1 --aggregator 10.0.0.8:7700 -- sh -c "$where"
	expect "... but options win" has "$out" '[rank 0] at 10.0.0.8:7700 trees  ring '
	TRIB_AGGREGATOR=10.0.0.9:7700 TRIB_CONTROLLER=10.0.0.9:7600 go -n 1 --ring -- sh -c "$where"
	expect "... and so does --ring" has "$out" '[rank 0] at  trees  ring 127.0.0.1:'
	expect "... which needs no controller, and says nothing of it" lacks "$err" TRIB_CONTROLLER
	TRIB_CONTROLLER=10.0.0.9:7600 go -n 3 -- sh -c "$where"
	expect "a controller alone is not used" has "$out" '[rank 2] at 127.0.0.1:'
	expect "... and a line says how it would be" \
		test "$(grep -c 'TRIB_CONTROLLER is not used: .*trib job new --size 3' "$work/err")" -eq 1
	TRIB_CONTROLLER=10.0.0.9:7600 TRIB_AGGREGATOR=10.0.0.9:7700 go -n 1 -- sh -c "$where"
	expect "... no line if the job's place is known" lacks "$err" TRIB_CONTROLLER
	TRIB_AGREGATOR=h:1 go -n 2 -- true
	expect "a misspelt setting is named, once" test "$(grep -c \
		'TRIB_AGREGATOR is set, but is not a setting: do you mean TRIB_AGGREGATOR?' "$work/err")" -eq 1
	go -n 2 -- true
	expect "... and no other" lacks "$err" 'not a setting'
	TRIB_VERBS_LOG=info TRIB_LIBRARY=/lib go -n 1 -- true
	expect "... nor a variable of an adapter" lacks "$err" 'not a setting'
	daemon 'echo "cannot listen" >&2; exit 4'
	go -n 2 -- echo started
	expect "a tribd that does not come up is named" \
		has "$err" "aggregator ended first, with exit code 4"
	expect "... and no worker is started" lacks "$out" started
	daemon 'echo "ready on $2"; sleep 0.3; kill -ABRT $$'
	go -n 2 -- sleep 60
	expect "a tribd that dies is a failure" has "$err" "aggregator ended first, killed by SIGABRT"
	expect "... with its code" test "$code" -eq 134
	daemon 'trap "" TERM; echo "ready on $2"; while :; do sleep 0.1; done'
	go -n 1 -- true
	expect "a tribd that ignores SIGTERM is killed, and that is told" has "$err" "was killed"
	expect "... but the job went well" test "$code" -eq 0
	run=("$trib" run --aggregator 127.0.0.1:9)
fi

# --- wrong usage
go -- true
expect "no -n is wrong usage" test "$code" -eq 2
go -n 2
expect "no command is wrong usage" test "$code" -eq 2
go -n two -- true
expect "-n takes a number" test "$code" -eq 2
expect "... and says so" has "$err" '"two" is not a whole number'
go -n 1 --plane fpga -- true
expect "an unknown plane is wrong usage" test "$code" -eq 2
go -n 1 --net no-such-cluster -- true
expect "an unknown cluster is an error" test "$code" -eq 1
go --help
expect "--help has an example" has "$out" "Example:"
expect "--help is no failure" test "$code" -eq 0

done_checking
