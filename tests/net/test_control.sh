#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A controller and its agents on loopback; any of them may die. Usage: test_control.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
start "$@"
need_control
control=127.0.0.1:$(free_port)
export TRIB_CONTROLLER=$control
one=$(free_port) two=$((one + 20))

# ---- joining, in any order ----
agent a1 "$one"
check "an agent says that there is no controller yet" wait_for 20 grep -q 'no answer from the controller' "$work/a1"
check "a controller starts" controller || exit 1
check "the agent that came first joins" wait_for 20 node_is a1 live
agent a2 "$two" --link 2.5gbit
check "another one joins" wait_for 20 node_is a2 live
check "... with the rate that it was told" \
	test "$(api GET /v1/nodes | jq '.nodes[] | select(.name == "a2").link_bps')" = 2500000000
"$trib" nodes >"$work/nodes"
check "trib nodes lists both" test "$(grep -c ' live ' "$work/nodes")" = 2
check "... as JSON too" test "$("$trib" nodes --json | jq '.nodes | length')" = 2
check "trib names the controller" grep -q "controller $control" <("$trib")

# ---- requests that are refused ----
token='' api GET /v1/nodes >/dev/null
check "without a token nothing is told" code_is 401
token=wrong-token-here api GET /v1/nodes >/dev/null
check "... nor with a wrong one" code_is 401
token=a-token-for-test api GET /v1/nodes >/dev/null
check "... nor with its beginning" code_is 401
TRIB_TOKEN=wrong-token-here "$trib" nodes >/dev/null 2>"$work/error"
check "trib says that the token is wrong" grep -q 'the token is wrong: set TRIB_TOKEN_FILE' "$work/error"
env -u TRIB_TOKEN TRIB_STATE="$work/elsewhere" "$trib" nodes >/dev/null 2>"$work/error"
check "... and that there is none" grep -q 'there is no token here: set TRIB_TOKEN_FILE' "$work/error"
check "a failed eval of trib job new fails" \
	not eval "$(TRIB_TOKEN=wrong-token-here "$trib" job new --size 2 2>/dev/null)"
check "... also with a wrong option" not eval "$("$trib" job new --sise 2 2>/dev/null)"
echo short >"$work/token"
env -u TRIB_TOKEN TRIB_TOKEN_FILE="$work/token" "$trib" nodes >/dev/null 2>"$work/error"
check "... and which file has one that is too short" grep -q "token from $work/token is too short" "$work/error"
TRIB_TOKEN=wrong-token-here agent bad $((one + 40))
check "an agent with a wrong token is refused" wait_for 20 grep -q 'refused: the token' "$work/bad"
check "... and is in no list" test "$(api GET /v1/nodes | jq '.nodes | length')" = 2
kill "${agents[bad]}"

# refused BODY CODE METHOD PATH: what is malformed is refused with a sentence, and changes nothing.
refused() {
	api "$3" "$4" "$1" >/dev/null
	check "refused: $3 $4 ${1:0:40}" code_is "$2" && check "... with a sentence" jq -e .error "$work/answer" >/dev/null
}
refused '{"size":' 400 POST /v1/jobs
refused '[1,2]' 400 POST /v1/jobs
refused '{"size":-1}' 400 POST /v1/jobs
refused '{"size":65}' 400 POST /v1/jobs
refused '{"size":"four"}' 400 POST /v1/jobs
refused '{"size":4,"min":5}' 400 POST /v1/jobs
refused '{"policy":"hope"}' 400 POST /v1/jobs
refused '{"name":"a b"}' 400 POST /v1/jobs
refused '{"name":"a","name":"b"}' 400 POST /v1/jobs
refused '{}' 400 PUT /v1/nodes/10.0.0.1:1
refused '' 400 PUT /v1/nodes/10.0.0.1:1
refused '' 404 GET /v1/jobs/99
refused '' 404 GET /v1/jobs/x
refused '' 404 DELETE /v1/jobs/70000
refused '' 404 GET /v2/jobs
refused '' 405 DELETE /v1/jobs
refused '{"drained":1}' 400 PATCH "/v1/nodes/127.0.0.1:$one"
refused '{"drained":true,"cores":9}' 400 PATCH "/v1/nodes/127.0.0.1:$one"
refused '' 400 PATCH "/v1/nodes/127.0.0.1:$one"
refused '{"drained":true}' 404 PATCH /v1/nodes/10.9.9.9:1
report=$(api GET /v1/nodes | jq -c '.nodes[0]')
refused "$report" 400 PUT /v1/nodes/10.0.0.1:1
refused "$(jq -c '.cores = -1' <<<"$report")" 400 PUT "/v1/nodes/127.0.0.1:$one"
refused "$(jq -c '.name = "a\nb"' <<<"$report")" 400 PUT "/v1/nodes/127.0.0.1:$one"
refused "$(jq -c '.address = "a(0),b:1"' <<<"$report")" 400 PUT "/v1/nodes/127.0.0.1:$one"
refused "$(jq -c '.load = 1e300' <<<"$report")" 400 PUT "/v1/nodes/127.0.0.1:$one"
refused "{\"name\":\"$(head -c 300000 /dev/zero | tr '\0' x)\"}" 413 POST /v1/jobs
printf 'GET / HTTP/9.9\r\n\r\n%s' "$(head -c 3000 /dev/urandom | base64)" |
	timeout 2 bash -c "cat >/dev/tcp/${control/://}" 2>/dev/null
