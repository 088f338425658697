#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# trib sparse hot, on small data of its own, and on published data if they are there: in the folder TRIB_DATA, or in
# ../shared/data beside the checkout.
# Usage: test_sparse_hot.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
published=$(realpath -m "${TRIB_DATA:-$(dirname "$0")/../../../shared/data}")
start "$@"
cd "$work" || exit 1
command -v python3 >/dev/null || skip "python3 is not installed, and reads JSON"

hot() { timeout -k 5 120 "$trib" sparse hot "$@" >out 2>err; }
says() { grep -qF -- "$1" out; }
json() { python3 -c "import json, sys; v = json.load(open('${2:-out}')); sys.exit(not ($1))"; }
complains() { # CODE WORDS ARGUMENT...
	local code=$1 words=$2 is
	shift 2
	hot "$@"
	is=$?
	[ $is = "$code" ] && grep -qF -- "$words" err && [ ! -s out ]
}

# Five users; item 7 is the hottest, and user 4 has no item.
printf '0 7 1 2\n1 7\n2 7 1\n3 7 9\n4\n' >lists
printf '0 7 1\n0 1 1\n0 2 1\n1 7 1\n2 7 1\n2 1 1\n3 7 1\n3 9 1\n' >pairs
printf 'the cat saw the dog\n\nthe dog saw the cat and the end\n' >text
printf 'the 70\ncat 20\ndog 10\n' >counts

check "lists of items" hot lists --json -
check "... are recognized" json 'v["format"] == "lists" and v["lines"] == 5 and v["records"] == 8'
check "... 4 users and 4 items" json 'v["rows"] == 8 and v["updates"] == 16'
check "... the hottest has 4 of 16 updates" json 'v["skew"][0] == {"rows": 1, "share": 0.25}'
check "... all have all" json 'v["skew"][-1] == {"rows": 8, "share": 1}'
check "... all are hot" json 'v["hot_rows"] == 8 and v["hot_share"] == 1'
check "... 22 blocks of 22 rows in the 44 cells of 64 KiB" json 'v["memory"][0]["rows"] == 22 * 22'
check "... memory from 64 KiB to 16 MiB" json '[m["bytes"] for m in v["memory"]] == [1 << b for b in range(16, 25)]'
# Eight workers push nearly all of the eight rows in each step. One sum of each reaches the server.
check "... the link saves seven eighths" json 'all(0.8 < m["link_saves"] <= 0.875 for m in v["memory"])'
check "without caches" hot lists --json - --no-caches --width 355
check "... rows that are too wide fit nowhere" json 'all(m["rows"] == 0 and m["link_saves"] == 0 for m in v["memory"])'
check "items only" hot lists --json - --rows items
check "... 4 items" json 'v["rows"] == 4 and v["updates"] == 8 and v["skew"][0]["share"] == 0.5'
check "pairs" hot pairs --json json --plot plot.svg
check "... are recognized" json 'v["format"] == "pairs" and v["rows"] == 8 and v["updates"] == 16' json
check "... a table for people" says "8 pairs, 8 rows, 16 updates"
for name in plot plot-sample plot-layout; do
	check "... $name.svg" grep -q '</svg>' $name.svg
done
check "text" hot text --json -
check "... words" json 'v["format"] == "text" and v["rows"] == 6 and v["updates"] == 13'
check "... the" json 'abs(v["skew"][0]["share"] - 5 / 13) < 1e-5'
check "counts" hot counts --json -
check "... words with counts" json 'v["format"] == "counts" and v["rows"] == 3 and v["updates"] == 100'
check "... the" json 'v["skew"][0]["share"] == 0.7'
check "... samples find what is hot" json 'all(s["by"] == "record" for s in v["samples"])'
check "a sample of all" hot lists --sample 100 --json -
check "... finds all" json 'all(s["precision"] == 1 and s["found"]["share"] == 1 for s in v["samples"])'
check "... and all are sure" json 'all(s["sure"] == s["found"] and s["sure_precision"] == 1 for s in v["samples"])'
check "a step has 1000 floats" hot lists --json - --width 500 --growth 30
check "... the second step of two rows adds less than 30 %" json 'v["hot_rows"] == 2 and v["hot_share"] == 0.4375'
{ printf '\xef\xbb\xbf' && cat lists; } >marked
check "a byte order mark at the start of a file" hot marked --json -
check "... is no part of it" json 'v["format"] == "lists" and v["rows"] == 8 and v["updates"] == 16'
xz -k lists 2>xz-err && gzip -k pairs || omit "xz or gzip is not installed"
if [ -e lists.xz ] && [ -e pairs.gz ]; then
	check "compressed files, several" hot --format lists lists.xz lists --json -
	check "... are added up" json 'v["records"] == 16 and v["rows"] == 8'
	check "gzip" hot pairs.gz
	check "standard input" hot - <lists.xz
