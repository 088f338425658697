#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The examples factorize and words with real parameter servers, on made data and on published data: the loss falls,
# the recommender beats popular items, what they write is well formed, and bad files are named by line.
# Published data are in the folder TRIB_DATA, or in ../shared/data beside the checkout.
# Usage: test_sparse_jobs.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
factorize=$(program examples/factorize) || fail "$factorize"
words=$(program examples/words) || fail "$words"
published=$(realpath -m "${TRIB_DATA:-$(dirname "$0")/../../../shared/data}")
cd "$work" || exit 1

# serve N: N shards with empty folders, in place of those that ran before.
pids=()
serve() {
	local i list=''
	[ ${#pids[@]} = 0 ] || { kill "${pids[@]}" && wait "${pids[@]}"; } 2>/dev/null
	pids=()
	rm -rf "$work"/rows*
	for ((i = 0; i < $1; i++)); do
		: >"shard$i"
		"$trib" sparse serve --dir "$work/rows$i" --shard "$i/$1" --listen 127.0.0.1:0 --sync none >"shard$i" 2>&1 &
		pids+=($!)
		wait_for 10 grep -q 'ready on' "shard$i" || fail "shard $i: $(cat "shard$i")"
		list+=${list:+,}$(sed -n 's/.*ready on \([0-9.:]*\).*/\1/p' "shard$i")
	done
	export TRIB_SPARSE_SERVERS=$list
}

# job N PROGRAM ARG...: N workers; the output of rank 0 is in $work/out. False: a worker failed.
job() {
	local n=$1 rank good=0 workers=()
	shift
	for ((rank = 0; rank < n; rank++)); do
		TRIB_RANK=$rank TRIB_SIZE=$n timeout -k 5 100 "$@" --progress none >"$work/out.$rank" 2>&1 &
		workers+=($!)
	done
	for rank in "${!workers[@]}"; do
		wait "${workers[rank]}" || { good=1 && cat "$work/out.$rank"; }
	done
	cp "$work/out.0" "$work/out"
	return $good
}

# json EXPRESSION: is it true of the results, `r`?
json() {
	python3 -c 'import json, sys; r = json.load(open("json")); e = r["epochs"]; sys.exit(not eval(sys.argv[1]))' "$1" ||
		{ cat "$work/out" && false; }
}

# fails SENTENCE PROGRAM ARG...: ends with 1 or 2 and says so.
fails() {
	local sentence=$1
	shift
	! timeout -k 5 60 "$@" >"$work/err" 2>&1 && grep -q -- "$sentence" "$work/err" && return
	cat "$work/err"
	return 1
}

# ---- made data ----
serve 1
check "factorize, one worker" job 1 "$factorize" --data made --epochs 3 --json json --plot plot.svg
check "... the loss falls" json 'e[2]["loss"] < 0.8 * e[0]["loss"]'
check "... it is better than popular items" json 'e[2]["recall_20"] > 1.5 * e[2]["recall_20_baseline"] > 0.05'
check "... every loss of a step is there" json 'len(r["losses"]) == r["steps"] and r["losses"][-1]["step"] == r["steps"]'
check "... the plot is there" python3 -c 'import xml.dom.minidom as x; x.parse("plot.svg")'
serve 2
check "factorize, three workers, two servers" job 3 "$factorize" --data made --epochs 4 --json json --tensors tensors \
	--staleness 2
check "... the loss falls" json 'e[3]["loss"] < 0.9 * e[0]["loss"]'
check "... it is better than popular items" json 'e[3]["recall_20"] > 1.5 * e[3]["recall_20_baseline"]'
# 24 bytes of header, then n, n keys and n rows of 16 floats for each step
check "... all pushes of each worker are written" python3 - <<'END'
import json, struct
steps = json.load(open("json"))["steps"]
for rank in range(3):
    data = open(f"tensors.{rank}", "rb").read()
    magic, version, width, rows = struct.unpack_from("<8sIIQ", data)
    assert (magic, version, width) == (b"TRIBROWS", 1, 16) and rows > 2900, (magic, version, width, rows)
    at, count = 24, 0
    while at < len(data):
        n, = struct.unpack_from("<I", data, at)
        keys = struct.unpack_from(f"<{n}Q", data, at + 4)
        assert len(set(keys)) == n and all(key >> 32 in (1, 2) for key in keys)
        at += 4 + n * (8 + 4 * width)
        count += 1
    assert at == len(data) and count == steps, (at, len(data), count, steps)
END
serve 1
check "words, two workers" job 2 "$words" --data made --epochs 3 --json json --near a1,b2,nobody --save rows.txt
check "... the loss falls" json 'e[2]["loss"] < 0.9 * e[0]["loss"]'
check "... the words of a topic are near each other" grep -q 'near a1 *a[0-9]* [0-9.]*, a[0-9]* [0-9.]*, a[0-9]*' out
check "... an unknown word is said to be so" grep -q 'nobody *is not in the vocabulary' out
check "... the rows are saved as word2vec does" \
	awk 'NR == 1 { n = $1; w = $2 } NR > 1 && NF != w + 1 { bad = 1 } END { exit bad || NR != n + 1 || n < 200 || w != 48 }' rows.txt

# ---- options and seeds ----
serve 1
job 1 "$factorize" --data made --epochs 2 --optimizer adam --rate 0.01 --staleness 0 --json json
check "factorize with Adam learns" json 'e[1]["loss"] < e[0]["loss"] < 0.7'
cp json first.json
serve 1
job 1 "$factorize" --data made --epochs 2 --optimizer adam --rate 0.01 --staleness 0 --json json
check "one worker with the same seed learns the same" json \
	'r["losses"] == json.load(open("first.json"))["losses"] and len(r["losses"]) > 100'
serve 1
job 1 "$factorize" --data made --epochs 2 --optimizer adam --rate 0.01 --staleness 0 --json json --seed 2
check "... with another seed not" json 'r["losses"] != json.load(open("first.json"))["losses"]'

# ---- bad input ----
mkdir bad
printf '0 1 2\n1 x 3\n' >bad/train.txt
printf '0 4\n' >bad/test.txt
check "a bad number is named by file and line" fails 'bad/train.txt:2: "x" is not a whole number' "$factorize" --data bad
awk 'BEGIN { for (i = 0; i < 1000; i++) print i, i % 50, 1; print "5 6" }' >bad/train.txt
check "... and a line that is no triple behind triples" fails 'bad/train.txt:1001: not "USER ITEM 1"' "$factorize" --data bad
: >bad/train.txt
check "an empty file is named" fails 'bad/train.txt:0: the file has no interactions' "$factorize" --data bad
printf 'no xz' >bad/text.xz
check "a damaged file is named" fails 'bad/text.xz' "$words" --data bad/text.xz
check "a missing file is named" fails 'nothing: No such file' "$words" --data nothing
check "a wrong option is refused" fails 'must be one of sgd' "$words" --optimizer newton
check "a wrong number is refused" fails 'from 1 to 4096' "$words" --width 0
TRIB_SPARSE_SERVERS='' check "no servers are said to be missing" fails 'TRIB_SPARSE_SERVERS' "$factorize" --data made

# ---- published data ----
if [ -e "$published/gowalla/train.txt.xz" ] && command -v xz >/dev/null; then
	serve 1
	check "factorize, Gowalla, 200,000 samples" job 2 "$factorize" --data "$published/gowalla" --epochs 2 --samples 200000 \
		--json json --tested 300
	check "... the loss falls" json 'e[1]["loss"] < e[0]["loss"] and r["keys"] == 70839'
	serve 1
	check "factorize, Amazon Beauty, triples" job 2 "$factorize" --data "$published/amazon-beauty" --epochs 1 --samples 50000 \
		--json json --tested 100
	check "... has its users and items" json 'r["keys"] == 52204 + 57289'
	serve 1
	check "words, text8" job 2 "$words" --data "$published/text8-head/text8.split.head.xz" --samples 60000 --epochs 2 \
		--json json
	check "... the loss falls" json 'e[1]["loss"] < e[0]["loss"]'
else
	omit "gowalla, amazon-beauty and text8-head are not in $published, or xz is not installed"
fi
done_checking
