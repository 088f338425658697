#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# trib plan as people and programs use it; nothing is sent anywhere.
# Usage: test_plan.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"

plan() { "$trib" plan "$@" >"$work/out" 2>"$work/err"; }
says() { grep -qF -- "$1" "$work/out"; }
complains() { # CODE WORDS ARGUMENT...
	local code=$1 words=$2 is
	shift 2
	"$trib" plan "$@" >"$work/out" 2>"$work/err"
	is=$?
	[ $is = "$code" ] && grep -qF -- "$words" "$work/err" && [ ! -s "$work/out" ]
}
json() { python3 -c "import json, sys; v = json.load(open('$work/out')); sys.exit(not ($1))"; }

cat >"$work/paper" <<'END'
# XAgg's figure 12
w1 10.0.0.1:7700 40gbit  4  - 0 round=2
w2 10.0.0.2:7700 40gbit  4  - 1 round=2
w3 10.0.0.3:7700 40gbit  4  - 2 round=2
w4 10.0.0.4:7700 100gbit 4  - 3 round=1
w5 10.0.0.5:7700 100gbit 4  - 4 round=1
w6 10.0.0.6:7700 100gbit 4  - 5 round=1
w7 10.0.0.7:7700 100gbit 4  - 6 round=1
s1 10.0.1.1:7700 100gbit 44 128G -
s2 10.0.1.2:7700 100gbit 44 128G -
ps 10.0.1.3:7700 100gbit 44 128G -
END

check "a file is planned" plan "$work/paper"
check "... the bound and who sets it" says "w1's 40 Gb/s link"
check "... it is reached" says "100.0 % of it; 3 trees on 3 hosts"
check "... the trees" says "*10.0.1.1:7700(0-6);"
check "the standard input too" plan - <"$work/paper"
check "as one tree of XAgg's" plan -k 3 --root ps "$work/paper"
check "... as in the paper's figure" says "10.0.1.3:7700(2,10.0.1.2:7700(0-1,6),10.0.1.1:7700(3-5))"
check "... of the best k" plan -k 0 --root ps "$work/paper"
check "... which is 3" says "one tree of 3 aggregators, k = 3"
if command -v python3 >/dev/null; then
	check "as JSON" plan --json "$work/paper"
	check "... the rates" json 'v["rate_bps"] == v["bound_bps"] == 40e9 and v["workers"] == 7'
	check "random, as JSON" plan --json --random 1000 --seed 4
	check "... has no trees to show" json 'v["trees"] is None and v["rate_bps"] > 0'
fi
check "the same seed" test "$("$trib" plan --random 40 --seed 4)" = "$("$trib" plan --random 40 --seed 4)"
check "another" test "$("$trib" plan --random 40 --seed 4)" != "$("$trib" plan --random 40 --seed 5)"

check "no file is an error" complains 2 "give a FILE"
check "a file that is not there" complains 1 "$work/none: No such file" "$work/none"
echo "h1 10.0.0.1:7700 fast 4 - 0" >"$work/wrong"
check "a wrong line is named" complains 1 "$work/wrong: line 1: " "$work/wrong"
check "not both" complains 2 "give a FILE" --random 3 "$work/paper"
check "too many trees" complains 2 "--trees" --trees 300 "$work/paper"
check "no such root" complains 1 "there is no host of that name" -k 3 --root nobody "$work/paper"

if ldd "$trib" | grep -q libglpk; then
	check "trib check tells of GLPK" grep -q 'linear programs: built in' <("$trib" check)
	check "against the optimum" plan --check 20 --trees 256
	check "... its distribution" says "20 within 3 %" ||
		cat "$work/out"
else
	check "without GLPK it says so" complains 1 "built without GLPK" --check 20
	omit "this build has no GLPK (package libglpk-dev)"
fi
done_checking