head -c 5000 /dev/urandom >"/dev/udp/${control/://}"
check "rubbish on both ports does no harm" wait_for 20 node_is a1 live
check "... and nothing was made" test "$(api GET /v1/jobs | jq '.jobs | length')" = 0

# ---- ranks and plans ----
job '{"name":"first","size":3,"policy":"fail"}'
check "a job is made" test "$job" = 1
check "a rank of three waits alone" test "$(ask 0 3 1 0 0.5)" = "wait 1"
ask_all 3 0
check "three get plan 1" all_planned 3 1
check "... the same one" test "$(cut -d' ' -f 4 "$work"/ask.? | sort -u | wc -l)" = 1
check "... with an agent that lives" grep -qE "127.0.0.1:($one|$two)\(" "$work/ask.0"
first=$(cut -d' ' -f 4 "$work/ask.0")
check "who asks again gets the same" test "$(ask 1 3 2 0 2)" = "plan 1 1/3 $first"
"$ask" "$control" "$job" 1234 0 3 9 0 5 >"$work/stranger"
check "a wrong cookie is told" grep -q '^refused .*cookie' "$work/stranger"
"$ask" "$control" 77 "$cookie" 0 3 9 0 5 >"$work/stranger"
check "... and a job that is not there" grep -q '^refused job 77 ' "$work/stranger"

# ---- the controller is killed ----
verdict() { api GET /v1/jobs/1 | jq -cS '.communicators[0].verdict'; }
why=$(verdict)
kill -KILL "$controller"
wait "$controller" 2>/dev/null
check "an agent notices, and goes on" wait_for 20 grep -q 'keeps running and tries again' "$work/a1"
check "a killed controller starts again" controller || exit 1
check "... its agents come back" wait_for 20 node_is a1 live
check "... it has the job" test "$(generation 1)" = 1
check "... and why its plan is as it is: $(jq -r .limit <<<"$why")" test -n "$why" -a "$why" = "$(verdict)"
check "... which trib explain tells" grep -q 'What limits the plan: .' <("$trib" explain 1)
check "... and its plan" test "$(ask 2 3 3 0 2)" = "plan 1 2/3 $first"
wait_for 20 node_is a2 live
ask_all 3 1
check "the next plan has the next number" all_planned 3 2
check "a second controller is kept from the store" \
	grep -q 'another controller runs' <("$tribd" --controller "127.0.0.1:$(free_port)" 2>&1)

# ---- an agent is killed ----
kill -KILL "${agents[a2]}"
check "the death of an agent is noticed" wait_for 20 node_is a2 silent
ask_all 3 2
check "the next plan does without it" all_planned 3 3
check "... all of it at the other one" grep -q "^plan 3 0/3 127.0.0.1:$one(0-2)\$" "$work/ask.0"
agent a2 "$two"
check "it comes back" wait_for 20 node_is a2 live
# At once, long before its beats are missed: ranks know first.
kill -KILL "${agents[a2]}"
ask_all 3 3
check "an aggregator that died a moment ago is left out" all_planned 3 4
check "... all of it at the other one" grep -q "^plan 4 0/3 127.0.0.1:$one(0-2)\$" "$work/ask.0"

# ---- policies ----
job '{"size":3,"policy":"shrink"}'
ask_all 3 0
check "a job that may shrink: plan 1" all_planned 3 1
ask 0 3 1 1 20 2 >"$work/ask.0" &
first=$!
ask 2 3 3 1 20 2 >"$work/ask.2"
wait "$first"
check "... it goes on without rank 1" grep -q '^plan 2 0/2 ' "$work/ask.0"
check "... rank 2 is rank 1 now" grep -q '^plan 2 1/2 ' "$work/ask.2"
check "... which the controller tells" \
	test "$(api GET "/v1/jobs/$job" | jq -c '.communicators[0].members')" = '[0,2]'