fi
hot text --json one && hot text --json two && hot text --json three --seed 2
check "the same seed gives the same" cmp one two
check "another seed gives something else" not cmp -s one three

check "a file that is not there" complains 1 "No such file" nothing
check "no file" complains 2 "say which file"
printf '1 2\n1 x\n' >bad-item
printf 'a -5\n' >bad-count
: >empty
check "a bad item" complains 1 'bad-item:2: "x" is not the number of an item' --format lists bad-item
check "a bad count" complains 1 'bad-count:1: "-5" is not a count' --format counts bad-count
check "a file without updates" complains 1 "has no updates" empty
check "a bad format" complains 2 "there are auto, lists, pairs" --format csv lists
check "a bad sample" complains 2 "percents above 0" --sample 0 lists
check "a width of 0" complains 2 "--width has to be from 1 to 4096" --width 0 lists

# A skew as in published data: the k-th row has about 1 / k of the updates.
python3 -c '
import random
random.seed(3)
names = range(20000)
print("\n".join(map(str, random.choices(names, [1 / (k + 1) for k in names], k=300000))))' >zipf
check "a skewed text" hot --format text zipf --json - --width 1
check "... has few hot rows" json '1000 <= v["hot_rows"] < v["rows"] - 2000 and v["hot_share"] > 0.7'
sample8='next(s for s in v["samples"] if s["sample"] == 0.08 and s["by"] == "record")'
check "... a sample of 8 % finds most updates" json "${sample8}['found']['share'] > 0.85 * ${sample8}['found']['best_share']"
check "... sure rows are hot" json "${sample8}['sure_precision'] > 0.95 > ${sample8}['precision'] and ${sample8}['sure']['rows'] > 100"
layouts='{(r["registers"], r["packing"]): r["per_packet"] for r in v["layout"]["recirculations"]}'
check "... fewer recirculations by layout" json "(lambda l: l['heat', 'algorithm 1'] < 1 and
	l['heat', 'algorithm 1'] < l['random', 'in order'])($layouts)"

if [ -e "$published/gowalla/train.txt.xz" ] && [ -e "$published/text8-head/text8.split.head.xz" ]; then
	check "gowalla" hot "$published/gowalla/train.txt.xz" --json -
	check "... is a list" json 'v["format"] == "lists" and v["rows"] > 70000 and v["updates"] == 2 * v["records"]'
	check "... less than one recirculation a packet" json "${layouts}['heat', 'algorithm 1'] < 1"
	check "... with 8 %, nine of ten sure rows are hot" json "${sample8}['sure_precision'] > 0.9 and ${sample8}['sure']['rows'] > 100"
	# The file is in the order of users, so a sample that is even over the file knows their counts nearly. A sample
	# that is not even finds 79 %.
	check "... and 85 % of the hot rows are found" json "${sample8}['precision'] > 0.85"
	check "text8" hot "$published/text8-head/text8.split.head.xz" --json -
	check "... is text" json 'v["format"] == "text" and v["updates"] == 549570'
	check "... with 8 %, nine of ten sure rows are hot" json "${sample8}['sure_precision'] > 0.9 and ${sample8}['sure']['rows'] > 100"
	check "... less than one recirculation a packet" json "${layouts}['heat', 'algorithm 1'] < 1"
else
	omit "gowalla and text8-head are not in $published"
fi
done_checking
