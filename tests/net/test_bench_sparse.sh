#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# trib bench sparse: its rows, its JSON, its plots, pushes of an example, and what it refuses.
# Usage: test_bench_sparse.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
start "$@"

benchmark=sparse
measure=(--warmup 3 --iterations 4 --steps 4 --keys 5000 --rows 300 --sync none)
. "$(dirname "$0")/lib_bench.sh"

# value EXPRESSION: is it true of the results `r` (a list of rows) and the curves `c`?
value() {
	python3 -c 'import json, sys
j = json.load(open(sys.argv[2])); r = j["results"]; c = j["curves"]; sys.exit(not eval(sys.argv[1]))' "$1" "$work/json" ||
		{ cat "$work/json" && false; }
}

IFS=, read -ra on <<<"$planes"

bench "of all systems" --workers 2,3 --plane "$planes" --plot "$work/plot.svg" --server-link 20mbit
check "... hot has a row for each number of workers on each plane" rows $((2 * ${#on[@]})) '"system": "hot".*"failed": 0'
for name in servers dense; do
	check "... $name has a row for each number of workers" rows 2 "\"system\": \"$name\".*\"failed\": 0"
	check "... $name is in the table" grep -q " $name " "$work/out"
done
for field in workers plane bytes updates_per_s spread servers_ratio; do
	check "... every row has $field" rows $((2 * ${#on[@]} + 4)) "\"$field\": [\"0-9]"
done
check "... the servers alone have a ratio of 1" rows 2 '"system": "servers".*"servers_ratio": 1,'
check "... some updates are hot" value 'all(0 < x["hot_share"] <= 1 and x["hot_rows"] > 0 for x in r if x["system"] == "hot")'
if [ "$planes" != udp ]; then
	check "... the kernel adds what the plane xdp adds" \
		value 'all(x["kernel_share"] > 0.8 for x in r if x["system"] == "hot" and x["plane"] == "xdp")'
fi
# A row of 16 floats and its key has 72 bytes; headers and acknowledgements are few.
check "... the servers' link has the bytes of all rows" \
	value 'all(70 < x["server_bytes_per_update"] < 90 for x in r if x["system"] == "servers")'
check "... with hot rows it has fewer" value 'all(x["server_bytes_per_update"] < 70 for x in r if x["system"] == "hot")'
# 20 Mb/s carry 34,700 rows of 72 bytes in a second.
check "... and it is the limit of the servers" \
	value 'all(10000 < x["updates_per_s"] < 40000 for x in r if x["system"] == "servers")'
check "... the plot is there" grep -q '</svg>' "$work/plot.svg"

bench "with losses, two servers and pulls" --workers 2 --systems hot,servers --plane udp --loss 0,0.01 --shards 2 --pull \
	--plot "$work/plot.svg"
check "... a row for each probability" rows 2 '"loss": 0.01,.*"failed": 0'
check "... hot rows are hot with losses too" value 'all(x["hot_share"] > 0 for x in r if x["system"] == "hot")'
check "... the plot is over losses" grep -q 'lost packets' "$work/plot.svg"

bench "with a drift" --workers 2 --systems hot --plane udp --drift --plot "$work/plot.svg"
check "... each iteration is there" value '[x["iteration"] for x in c] == [0, 1, 2, 3] and all(x["updates_per_s"] > 0 for x in c)'
check "... the plot is over time" grep -q 'seconds' "$work/plot.svg"

# The last of two runs fails.
timeout -k 5 100 "$trib" bench sparse --hurry --workers 2 --systems servers "${measure[@]}" --iterations 20 --server-link 10mbit \
	--repeats 2 --json "$work/json" >"$work/out" 2>&1 &
first='' second=''
another() { second=$(pgrep -P "$(pgrep -P "$1")" -f peers/sparse | grep -vx "${first:-none}" | head -n 1) && [ -n "$second" ]; }
wait_for 20 another $! && first=$(pgrep -P "$(pgrep -P $!)" -f peers/sparse) && wait_for 40 another $! && kill -9 "$second"
wait $! || :
check "a run that fails is told" value 'r[0]["failed"] == 1'
check "... and its figures do not count" value '1000 < r[0]["updates_per_s"] < 40000 and r[0]["bytes"] > 0'

factorize=$(program examples/factorize) || fail "$factorize"
: >"$work/serve"
"$trib" sparse serve --dir "$work/rows" --listen 127.0.0.1:0 --sync none >"$work/serve" 2>&1 &
wait_for 10 grep -q 'ready on' "$work/serve" || fail "$(cat "$work/serve")"
TRIB_SPARSE_SERVERS=$(sed -n 's/.*ready on \([0-9.:]*\).*/\1/p' "$work/serve") \
	"$factorize" --data made --epochs 1 --steps 12 --progress none --tensors "$work/pushed" >"$work/out" 2>&1 ||
	fail "$(cat "$work/out")"
kill $!
bench "of an example's pushes" --workers 2 --systems servers,dense --plane udp --tensors "$work/pushed"
check "... the dense sum has all users and items" value 'r[1]["system"] == "dense" and r[1]["bytes"] == 2999 * 16 * 4'

check "a wrong list of workers is refused" refuses '"x" is not a whole number' --workers 2,x
check "a wrong system is refused" refuses 'is not one of hot, servers, dense' --systems foo
check "a wrong plane is refused" refuses 'is not one of xdp, udp, pisa' --plane foo
check "a wrong probability is refused" refuses 'not a probability' --loss 1
check "missing pushes are refused" refuses 'there is no nothing.0' --tensors nothing
check "a drift of given pushes is refused" refuses 'does not go with --tensors' --tensors "$work/pushed" --drift
check "no servers are refused" refuses 'from 1 to 8' --shards 0
check "a wrong option is refused" refuses 'not an option' --bogus
done_checking