job '{"size":2,"policy":"fail"}'
ask_all 2 0
check "a job that fails: plan 1" all_planned 2 1
ask 1 2 50 0 20 >"$work/ask.new" &
again=$!
waits() { [ "$(api GET "/v1/jobs/$job" | jq -c '.communicators[0].waiting')" = "$1" ]; }
check "... a rank that started again gets its place when the one before is silent" wait_for 10 waits '[1]'
check "... and is not mixed with the others" \
	grep -q "refused rank 1 (host h1, pid [0-9]*) was restarted" <(ask 0 2 1 1 2)
kill "$again"
wait "$again" 2>/dev/null
"$trib" jobs >"$work/jobs"
check "trib jobs lists three" test "$(grep -cE '^ +[0-9]+ ' "$work/jobs")" = 3
eval "$("$trib" job new --size 4 --policy wait)"
check "trib job new prints settings" test "$TRIB_AGGREGATOR $TRIB_JOB" = "$control 4"
# usage COMMAND...: refused before anything is done, with a sentence.
usage() {
	local code=0
	timeout 10 "$@" >"$work/out" 2>"$work/error" || code=$?
	check "no such use: ${*:2}" test "$code" = 2 && check "... and it says so" test -s "$work/error"
}
usage "$trib" job end "${TRIB_JOB}abc"
usage "$trib" job end -- -1
usage "$trib" job end ''
usage "$tribd" --listen 127.0.0.1:0 controller
usage "$tribd" --listen 127.0.0.1:0 --name a1
check "trib job end ends it" "$trib" job end "$TRIB_JOB"
check "... and it is gone" test "$(api GET /v1/jobs | jq '.jobs | length')" = 3
"$trib" job end "$TRIB_JOB" 2>"$work/error"
check "... once" grep -q "there is no job 4" "$work/error"
eval "$("$trib" job new)"
check "a number is not given again" test "$TRIB_JOB" = 5

# ---- a good-bye ----
job '{"size":3,"policy":"wait"}'
ask_all 3 0
check "a job that waits: plan 1" all_planned 3 1
check "a rank of it leaves, and that is heard" test "$(ask bye 3 2 1 5)" = bye
check "... as often as it says so" test "$(ask bye 3 2 1 5)" = bye
left_job=$job left_cookie=$cookie # what follows is after a kill of the controller

# ---- a drained node ----
"$trib" node drain a1 >"$work/drain"
check "a node is drained by its name" node_is a1 drained
job '{"size":2}'
ask_all 2 0 8
check "... and no plan is made with it" grep -q 'drained (trib node resume)' "$work/ask.0" "$work/ask.1"
kill -KILL "$controller"
wait "$controller" 2>/dev/null
check "the controller is killed and comes back" controller
check "... the node is drained as before" wait_for 20 node_is a1 drained
check "... until it is resumed" "$trib" node resume "127.0.0.1:$one" >/dev/null
check "... and lives" node_is a1 live
job=$left_job cookie=$left_cookie
ask 0 3 1 1 8 >"$work/ask.0" &
first=$!
ask 2 3 3 1 8 >"$work/ask.2"
wait "$first"
check "who had left before the controller was killed is not waited for" grep -q '^plan 2 1/2 ' "$work/ask.2"
"$trib" job end "$job"
check "when a job has ended, a good-bye is heard as well" test "$(ask bye 3 3 1 5)" = bye
"$trib" node drain nobody 2>"$work/error"
check "one that is not there is named" grep -q 'no node of the name or address nobody' "$work/error"

# ---- a drained node without heartbeats: it may only be cut off, and still sum for jobs ----
not_drained() { ! "$trib" node drain --wait "$1" a1 >"$work/drain" 2>"$work/error"; }
kill -STOP "${agents[a1]}"
check "a node that has just fallen silent is not taken for empty" not_drained 1
check "... which is said" grep -q 'whether jobs still use it is unknown' "$work/error"
check "... nor is one that has been so" not_drained 0.1
kill -CONT "${agents[a1]}"
"$trib" node drain a1 >"$work/drain"
check "when it is heard of, it is" grep -q '^no job uses it' "$work/drain"
"$trib" node resume a1 >/dev/null

"$trib" node forget a1 2>"$work/error"
check "one that lives is not forgotten" grep -q '(a1) is live: stop its tribd first' "$work/error"
check "... and is there" node_is a1 live

# ---- the end ----
kill -TERM "${agents[a1]}"
wait "${agents[a1]}"
check "an agent says good-bye" node_is a1 left
"$trib" node forget a1 >"$work/forget"
check "... and is forgotten" grep -q '(a1) is forgotten$' "$work/forget"
check "... as one that was killed is, by its address" "$trib" node forget "127.0.0.1:$two"
check "... and then there is none" test "$(api GET /v1/nodes | jq '.nodes | length')" = 0
"$trib" node forget a1 2>"$work/error"
check "... to forget" grep -q 'no node of the name or address a1' "$work/error"
kill -TERM "$controller"
wait "$controller"
check "the controller ends well" test $? = 0
done_checking
