#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A controller that is reached through a network: TLS, pins, link rates. Usage: test_control_net.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
need_clusters "$@"
start "$@"
need_control
check "a cluster" up ctl$$ --hosts 2 --servers 2 --link 300mbit || exit 1
control=$(address s1):7600
scheme=https
on_host=(on h1)

# api_on: as api does, from a host of the cluster.
curl() { "${on_host[@]}" /usr/bin/env curl "$@"; }

controller s1
check "beyond loopback it is HTTPS, and it prints a pin" \
	grep -q "TRIB_CONTROLLER=$control#sha256//.\{43\}=\$" "$work/controller" || exit 1
join=$(sed -n 's/.*TRIB_CONTROLLER=//p' "$work/controller")
api GET /v1/nodes >/dev/null
check "it answers by HTTPS" code_is 200
scheme=http api GET /v1/nodes >/dev/null
check "... and not by HTTP" code_is 000
check "its key is for its owner alone" test "$(stat -c %a "$TRIB_STATE/key.pem")" = 600
check "... as is the store" test "$(stat -c %a "$TRIB_STATE/store.db")" = 600

# nodes_from HOST CONTROLLER: trib nodes there, as another machine would; errors into $work/error.
nodes_from() { TRIB_STATE=$work/elsewhere on "$1" "$trib" nodes --json -c "$2" 2>"$work/error"; }
nodes_from h2 "$join" >"$work/nodes"
check "trib with the pin" grep -q '"nodes"' "$work/nodes"
nodes_from h2 "${join/%???=/AAA=}"
check "... with another pin it refuses" grep -q 'not the pinned one' "$work/error"
nodes_from h2 "$control"
check "... and with none, a certificate that nobody vouches for" grep -q 'give its pin' "$work/error"

TRIB_CONTROLLER=$join
agent_on s1
agent_on s2
agent_on h1 --link 200mbit
for host in s1 s2 h1; do
	check "$host joins" wait_for 20 node_is "$host" live
done
# field NAME FIELD
field() { api GET /v1/nodes | jq -r ".nodes[] | select(.name == \"$1\").$2"; }
check "an agent that listens everywhere tells the address that leads to it" \
	test "$(field s2 address)" = "$(address s2):7700"
check "the rate of a shaped link is found" test "$(field s2 link_bps)" = 300000000
check "... but what it was told counts" test "$(field h1 link_bps)" = 200000000

# ask_from HOST RANK: for a plan; the job has two ranks.
job '{"size":2}'
ask_from() { on "$1" "$ask" "$control" "$job" "$cookie" "$2" 2 "1$2" 0 20; }
ask_from h1 0 >"$work/ask.0" &
ask_from h2 1 >"$work/ask.1"
wait $!
check "ranks on other hosts get a plan" all_planned 2 1
check "... of nodes that live" grep -qE "($(address s1)|$(address s2)|$(address h1)):7700\(" "$work/ask.0"
api GET "/v1/jobs/$job" >"$work/job"
check "... and it is told what limits it: $(jq -r '.communicators[0].verdict.limit' "$work/job")" \
	test "$(jq '.communicators[0].verdict | .rate_bps > 0 and .rate_bps <= .bound_bps * 1.001' "$work/job")" = true

TRIB_CONTROLLER=$join on h2 "$trib" explain "$job" >"$work/explained"
check "trib explain says the bound and the limit" \
	test "$(grep -cE 'no trees can carry more than|What limits the plan: .+' "$work/explained")" = 2
TRIB_CONTROLLER=$join on h2 "$trib" explain --json "$job" >"$work/explained"
check "... also as JSON" grep -q '"verdict"' "$work/explained"
check "... and keeps the cookie to itself" lacks "$cookie" "$work/explained"

# A partition: the node is cut off, then comes back.
on s2 ip link set "$(on s2 ip -o route get "$(address s1)" | sed 's/.* dev \([^ ]*\).*/\1/')" down
check "a node that is cut off is silent" wait_for 20 node_is s2 silent
check "... the others are not" node_is s1 live
on s2 ip link set "$(on s2 ip -o -4 addr show | awk '$2 != "lo" { print $2; exit }')" up
check "it comes back when the link does" wait_for 20 node_is s2 live

# again [OPTION]...: the controller ends and starts anew.
again() {
	kill -TERM "$controller"
	wait "$controller"
	: >"$work/controller"
	"$trib" net exec --name "$cluster" s1 -- "$tribd" --controller "$control" "$@" >"$work/controller" 2>&1 &
	controller=$!
	wait_for 10 grep -q 'controller ready' "$work/controller"
}

# A certificate of one's own, from an authority that clients know.
if ! command -v openssl >/dev/null; then
	omit "openssl is not installed"
else
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test \
		-addext "subjectAltName=IP:${control%:*}" -keyout "$work/own.key" -out "$work/own.pem" 2>/dev/null
	TRIB_TLS_CERT=$work/own.pem TRIB_TLS_KEY=$work/own.key again
	check "with a certificate of one's own there is no pin" grep -q "TRIB_CONTROLLER=$control\$" "$work/controller"
	TRIB_TLS_CA=$work/own.pem nodes_from h2 "$control" >"$work/nodes"
	check "... who knows the authority trusts it" grep -q '"nodes"' "$work/nodes"
	nodes_from h2 "$control"
	check "... who does not, does not" grep -q 'give its pin' "$work/error"
fi

# Plain HTTP beyond loopback has to be asked for.
again --plain
scheme=http
api GET /v1/nodes >/dev/null
check "--plain serves HTTP" code_is 200
check "... with a warning" grep -q 'in the clear' "$work/controller"
check "... and prints it" grep -q "TRIB_CONTROLLER=http://$control\$" "$work/controller"
done_checking
