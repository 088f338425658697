#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The first hour of a new user: the C program of the README, quiet runs, options in any place, misspelt settings, a
# simulation without data. Usage: test_first_hour.sh PATH_TO_TRIB
# shellcheck disable=SC2016  # what is not expanded here is for sed and sh
. "$(dirname "$0")/lib.sh"
start "$@"
unset TRIB_COUNTERS
source=$(realpath "$(dirname "$0")/../..")

# --- the program of the README, against what make install installs
readme_program() { sed -n '/^```c$/,/^```$/p' "$source/README.md" | grep -v '^```'; }
if command -v cc >/dev/null && command -v pkg-config >/dev/null && command -v meson >/dev/null && [ -e "$build/build.ninja" ]; then
	DESTDIR=$work/root meson install -C "$build" --no-rebuild --quiet >"$work/install" 2>&1
	check "make install" test $? = 0 || cat "$work/install"
	pc=$(find "$work/root" -name tributary.pc)
	place=$(sed -n 's/^prefix=//p' "$pc")
	readme_program >"$work/job.c"
	# shellcheck disable=SC2046  # words of a compiler
	cc "$work/job.c" $(PKG_CONFIG_PATH=${pc%/*} pkg-config --define-variable=prefix="$work/root$place" \
		--cflags --libs tributary) -o "$work/job" 2>"$work/cc"
	check "the C program of the README builds" test $? = 0 || cat "$work/cc"
	LD_LIBRARY_PATH=$(dirname "${pc%/*}") go -n 4 -- "$work/job"
	check "... runs, and prints the sum" grep -q '^\[rank 0\] sum of all ranks: 6$' "$out" || cat "$out"
else
	omit "there is no compiler, pkg-config or build folder here"
fi

# --- a good run is quiet
go -n 2 -- "$worker" --rounds 5
check "a good run" right 2
check "... ends without a warning" lacks 'warn' "$out"
check "... and without JSON" lacks '{' "$out"
TRIB_COUNTERS=on go -n 2 -- "$worker" --rounds 5
check "... unless it is asked for" grep -q '"tribd":' "$out"

# --- options
"$trib" sim --generate 20 --seed 3 >"$work/sim" 2>&1
check "trib sim runs without data" grep -q '^score ' "$work/sim" || cat "$work/sim"
"$trib" sim --models nobody --generate 5 >"$work/sim" 2>&1
check "... and names a model that it does not know" grep -q 'nothing is known of the model nobody' "$work/sim"
check "--json prints JSON" grep -q '^{"version"' <("$trib" check --json)
"$trib" check --json="$work/check.json" >"$work/rest"
check "--json=FILE writes it" grep -q '"findings"' "$work/check.json"
check "... and prints nothing" test ! -s "$work/rest"
"$trib" bench numbers --json "$work/numbers.json" >/dev/null 2>&1
check "--json FILE does so in benchmarks" test -s "$work/numbers.json"
"$trib" glm make "$work/made.txt" --rows 20 --columns 4 >"$work/made" 2>&1
check "options may stand behind operands" test -s "$work/made.txt" || cat "$work/made"
go -n 1 -- sh -c 'echo "$1"' - --json
check "... but those of a command are its own" grep -q '^\[rank 0\] --json$' "$out"
"$trib" show config --json >/dev/full 2>"$work/lost"
check "output that a full disk loses is a failure" test $? = 1
check "... that is told" grep -q 'trib: cannot write the output: No space' "$work/lost"
check "... also for --json=FILE" test "$("$trib" sim --generate 2 --json=/dev/full 2>&1)" = \
	'trib: cannot write the output: No space left on device'

# --- settings
TRIB_AGREGATOR=h:1 "$trib" check >"$work/check"
check "a misspelt setting is named" grep -q 'TRIB_AGREGATOR is set, but is not a setting' "$work/check"
check "... and what is meant" grep -q 'do you mean TRIB_AGGREGATOR' "$work/check"
"$trib" check >"$work/check"
check "... and no other" lacks 'is not a setting' "$work/check"
for wrong in TRIB_PATHS=0 TRIB_CHUNK=1 TRIB_PIN=all TRIB_MULTICAST=maybe; do
	TRIB_RANK=0 TRIB_SIZE=1 env "$wrong" "$worker" --rounds 1 >"$work/wrong" 2>&1
	check "$wrong is refused at once" grep -q "${wrong%=*} is \"${wrong#*=}\" .*expected" "$work/wrong"
done
printf '\xef\xbb\xbfTRIB_RATE=3gbit\n' >"$work/conf"
TRIB_CONFIG=$work/conf "$trib" show config >"$work/shown" 2>&1
check "a byte order mark before settings is left out" grep -q "^TRIB_RATE=3gbit .*conf:1" "$work/shown"
printf '\xef\xbb\xbf# hosts\nh1 10.0.0.1:1 1gbit 4 - 0\nh2 10.0.0.2:1 1gbit 4 - 1\n' >"$work/hosts"
check "... and before the hosts of a plan" "$trib" plan "$work/hosts"
done_checking
