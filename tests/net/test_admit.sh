#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Jobs that ask for hosts: which hosts each job gets, which jobs wait, at which aggregator each job takes
# its turns, and which hosts become free if a job is killed. Usage: test_admit.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
need_clusters "$@"
start "$@"
need_control
# Jobs that hardly communicate are for test_telemetry.sh.
export TRIB_EXIT_BELOW=0 TRIB_BEAT=0.25 TRIB_START_WITHIN=6
check "a cluster" up adm$$ --hosts 8 --servers 3 --link 300mbit || exit 1
control=$(address s3):7600
curl() { on s3 /usr/bin/env curl "$@"; }

control_start() {
	"$trib" net exec --name "$cluster" s3 -- "$tribd" --controller "$control" --plain >"$work/controller.$1" 2>&1 &
	controller=$!
	wait_for 10 grep -q 'controller ready' "$work/controller.$1"
}
check "a controller starts" control_start 1 || exit 1
export TRIB_CONTROLLER=http://$control

# node HOST OPTION...: an agent there.
node() {
	local host=$1
	shift
	"$trib" net exec --name "$cluster" "$host" -- "$tribd" --join "$TRIB_CONTROLLER" --name "$host" --listen :7700 --threads 1 "$@" >"$work/$host" 2>&1 &
	agents[$host]=$!
}
for i in 1 2 3 4 5 6 7 8; do node h$i --rack "pod$(((i + 3) / 4))/rack$(((i + 1) / 2))"; done
node s1 --capacity 1 --above pod1
node s2 --capacity 1 --above pod2
node s3 --capacity 1
for host in h{1..8} s{1..3}; do
	wait_for 20 node_is "$host" live || fail "$host has not joined: $(cat "$work/$host")"
done

