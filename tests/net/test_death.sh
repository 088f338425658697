#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Workers and aggregators die, hang, come late or never come. Within the deadline every living rank gets an
# error that names the dead one. TRIB_PLANE chooses the plane; test_tcp.sh runs this test with tcp.
# Usage: test_death.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_death.sh"
need_clusters "$@"
start "$@"
export TRIB_COOKIE=000000000000dead TRIB_SIZE=4 TRIB_TIMEOUT=5
aggregator=''

end_all() { end "${pids[@]}" "$aggregator"; }

endless=(--rounds 1000000 --max 200000)

up td$$ --hosts 4 --servers 1 --switch --link 200mbit

# --- a worker is killed
aggregator s1 && aggregator_ready
workers "0 1 2 3" "${endless[@]}"
in_mid_round "a worker is killed"
end "${pids[2]}"
errors "a worker is killed" "0 1 3" peer "rank 2"
end_all

# --- a worker hangs
aggregator s1 && aggregator_ready
workers "0 1 2 3" "${endless[@]}"
in_mid_round "a worker hangs"
kill -STOP "${pids[1]}"
errors "a worker hangs" "0 2 3" "peer|timeout" "rank 1"
end_all

# --- a worker lives and does not call
aggregator s1 && aggregator_ready
workers "0 1 2 3" "${endless[@]}" --absent 3
in_mid_round "a worker does not call"
errors "a worker does not call" "0 1 2" timeout "rank 3"
end_all

# --- ranks call different things
aggregator s1 && aggregator_ready
workers "0 1 2" "${endless[@]}" --only allreduce --seed 1
first=("${pids[@]}")
TRIB_RANK=3 TRIB_AGGREGATOR=$at "$trib" net exec --name "$cluster" h4 -- "$worker" \
	--only allreduce --seed 2 --linger 2 >"$work/rank.3" 2>&1 &
pids=("${first[@]}" $!)
errors "ranks call different things" "0 1 2 3" mismatch "rank [0-3].*rank [0-3]"
end_all

# --- the aggregator is killed
aggregator s1 && aggregator_ready
workers "0 1 2 3" "${endless[@]}"
in_mid_round "the aggregator is killed"
end "$aggregator"
errors "the aggregator is killed" "0 1 2 3" aggregator "aggregator at $at"
end_all

# --- the aggregator hangs for good
aggregator s1 && aggregator_ready
workers "0 1 2 3" "${endless[@]}"
in_mid_round "the aggregator hangs"
kill -STOP "$aggregator"
errors "the aggregator hangs" "0 1 2 3" "aggregator|timeout" "aggregator"
end_all

# --- the aggregator stops for a second
aggregator s1 && aggregator_ready
workers "0 1 2 3" --rounds 60 --max 300000 --seed 3
in_mid_round "the aggregator stops for a second"
kill -STOP "$aggregator"
sleep 1
check "... nobody has ended meanwhile" kill -0 "${pids[@]}"
kill -CONT "$aggregator"
wait "${pids[@]}"
cat "$work"/rank.? >"$work/out"
out=$work/out
check "... exact on all ranks" right 4
end_all

# --- a worker stops for a second
aggregator s1 && aggregator_ready
workers "0 1 2 3" --rounds 60 --max 300000 --seed 4
in_mid_round "a worker stops for a second"
kill -STOP "${pids[0]}"
sleep 1
kill -CONT "${pids[0]}"
wait "${pids[@]}"
cat "$work"/rank.? >"$work/out"
check "... exact on all ranks" right 4
end_all

# --- workers first, in reverse order; the aggregator when each of them has asked
asked() {
	local host
	for host in h1 h2 h3 h4; do
		[ "$(on $host awk '$1 == "Udp:" && $5 + 0 > 0 || $1 == "Tcp:" && $6 + 0 > 0' /proc/net/snmp)" ] ||
			return 1
	done
}
down
up td$$ --hosts 4 --servers 1 --switch --link 200mbit
at=$(address s1):7700
workers "3 2 1 0" --rounds 10 --max 10000
check "workers ask before there is an aggregator" wait_for 10 asked
aggregator s1
wait "${pids[@]}"
cat "$work"/rank.? >"$work/out"
check "... exact on all ranks" right 4
end_all

# --- no aggregator at all, and a rank that never starts
export TRIB_TIMEOUT=2
workers "0 1 2 3" --rounds 10
errors "no aggregator" "0 1 2 3" aggregator "aggregator at $at"
end_all
aggregator s1
workers "0 1 3" --rounds 10
errors "a rank never starts" "0 1 3" timeout "rank 2"
end_all
done_checking
