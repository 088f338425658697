#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# trib top --paths, trib explain --paths and /metrics: the paths of a ring in a leaf-spine fabric, before and after
# one is cut. Usage: test_top_paths.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_control.sh"
need_clusters "$@"
start "$@"
name=top$$
export TRIB_PAGES=$work/pages TRIB_TOKEN=a-token-for-tests

# rows RANK PEER: the paths from this rank to one peer, "rank 1:" or "the aggregator:". A rank may have both.
rows() { awk -v rank="$1" -v to=" to $2" '/^job/ { ours = $4 == rank && index($0, to); next } ours' "$work/top"; }
# has_paths STATE RANK PEER N: so many of them are in a state, a regular expression.
has_paths() {
	"$trib" top --paths --once >"$work/top" || return
	[ "$(rows "$2" "$3" | awk -v state="^($1)\$" '$2 ~ state' | wc -l)" = "$4" ]
}
# spines RANK PEER: how many spines are on these paths.
spines() { rows "$@" | grep -o '10\.83\.[0-9]*\.10[1-4]' | sort -u | wc -l; }

# job OPTION...: two workers that sum until $work/stop exists.
job() {
	out=$work/out
	rm -f "$work/stop" "$work"/mark*
	timeout -k 5 100 "$trib" run -n 2 --net "$name" --timeout 30 "$@" -- \
		"$worker" --rounds 1000000 --mark "$work/mark" --until "$work/stop" >"$out" 2>&1 &
	job=$!
	check "workers run" wait_for 30 all_marked 2
}
end_job() {
	touch "$work/stop"
	wait "$job"
	check "all sums are exact" right 2
	check "pages go with their processes" test -z "$(ls "$work/pages")"
}

check "without a job there is nothing to show" grep -q 'No process' <("$trib" top --paths --once)
up "$name" --hosts 2 --leaf 2 --spine 4 --route static --core 100mbit
job --ring
check "rank 0 uses four paths" wait_for 20 has_paths 'good|congested' 0 'rank 1:' 4 || cat "$work/top"
check "... by four spines" test "$(spines 0 'rank 1:')" = 4 || cat "$work/top"
"$trib" explain --paths 1 >"$work/explain"
check "... and explain says why" grep -q 'There are 4 paths to rank 1: .*routers differ' "$work/explain" || cat "$work/explain"
check "... not for another job" grep -q 'No process.* for job 2' <("$trib" explain --paths 2)
check "JSON: a line for each rank" test "$("$trib" top --paths --json | grep -c '"pid":.*"direction":"to".*"state":"')" = 2

"$trib" net cut --name "$name" leaf1-spine3 >/dev/null
check "a path that is cut is dead" wait_for 10 has_paths dead 0 'rank 1:' 1 || cat "$work/top"
check "... the one by that spine" grep -q 'dead .*\.103' "$work/top" || cat "$work/top"
check "... and explain says so" grep -q '\.103.* is dead: .*It was dead [0-9]* time' <("$trib" explain --paths)
if has_control && command -v curl >/dev/null; then
	port=$(free_port)
	"$tribd" --listen "127.0.0.1:$port" --http "127.0.0.1:$((port + 1))" >"$work/tribd" 2>&1 &
	check "a tribd" wait_for 10 grep -q 'metrics on port' "$work/tribd"
	curl -s -m 5 -H "Authorization: Bearer $TRIB_TOKEN" "http://127.0.0.1:$((port + 1))/metrics" >"$work/metrics"
	check "... exports it" grep -q '^trib_path_up{job="1",.*rank="0".*direction="to",peer="rank 1".* 0$' "$work/metrics" ||
		cat "$work/metrics"
	kill "$!" && wait "$!"
else
	omit "metrics need a build with the control plane, and curl"
fi
"$trib" net restore --name "$name" leaf1-spine3 >/dev/null
check "it is used again" wait_for 10 has_paths 'good|congested' 0 'rank 1:' 4 || cat "$work/top"

end_job

# --- lanes to an aggregator at the leaf of rank 0 ---
TRIB_LANES=4 job
check "rank 1 uses four paths" wait_for 20 has_paths 'good|congested' 1 'the aggregator:' 4 || cat "$work/top"
check "... by several spines ($(spines 1 'the aggregator:'))" test "$(spines 1 'the aggregator:')" -ge 2 || cat "$work/top"
check "... to the aggregator" grep -q '4 paths to the aggregator: .*routers differ' <("$trib" explain --paths)
end_job
done_checking