# job_run NAME HOSTS OPTION... -- WORKER_OPTION...: a job in the background; its number is ${number[NAME]}
# as soon as it has one, the launcher's pid ${pid[NAME]}, its output $work/run.NAME.
declare -A pid number
job_run() {
	local name=$1 hosts=$2 options=()
	shift 2
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	shift
	TRIB_LOG=notice TRIB_TIMEOUT=20 "$trib" net exec --name "$cluster" s3 -- "$trib" run --hosts "$hosts" --name "$name" --net "$cluster" "${options[@]}" -- \
		"$worker" --seed 7 --max 20000 "$@" >"$work/run.$name" 2>&1 &
	pid[$name]=$!
}
# jobs_all EXPRESSION: what jq makes of the list of jobs. One jq a question, for it takes long to start.
jobs_all() { api GET /v1/jobs | jq -rc ".jobs | $1"; }
of() { jobs_all ".[] | select(.name == \"$1\") | $2"; }
knows() { number[$1]=$(of "$1" .id) && [ -n "${number[$1]}" ]; }
state_is() { [ "$(of "$1" .state)" = "$2" ]; }
hosts_of() { of "$1" '[.placed[].name] | sort | join(" ")'; }
# root NAME: where it takes its turns.
root() { of "$1" '.communicators[0].plan' | sed -n 's/.*|\(.*\):.*/\1/p'; }
has_root() { [ -n "$(root "$1")" ]; }
root_is() { [ "$(root "$1")" = "$(address "$2")" ]; }
# held NAME: has it had a turn?
held() { [ "$(api GET /v1/turns | jq "[.groups[].jobs[] | select(.job == ${number[$1]}).held_s] | max // 0 | . > 0")" = true ]; }
ended_well() {
	wait "${pid[$1]}" && [ "$(grep -c ': right, ' "$work/run.$1")" = "$2" ] &&
		[ "$(grep -o 'common [0-9a-f]*' "$work/run.$1" | sort -u | wc -l)" = 1 ] && return 0
	cut -c 1-400 "$work/run.$1"
	return 1
}
# never_over: no aggregator had two jobs at once. Aggregators print that counter when they end.
never_over() {
	local host
	for host in s1 s2 s3; do
		kill -TERM "${agents[$host]}"
		wait_for 20 grep -q '"over_capacity":0' "$work/$host" || { tail -n 1 "$work/$host"; return 1; }
	done
}

# ---- four jobs fill the hosts; three aggregators are for one job each ----
for name in a b c d; do
	job_run $name 2 -- --rounds 1000000 --pause 0.02 --until "$work/enough"
	check "job $name gets hosts" wait_for 10 state_is $name placed && knows $name
	check "job $name gets trees" wait_for 10 has_root $name
done
all=$(for name in a b c d; do hosts_of $name; done)
check "no host is with two jobs: $(tr '\n' ';' <<<"$all")" test "$(tr ' ' '\n' <<<"$all" | sort -u | wc -l)" = 8
racks=$(jobs_all '[.[] | [.placed[].rack] | unique | length] | add')
check "each has a rack of its own" test "$racks" = 4
roots=$(for name in a b c d; do root $name; done | sort | uniq -c | awk '{ print $1 }' | sort -n | xargs)
check "three have an aggregator of their own, or nearly: one is shared by two" test "$roots" = '1 1 2'
check "... by one that could have no other" eval 'root_is a s1 && root_is c s2 && root_is b s3'
for name in a b c d; do check "job $name gets a turn" wait_for 10 held $name; done

# ---- jobs that come later ----
on s3 "$trib" run --hosts 1 --net "$cluster" -- true >"$work/refused" 2>&1
check "a fifth is refused: $(head -n 1 "$work/refused")" grep -q '1 host is asked for; 0 of 8 hosts are free' "$work/refused"
on s3 "$trib" job new --hosts 9 --wait >"$work/refused" 2>&1
check "one that is too large waits for nothing" grep -q '9 hosts are asked for, but only 8 machines run ranks' "$work/refused"
job_run e 2 --wait -- --rounds 50 --pause 0.02
check "one that waits says so" wait_for 10 grep -q 'waits: 2 hosts are asked for; 0 of 8 hosts are free' "$work/run.e"
job_run f 1 --wait -- --rounds 5
check "... as does the next" wait_for 10 grep -q 'waits: .*; 1 job waits ahead of it' "$work/run.f"
check "trib jobs shows who waits" eval 'on s3 "$trib" jobs | grep -q "waits: 2 hosts are asked for"'
check "trib nodes shows whose a machine is" eval \
	'[ "$(on s3 "$trib" nodes | awk -v j="${number[a]}" "\$(NF - 1) == j" | wc -l)" = 2 ]'

# ---- one is killed: its hosts and its aggregator are free ----
freed=$(hosts_of a)
killed_at=$EPOCHREALTIME
# Other tests that run now have jobs of the same number, but another controller.
kill -KILL "$(pgrep -f "^$worker .*--seed 7" | while read -r p; do
	tr '\0' '\n' <"/proc/$p/environ" >"$work/environ"
	grep -qx "TRIB_JOB=${number[a]}" "$work/environ" && grep -qF "=$control" "$work/environ" && echo "$p" && break; done)"
check "a rank is killed, and the job that waits gets the hosts" wait_for 10 state_is e placed
awk -v a="$killed_at" -v b="$EPOCHREALTIME" 'BEGIN { printf "   after %.2f s\n", b - a }'
check "... which are those: $freed" test "$(hosts_of e)" = "$freed"
check "... the launcher of the other says why it ended" eval 'ends_badly "${pid[a]}" && grep -q "trib run: rank" "$work/run.a"'
check "job e: exact sums" ended_well e 2
check "... then the next one that waits: exact sums" ended_well f 1

# ---- jobs that nobody ends: the ranks never come, the ranks leave, the launcher is killed ----
over() { [ "$(jobs_all "[.[].name] | index(\"$1\") == null")" = true ]; }
eval "$(on s3 "$trib" job new --hosts 2 --name left --hostfile "$work/hostfile" 2>"$work/new")"
check "a hostfile has what TRIB_HOSTS has: $TRIB_HOSTS" test "$(xargs <"$work/hostfile")" = "${TRIB_HOSTS/,/ }"
for r in 0 1; do
	TRIB_RANK=$r TRIB_SIZE=2 on "$(of left ".placed[$r].name")" "$worker" --rounds 5 >"$work/left.$r" 2>&1 &
	left[r]=$!
done
check "its ranks do well" wait "${left[@]}"
check "... and are gone: its hosts are free" wait_for 10 over left
unset TRIB_AGGREGATOR TRIB_JOB TRIB_COOKIE TRIB_HOSTS
job_run lost 2 -- --rounds 1000000 --pause 0.02 --until "$work/enough"
check "a job runs" wait_for 10 has_root lost
kill -KILL "${pid[lost]}"

# ---- a job migrates to an aggregator that has become free ----
check "the one that shared goes where it is alone" wait_for 15 eval \
	'[ "$(for n in b c d; do root $n; done | sort -u | wc -l)" = 3 ]'
grep -h 'takes its turns at' "$work/controller.1" | sed 's/^/   /'

check "a job whose launcher was killed is over" wait_for 20 over lost
on s3 "$trib" job new --hosts 1 --name idle >/dev/null 2>"$work/new"
check "a job without ranks has a host" state_is idle placed
check "the job without ranks is over after TRIB_START_WITHIN" wait_for 10 over idle

# ---- the controller is started again: jobs keep their hosts ----
kill -KILL "$controller"
wait "$controller" 2>/dev/null
check "a controller is started again" control_start 2
check "... all hosts are back" wait_for 20 eval '[ "$(api GET /v1/nodes | jq "[.nodes[] | select(.state == \"live\")] | length")" = 11 ]'
eval "$(on s3 "$trib" job new --hosts 2 --hostfile "$work/hostfile" 2>"$work/new")"
for n in b c d; do of $n '.placed[].address'; done >"$work/taken"
check "six hosts belong to the jobs that ran all the time" test "$(wc -l <"$work/taken")" = 6
check "... and others are free: $TRIB_HOSTS" test "$(wc -l <"$work/hostfile") $(grep -cwf "$work/hostfile" "$work/taken")" = "2 0"
check "trib job end frees them" on s3 "$trib" job end "$TRIB_JOB"
unset TRIB_AGGREGATOR TRIB_JOB TRIB_COOKIE TRIB_HOSTS
touch "$work/enough"
for name in b c d; do check "job $name: exact sums" ended_well $name 2; done
grep -ho "goes on in the trees.*" "$work"/run.[bcd] | sed "s/^/   /"
check "all is free at the end" wait_for 10 eval '[ "$(jobs_all .)" = "[]" ]'
check "no aggregator had two jobs at once" never_over
done_checking
