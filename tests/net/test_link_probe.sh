#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Agents probe their links. A link that is slower than its agent claims is found before the first plan, and
# its repair is noticed. So is a link that becomes slow while a job runs. Usage: test_link_probe.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
need_clusters "$@"
start "$@"
need_control
command -v tc >/dev/null || skip "tc is not installed"
export TRIB_BEAT=0.25 TRIB_GAUGE=on
check "a cluster" up gau$$ --hosts 4 --servers 1 --link 300mbit --link h3=60mbit || exit 1
control=$(address s1):7600
export TRIB_CONTROLLER=http://$control
curl() { on h1 /usr/bin/env curl "$@"; }
check "a controller starts" controller s1 --plain || exit 1
for host in h1 h2 h3 h4; do
	agent_on $host --link 300mbit # which is not true of h3
done

# node HOST EXPRESSION: the value of a jq expression for the node. node_has: the value is true.
node() { api GET /v1/nodes | jq -r ".nodes[] | select(.name == \"$1\") | $2"; }
node_has() { [ "$(node "$1" "$2")" = true ]; }
of_job() { api GET "/v1/jobs/$TRIB_JOB" | jq -r ".communicators[0] | $1"; }
is_so() { [ "$(of_job "$1")" = true ]; }
# is_right HOST: no measurement contradicts the rate that the agent claims.
is_right() { node_has "$1" '(has("out_bps") or has("in_bps")) | not'; }
shape() { # HOST RATE: both ends of its link
	on "$1" tc qdisc change dev eth0 root tbf rate "$2" burst 150k latency 20ms
	ip netns exec "$cluster-net" tc qdisc change dev "p${1#h}" root tbf rate "$2" burst 150k latency 20ms
}

# ---- before the first plan ----
near='(.out_bps > 40e6 and .out_bps < 90e6 and .in_bps > 40e6 and .in_bps < 90e6)'
check "the slow link is found" wait_for 30 node_has h3 "$near"
echo "h3: $(node h3 '[.ways[] | .out_bps, .in_bps | . / 1e6 | floor | tostring] | join(" ")') Mb/s"
for host in h1 h2 h4; do
	check "$host carries what it claims" is_right $host || node $host .ways
done
on h1 "$trib" nodes >"$work/nodes"
check "trib nodes says so: $(grep carries "$work/nodes")" grep -q 'its link carries [4-8][0-9.]* Mb/s out and [4-8][0-9.]* Mb/s in' "$work/nodes"
check "... and the controller's log" grep -q 'the link of node .* (h3) carries' "$work/controller"

enough=$work/enough # ranks end when it is there
ranks 4 --rounds 1000000 --until "$enough" --only allreduce --max 1000000
check "the job has a plan" wait_for 20 plan_is_past 0
check "... made for what links carry: $(of_job '.verdict.rate_bps / 1e6 | floor') Mb/s" is_so '.verdict.rate_bps > 40e6 and .verdict.rate_bps < 90e6'
check "... in which the slow host does not sum" lacks_plan h3

# ---- the link is repaired ----
shape h3 300mbit
check "the link is tried again, beside the job" wait_for 60 is_right h3
check "... so the job goes to other trees" wait_for 60 plan_is_past 1
check "... in which h3 sums too: $(of_job '.verdict.rate_bps / 1e6 | floor') Mb/s" has_plan h3
check "... and all ranks go on" wait_for 20 all_go_on

# ---- a link becomes slow while the job runs ----
wait_for 20 is_so '.runs_bps > 0.6 * .share * .verdict.rate_bps' # or it would have been late already
before=$(generation "$TRIB_JOB")
shape h2 60mbit
check "a job that is late has its links tried" wait_for 60 node_has h2 "$near"
check "... and goes to other trees" wait_for 60 plan_is_past "$before"
check "... in which h2 does not sum: $(of_job '.verdict.rate_bps / 1e6 | floor') Mb/s" lacks_plan h2
on h1 "$trib" explain "$TRIB_JOB" >"$work/explained"
check "... for that reason: $(grep 'link rates' "$work/explained" | tail -n 1)" grep -q 'measured link rates differ from the plan' "$work/explained"
check "... and all ranks go on" wait_for 20 all_go_on
for host in h1 h3 h4; do
	check "$host still carries what it claims" is_right $host || node $host .ways
done
touch "$enough"
check "all ranks end well" all_well

# ---- a job that starts with its agents ----
kill "${agents[@]}"
for host in h1 h2 h3 h4; do
	check "$host has left" wait_for 20 node_is $host left
done
for host in h1 h2 h3 h4; do
	agent_on $host --link 300mbit
done
rm "$enough"
ranks 4 --rounds 1000000 --until "$enough" --only allreduce --max 1000000
check "a job that starts with its agents has a plan" wait_for 20 plan_is_past 0
echo "the first is for $(of_job '.verdict.rate_bps / 1e6 | floor') Mb/s: $(plan)"
right_plan() { lacks_plan h2 && is_so '.verdict.rate_bps < 90e6'; }
check "... made for what links carry, at once or soon" wait_for 60 right_plan
touch "$enough"
check "... and all ranks end well" all_well
done_checking
