#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Telemetry of ranks: it shows a link that is slower than its agent claims, until it is repaired, and a job that
# communicates too little to use other machines. Usage: test_telemetry.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
need_clusters "$@"
start "$@"
need_control
command -v tc >/dev/null || skip "tc is not installed"
export TRIB_BEAT=0.25 # and TRIB_GAUGE=off: agents must not find the slow link first
check "a cluster" up wrd$$ --hosts 3 --servers 2 --link 300mbit --link h2=40mbit || exit 1
control=$(address s1):7600
export TRIB_CONTROLLER=http://$control
curl() { on h1 /usr/bin/env curl "$@"; }
check "a controller starts" controller s1 --plain || exit 1
agent_on s1
agent_on s2
agent_on h2 --link 300mbit # which is not true
for host in s1 s2 h2; do
	check "$host joins" wait_for 20 node_is "$host" live
done
on h1 "$trib" node drain h2 >/dev/null

enough=$work/enough # ranks end when it is there

# of_job EXPRESSION: what jq makes of the job's communicator
of_job() { api GET "/v1/jobs/$TRIB_JOB" | jq -r ".communicators[0] | $1"; }
is_so() { [ "$(of_job "$1")" = true ]; }
# The throughput while the job communicates, relative to the plan.
pace='(.runs_bps / .share / .verdict.rate_bps)'

# ---- a slow link ----
ranks 3 --rounds 1000000 --until "$enough" --only allreduce --max 1000000
check "the job has a plan" wait_for 20 plan_is_past 0
check "what links carry is told" wait_for 30 is_so '[.ranks[] | select(.carries_bps)] | length == 3'
# The others carry 300 Mb/s. On busy cores a short sample of the slow one may exceed its 40 Mb/s.
check "the slow one is found" wait_for 30 is_so '.ranks[1].measured_bps > 20e6 and .ranks[1].measured_bps < 100e6'
echo "Mb/s: $(of_job '[.ranks[].carries_bps / 1e6 | floor | tostring] | join(", ")')"
check "... and no other" is_so '(.ranks[0] | has("measured_bps") | not) and (.ranks[2] | has("measured_bps") | not)'
check "communication takes most of this step" wait_for 20 is_so '.share > 0.5'
check "it is far slower than was planned" wait_for 20 is_so ".runs_bps and $pace > 0.05 and $pace < 0.5"
check "... as metrics have it: $(api GET /metrics | grep '^trib_plan_runs')" grep -q '^trib_plan_runs_bytes_per_second{job="'"$TRIB_JOB"'"' "$work/answer"
on h1 "$trib" explain "$TRIB_JOB" >"$work/explained"
check "... and said: $(grep 'It runs at' "$work/explained")" grep -qE 'It runs at [0-9.]+ Mb/s while it communicates, of 200 Mb/s planned' "$work/explained"
check "... and said: $(grep measured "$work/explained")" grep -qE '\(rank 1\): measured [0-9.]+ Mb/s of 300 Mb/s' "$work/explained"
check "... as is the share: $(grep -o 'Communication takes.*' "$work/explained")" grep -q 'Communication takes [0-9.]* % of the step' "$work/explained"
before=$(generation "$TRIB_JOB") bound=$(of_job .verdict.bound_bps)
on h1 "$trib" node drain s2 >/dev/null
check "another plan" wait_for 20 plan_is_past "$before"
check "... counts on what was measured: $bound, then $(of_job .verdict.bound_bps)" is_so '.verdict.bound_bps < 100e6'
check "... in which all ranks go on" wait_for 20 all_go_on
on h1 "$trib" node resume s2 >/dev/null

# ---- the link is repaired ----
before=$(generation "$TRIB_JOB")
on h2 tc qdisc change dev eth0 root tbf rate 300mbit burst 150k latency 20ms
ip netns exec "$cluster-net" tc qdisc change dev p2 root tbf rate 300mbit burst 150k latency 20ms
check "the link carries more" wait_for 30 is_so '.ranks[1] | has("measured_bps") | not'
check "... so other trees are faster" wait_for 30 plan_is_past "$before"
check "... of both servers" has_plan s2
on h1 "$trib" explain "$TRIB_JOB" >"$work/explained"
check "... for that reason: $(grep 'link rates' "$work/explained")" grep -q 'measured link rates differ from the plan' "$work/explained"
check "... in which all ranks go on" wait_for 20 all_go_on
check "... about as fast as was planned" wait_for 20 is_so ".runs_bps and $pace > 0.6 and $pace < 1.1"
echo "of the plan's rate: $(of_job "$pace")"
touch "$enough"
check "all ranks end well" all_well

# ---- a job that hardly communicates ----
on h1 "$trib" node resume h2 >/dev/null
rm "$enough"
ranks 3 --rounds 1000000 --until "$enough" --pause 1 --max 1000
check "a job with little communication has a plan" wait_for 20 plan_is_past 0
check "... with more than one machine" is_so '.verdict.aggregators > 1'
check "... says how little" wait_for 20 is_so '.share < 0.05'
check "... and gives up the other machines" wait_for 40 is_so '.generation == 2 and .frugal'
check "... for the one of a rank: $(of_job .plan)" test "$(of_job .plan)" = "$(address h2):7700(0-2)"
on h1 "$trib" explain "$TRIB_JOB" >"$work/explained"
check "... and says why" grep -q 'plan 2: .* not worth their use' "$work/explained"
check "all ranks go on in it" wait_for 20 all_go_on
touch "$enough"
check "... and end well" all_well

# ---- a job that is faster among its ranks ----
unset TRIB_WAY
on h1 "$trib" node drain h2 >/dev/null
on h1 "$trib" node drain s2 >/dev/null
rm "$enough"
ranks 3 --rounds 1000000 --until "$enough" --only allreduce --max 1000000
check "a job with one server goes among its ranks" wait_for 40 is_so '.away > 1'
check "... whose throughput no aggregator sees" is_so 'has("runs_bps") | not'
on h1 "$trib" explain "$TRIB_JOB" >"$work/explained"
check "... and it is said: $(grep -o 'go among the ranks.*as fast' "$work/explained")" grep -q 'go among the ranks' "$work/explained"
touch "$enough"
check "... and ends well" all_well
grep -ho 'goes on in the trees.*' "$work"/rank.?
done_checking
