#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Links go down under a job with a controller. The job goes on if it can. If it cannot, then by the deadline
# every rank has an error that names what it cannot reach. No rank goes on alone.
# Usage: test_partition.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
need_clusters "$@"
start "$@"
need_control
limit=8 # the deadline; half of it is when a silent peer is dead
export TRIB_TIMEOUT=$limit TRIB_STRIPES=1 TRIB_MTU=1500
ranks=4
check "a cluster" up part$$ --hosts $ranks --servers 4 --link 300mbit || exit 1
control=$(address s1):7600
scheme=https
curl() { on h1 /usr/bin/env curl "$@"; }

controller s1 || exit 1
TRIB_CONTROLLER=$(sed -n 's/.*TRIB_CONTROLLER=//p' "$work/controller")
for host in s2 s3 s4; do
	agent_on $host
done
for host in s2 s3 s4; do
	check "$host joins" wait_for 20 node_is $host live
done

# link HOST up|down
link() { on "$1" ip link set eth0 "$2"; }

# begin ROUNDS [OPTION]...: a job's ranks, each on its host, until all are in the middle of it.
begin() {
	local rank rounds=$1
	shift
	rm -f "$work"/rank.* "$work"/mark.* "$work"/times.*
	job "{\"size\":$ranks}"
	pids=()
	for ((rank = 0; rank < ranks; rank++)); do
		TRIB_RANK=$rank TRIB_SIZE=$ranks TRIB_AGGREGATOR=$control TRIB_JOB=$job TRIB_COOKIE=$cookie \
			"$trib" net exec --name "$cluster" "h$((rank + 1))" -- "$worker" \
			--rounds "$rounds" --max 20000 --mark "$work/mark" --linger 3 --times "$work/times.$rank" "$@" \
			>"$work/rank.$rank" 2>&1 &
		pids+=($!)
	done
	wait_for 20 all_marked $ranks
}

# all_right: every rank ends, with every sum as it has to be.
all_right() {
	wait "${pids[@]}"
	[ "$(cat "$work"/rank.? | grep -c ': right, ')" = $ranks ] || { tail -n 3 "$work"/rank.?; return 1; }
}

# say RANKS WORDS: each of these ranks has an error with the words, by the deadline and a little.
say() {
	local rank took
	wait "${pids[@]}"
	for rank in $1; do
		if ! grep -qE "error .*($2)" "$work/rank.$rank"; then
			tail -n 3 "$work/rank.$rank"
			return 1
		fi
		took=$(sed -n 's/.* error .* after \([0-9]*\)\..* s: .*/\1/p' "$work/rank.$rank" | tail -n 1)
		[ "${took:-99}" -le $((limit + 2)) ] || { echo "rank $rank took $took s"; return 1; }
	done
}

# nobody_right: no rank has gone on to the end.
nobody_right() { lacks ': right, ' "$work"/rank.{0,1,2,3}; }

# used: an aggregator that the plan of the job uses.
used() {
	local host trees
	trees=$(api GET "/v1/jobs/$job" | jq -r '.communicators[0].plan')
	for host in s2 s3 s4; do
		case $trees in *"$(address $host):7700("*) echo $host && return ;; esac
	done
}

# stood: the longest time between two rounds, in milliseconds.
stood() { awk 'FNR > 1 && $1 - last > most { most = $1 - last } { last = $1 } END { printf "%d", 1000 * most }' "$work"/times.?; }

# --- an aggregator is cut off, and the deadline is far away: its agent is silent too, so nobody waits for half of it
TRIB_TIMEOUT=30 begin 300 --pause 0.02
cut=$(used)
link "$cut" down
check "an aggregator ($cut) is cut off, with 30 s of deadline, and the job goes on" all_right
echo "the job stood still for $(stood) ms"
check "... as the controller does not hear of it either" grep -q 'the controller does not hear the aggregator at .* either' "$work"/rank.?
check "... long before half the deadline" test "$(stood)" -lt 8000
link "$cut" up
check "... it is back" wait_for 20 node_is "$cut" live

# --- an aggregator, and its agent with it, is stopped for a second: that is borne
TRIB_TIMEOUT=30 begin 300 --pause 0.02
cut=$(used)
kill -STOP "${agents[$cut]}"
sleep 1
kill -CONT "${agents[$cut]}"
check "an aggregator is stopped for a second, and sums are right" all_right
check "... in the same trees" test "$(generation "$job")" = 1

# --- the controller is cut off: nobody needs it
begin 300 --pause 0.02
link s1 down
check "ranks do not need the controller" all_right
link s1 up
for host in s2 s3 s4; do
	check "... and $host finds it again" wait_for 20 node_is $host live
done

# --- an aggregator is cut off: others take over
begin 300 --pause 0.02
cut=$(used)
link "$cut" down
check "an aggregator ($cut) is cut off, and the job goes on" all_right
check "... in the trees of another plan" test "$(generation "$job")" -gt 1
link "$cut" up
check "... it is back" wait_for 20 node_is "$cut" live

# --- an aggregator is cut off for a moment: ranks that gave it up must not mix with what it holds
begin 300 --pause 0.02
cut=$(used)
link "$cut" down
sleep $((limit / 2 - 1))
link "$cut" up
check "an aggregator is cut off for a moment, and sums are right" all_right
check "... it is back" wait_for 20 node_is "$cut" live

# --- both: there is nobody to ask, and the error says so
begin 100000
cut=$(used)
link s1 down
link "$cut" down
check "an aggregator and the controller are cut off: all say so" \
	say "0 1 2 3" "aggregator at $(address "$cut"):7700.*no answer from the controller at $control"
check "... and nobody goes on" nobody_right
link s1 up
link "$cut" up
for host in s2 s3 s4; do
	check "... $host is back" wait_for 20 node_is $host live
done

# --- a worker is cut off: it names what it cannot reach, and the others name the rank that they lost. Whether it was
# asked for next by the trees or by another rank itself is chance.
begin 100000
link h3 down
check "a worker is cut off: the others name it" say "0 1 3" "rank 2 .*(is lost|has not answered for)"
check "... and itself it says what it cannot reach" say "2" \
	"aggregator at .*no answer from the controller at $control|rank [013] .*has not answered .*nor has any other rank: rank 2 may be cut off"
check "... and nobody goes on" nobody_right
link h3 up

# --- a job that may shrink: one group goes on at most, and whoever is not in it has an error by the deadline
limit=6
export TRIB_TIMEOUT=$limit

# epochs: such a job's ranks, each on its host, until all have been through two epochs.
epochs() {
	local rank
	rm -f "$work"/rank.* "$work/end"
	job "{\"size\":$ranks,\"policy\":\"shrink\"}"
	pids=()
	for ((rank = 0; rank < ranks; rank++)); do
		(cd "$work" && TRIB_RANK=$rank TRIB_SIZE=$ranks TRIB_AGGREGATOR=$control TRIB_JOB=$job TRIB_COOKIE=$cookie \
			exec "$trib" net exec --name "$cluster" "h$((rank + 1))" -- \
			"$build/tests/net/worker_epochs" $rank 0.2 0 >"$work/rank.$rank" 2>&1) &
		pids+=($!)
	done
	for ((rank = 0; rank < ranks; rank++)); do
		wait_for 20 been_in $rank 2 4 f
	done
}

# been_in RANK N SIZE MEMBERS: has it been through N epochs of these?
been_in() { [ "$(grep -c "^epoch $3 $4\$" "$work/rank.$1")" -ge "$2" ]; }

# errs RANK: it ends with an error, and has not gone on with fewer. A wait of half the deadline may come before.
ended() { ! kill -0 "${pids[$1]}" 2>/dev/null; }
errs() {
	wait_for $((2 * limit)) ended "$1" && ends_badly "${pids[$1]}" &&
		grep -qE '^(allreduce|regroup): ' "$work/rank.$1" && lacks '^epoch [123] ' "$work/rank.$1" && return
	tail -n 4 "$work/rank.$1"
	return 1
}

# names_lost RANK FILE: every sentence on a lost rank names it; there is none if that was between two epochs.
names_lost() { [ -s "$2" ] && [ -z "$(grep '^lost: ' "$2" | grep -v "rank $1")" ]; }

epochs
link h3 down
for rank in 0 1 3; do
	check "one of four is cut off: rank $rank goes on with two others" wait_for $((3 * limit)) been_in $rank 2 3 b
done
check "... and the one that is cut off has an error" errs 2
for rank in 0 1 3; do
	check "... whom it has lost is told to rank $rank" names_lost 2 "$work/rank.$rank"
done
touch "$work/end"
for rank in 0 1 3; do
	check "... rank $rank ends well" wait "${pids[$rank]}"
done
link h3 up

epochs
link h3 down
link h4 down
for rank in 0 1 2 3; do
	check "two of four are cut off: rank $rank does not go on, half is no majority" errs $rank
done
done_checking
