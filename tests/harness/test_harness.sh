#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of the tests: a failure never looks like a pass or a skip. Each rule is broken once here, and
# has to be noticed. Usage: test_harness.sh
set -u
here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bad=0

# expect WHAT CODE WORDS COMMAND...: it ends with this exit code, and its output has the words.
expect() {
	local what=$1 code=$2 words=$3 got=0
	shift 3
	"$@" >"$scratch/out" 2>&1 </dev/null || got=$?
	if [ "$got" = "$code" ] && grep -q -- "$words" "$scratch/out"; then
		echo "ok: $what"
	else
		echo "FAILED: $what: exit code $got instead of $code, or no \"$words\":"
		tail -n 20 "$scratch/out" | sed 's/^/  | /'
		bad=$((bad + 1))
	fi
}

# a_test TEXT: a network test with this text; a dead controller and a trib that can do nothing are at hand.
a_test() {
	timeout 60 bash -c '. "$1/tests/net/lib.sh"; . "$1/tests/net/lib_control.sh"
		work=$2 trib=$2/trib control=127.0.0.1:1 TRIB_TOKEN=t TRIB_JOB=1
		address() { echo "10.0.0.${1#h}"; }
		eval "$3"' test "$root" "$scratch" "$1"
}
printf '#!/bin/sh\necho "no clusters today"\nexit 1\n' >"$scratch/trib"
chmod +x "$scratch/trib"

echo "-- checks and skips"
expect "all checks pass" 0 'ok: one' a_test 'check one true; done_checking'
expect "a failed check fails the test" 1 '1 check failed' a_test 'check one false; check two true; done_checking'
expect "... two of them" 1 '2 checks failed' a_test 'check one false; check two false; done_checking'
expect "a skip" 77 '^skipped: no root' a_test 'check one true; skip "no root"'
expect "a skip after a failed check is a failure" 1 '1 check failed' a_test 'check one false; skip "no root"'
expect "an omitted part" 77 '^skipped: no tc; all other' a_test 'omit "no tc"; check one true; done_checking'
expect "an omitted part and a failed check" 1 '1 check failed' a_test 'omit "no tc"; check one false; done_checking'
expect "fail ends a test" 1 '^FAILED: broken' a_test 'fail broken; exit 0'

echo "-- helpers that cannot find out"
expect "lacks, of a file that is not there" 1 'FAILED: x' a_test 'check x lacks word "$work/none"; done_checking'
expect "... of no file" 1 'FAILED: x' a_test 'check x lacks word; done_checking'
expect "... of one that has the word" 1 'FAILED: x' a_test 'echo word >"$work/f"; check x lacks word "$work/f"; done_checking'
expect "... of one that has not" 0 'ok: x' a_test 'echo none >"$work/f"; check x lacks word "$work/f"; done_checking'
expect "not, of a program that is not there" 1 'FAILED: x' a_test 'check x not "$work/none"; done_checking'
expect "... of one that ran out of time" 1 'FAILED: x' a_test 'check x not timeout 0.1 sleep 9; done_checking'
expect "... of one that fails" 0 'ok: x' a_test 'check x not false; done_checking'
expect "ends_badly, of no child" 1 'FAILED: x' a_test 'check x ends_badly 1; done_checking'
expect "... of one that ends well" 1 'FAILED: x' a_test 'true & check x ends_badly $!; done_checking'
expect "... of one that does not" 0 'ok: x' a_test 'false & check x ends_badly $!; done_checking'

echo "-- a controller that is dead"
command -v jq >/dev/null || {
	echo "skipped: jq is not installed"
	exit 77
}
for helper in 'has_plan h1' 'lacks_plan h1' 'node_is h1 live' 'plan_is_past 0'; do
	expect "$helper fails without an answer" 1 'FAILED: x' a_test "check x $helper; done_checking"
done
plan='api() { echo "{\"communicators\": [{\"plan\": \"10.0.0.1:7700(0-2)\"}]}"; };'
expect "with an answer, a host is in the plan" 0 'ok: x' a_test "$plan check x has_plan h1; done_checking"
expect "... and another one is not" 0 'ok: x' a_test "$plan check x lacks_plan h2; done_checking"
expect "... which has_plan says too" 1 'FAILED: x' a_test "$plan check x has_plan h2; done_checking"
expect "... lacks_plan of one that is" 1 'FAILED: x' a_test "$plan check x lacks_plan h2 h1; done_checking"
none='api() { echo "{\"communicators\": []}"; };'
expect "where there is no plan, none lacks a host" 1 'FAILED: x' a_test "$none check x lacks_plan h2; done_checking"

echo "-- clusters"
expect "trib net up fails: so does the test" 1 'FAILED: trib net up .*no clusters today' \
	a_test 'up one --hosts 2; check x true; done_checking'
expect "a build that lacks a program fails the test" 1 'this build has no tests/net/worker_check' a_test "start '$scratch/trib'"

echo "-- builds without a part"
# machine MODULE...: pkg-config knows these modules, and no others.
machine() {
	mkdir -p "$scratch/modules"
	printf '#!/bin/sh\nfor module in %s; do\n\t[ "${2%%%% *}" != "$module" ] || exit 0\ndone\nexit 1\n' "$*" \
		>"$scratch/modules/pkg-config"
	chmod +x "$scratch/modules/pkg-config"
}
# without TEXT: a network test with a build that is empty, on that machine.
without() { a_test "PATH=$scratch/modules:\$PATH build=$scratch/modules; $1; check one true; done_checking"; }
libraries='libmicrohttpd jansson sqlite3 libcurl gnutls'
machine $libraries
expect "no control plane, although its libraries are there" 1 'FAILED: this build has no tests/unit/test_node_report' without need_control
machine ${libraries/sqlite3/}
expect "... one of them is missing: a skip" 77 '^skipped: sqlite3 >= [0-9.]* is not installed' without need_control
machine ompi-c
expect "no adapter, although its MPI is there" 1 'FAILED: this build has no adapter.so' without 'need_built adapter.so ompi-c'
machine
expect "... the MPI is missing: a skip" 77 '^skipped: ompi-c is not installed' without 'need_built adapter.so ompi-c'
touch "$scratch/modules/adapter.so"
expect "what is built is needed no more" 0 'ok: one' without 'need_built adapter.so ompi-c'

# none_in WHAT PATTERN FILE...: no line of these files has it.
none_in() {
	local what=$1 pattern=$2
	shift 2
	expect "$what" 0 '' not_in "$pattern" "$@"
}
not_in() {
	grep -nE -- "$@"
	[ $? = 1 ] && echo none
}
echo "-- what no test may say"
none_in "a node that does not join is no skip" 'skip ".*(joined|no cluster)' "$root"/tests/net/*.sh
none_in "nor is a missing program of the build" 'skip .*(this build has no \$|was not built)' "$root"/tests/net/*.sh "$root"/tests/vm/*.sh
none_in "no helper is negated that asks the controller" '! *(has_plan|holds|node_is [^|;]*; *done_checking)' "$root"/tests/net/test_*.sh
none_in "network tests skip by way of check.sh" '(exit|return) 77' "$root"/tests/net/test_*.sh "$root"/tests/net/lib*.sh
none_in "no meson.build leaves a test out whose source is missing" 'fs\.exists|is_variable' "$root"/tests/meson.build "$root"/tests/*/meson.build

echo "-- scripts/test.sh"
# suite TEXT: functions of scripts/test.sh, with logs of their own.
suite() { timeout 60 bash -c '. "$1/scripts/test.sh"; logs=$2/logs; rm -rf "$logs"; mkdir -p "$logs"; eval "$3"' suite "$root" "$scratch" "$1"; }
expect "a failed test fails the suite" 1 '^0 passed, 1 failed, 0 skipped$' suite 'check one false; report'
expect "one that runs out of time too" 1 '^FAIL one, which did not end' suite 'check one timeout 0.1 sleep 9; report'
expect "one that passes does not" 0 '^1 passed, 0 failed, 0 skipped$' suite 'check one true; report'
skipped='check one bash -c "echo skipped: no root; exit 77"; report'
expect "a skipped test is listed with its reason" 0 '^  one: no root$' suite "$skipped"
expect "... and the last line is the count" 0 '^0 passed, 0 failed, 1 skipped$' suite "$skipped | tail -n 1"
expect "... of one in the background too" 0 '^  one: no root$' \
	suite 'beside b check one bash -c "echo no root; exit 77"; gather b; report'
expect "what failed comes before the log" 0 '^  > FAILED: late$' \
	suite 'check one bash -c "seq 300; echo FAILED: late; seq 300; exit 1" | sed -n 2p'
expect "... also cmocka's words" 0 'test_x.c:12: error: Failure!$' \
	suite 'cmocka() { say "[  ERROR   ] --- 1 != 2" "[   LINE   ] --- ../test_x.c:12: error: Failure!"; exit 1; }
		check one cmocka | sed -n 3p'
expect "... at most ten lines of them" 0 '^10$' suite 'check one bash -c "yes FAILED: x | head -n 50; exit 1" | grep -c "^  > "'
# crowd COMMAND: a suite whose only network test is this one; it fails beside others, and passes alone if the file exists.
crowd() {
	suite "network_names() { :; }; slowest=(one); timeout() { bash -c '$1'; }
		cd '$scratch'; rm -f alone twice; network_tests; run_again no; run_again yes; report"
}
expect "a network test that fails beside others is run again alone" 0 '^1 passed, 0 failed' \
	crowd '[ -e alone ] || { touch alone; echo FAILED: too slow; exit 1; }'
expect "... and the report names it" 0 '^  net one$' crowd '[ -e alone ] || { touch alone; exit 1; }'
expect "... with what failed at first" 0 '^  > FAILED: too slow$' \
	crowd '[ -e alone ] || { touch alone; echo FAILED: too slow; exit 1; }'
expect "... but not one that found a wrong sum" 1 '^0 passed, 1 failed' \
	crowd '[ -e alone ] || { touch alone; echo part 1 is wrong from byte 8 on; exit 1; }'
expect "... and one that fails beside the analyses too is run once more" 0 '^1 passed, 0 failed' \
	crowd '[ -e twice ] || { [ ! -e alone ] || touch twice; touch alone; exit 1; }'
expect "... and one that always fails, fails the suite" 1 '^0 passed, 1 failed' crowd 'exit 1'
expect "a part of the suite that breaks is a failure" 1 '1 failed' suite 'beside b false; gather b; report'

# rows LINE...: a build folder whose log of tests has these lines, and whose list has two tests. If one test is
# asked for, the log has the lines in $later.
later=''
rows() {
	mkdir -p "$scratch/build/meson-logs" "$scratch/bin"
	printf '%s\n' "$@" >"$scratch/rows"
	printf '%s\n' "$later" >"$scratch/later"
	cat >"$scratch/bin/meson" <<-END
		#!/bin/sh
		case \$* in
		*--list*two) printf 'tributary:unit / two\n' ;;
		*--list*) printf 'tributary:unit / one\ntributary:unit / two\n' ;;
		*two) echo "alone, short: \$TRIB_TEST_SHORT, seed: \${TRIB_TEST_SEED-none}" >"$scratch/how"; cp "$scratch/later" "$scratch/build/meson-logs/testlog.json" ;;
		*) cp "$scratch/rows" "$scratch/build/meson-logs/testlog.json" ;;
		esac
	END
	chmod +x "$scratch/bin/meson"
	rm -f "$scratch/how"
	PATH=$scratch/bin:$PATH suite "$in_suite; run_again yes; report; [ ! -e '$scratch/how' ] || cat '$scratch/how'"
}
in_suite="meson_tests unit '$scratch/build'"
row() { printf '{"name": "unit / %s", "result": "%s", "returncode": %d, "duration": 1, "stdout": "%s"}' "$1" "$2" "${4:-0}" "$3"; }
expect "two unit tests" 0 '^2 passed, 0 failed' rows "$(row one OK '')" "$(row two OK '')"
expect "one of two did not run" 1 'unit: 1 of 2 tests ran' rows "$(row one OK '')"
expect "none ran" 1 '^0 passed, 1 failed' rows
later=$(row two FAIL '')
expect "one failed, also alone" 1 '^1 passed, 1 failed' rows "$(row one OK '')" "$(row two FAIL '')"
expect "... and its second failure is shown" 1 '^FAIL unit two, fail' rows "$(row one OK '')" "$(row two FAIL '')"
later=$(row two OK '')
expect "one failed, but not alone" 0 '^2 passed, 0 failed' rows "$(row one OK '')" "$(row two FAIL 'FAILED: late')"
expect "... and the report names it" 0 '^  unit two$' rows "$(row one OK '')" "$(row two FAIL 'FAILED: late')"
expect "... also one that ran out of time" 0 '^  unit two$' rows "$(row one OK '')" "$(row two TIMEOUT '')"
for fault in 'ERROR: AddressSanitizer: heap-use-after-free' 'x.c:1: runtime error: shift' 'ERROR: libFuzzer: deadly signal' \
	'part 1 is wrong from byte 8'; do
	expect "... but none is excused with: $fault" 1 '^1 passed, 1 failed' rows "$(row one OK '')" "$(row two FAIL "$fault")"
done
expect "... nor with a leak" 1 '^1 passed, 1 failed' rows "$(row one OK '')" "$(row two FAIL 'ERROR: LeakSanitizer: detected memory leaks')"
expect "... nor one that crashed" 1 '^1 passed, 1 failed' rows "$(row one OK '')" "$(row two FAIL '' -11)"
leaky='[  FAILED  ] test\nERROR: LeakSanitizer: detected memory leaks\nSUMMARY: AddressSanitizer: 8 byte(s) leaked in 1 allocation(s).'
expect "... but one is that was ended by cmocka, and so has lost memory" 0 '^  unit two$' rows "$(row one OK '')" "$(row two FAIL "$leaky")"
expect "... unless a sanitizer has found more" 1 '^1 passed, 1 failed' rows "$(row one OK '')" \
	"$(row two FAIL "$leaky\nERROR: AddressSanitizer: heap-use-after-free")"
later=''
expect "... and if the second time none ran" 1 '^1 passed, 1 failed' rows "$(row one OK '')" "$(row two FAIL '')"
later=$(row two OK '')
in_suite="beside vm meson_tests vm '$scratch/build'; gather vm"
expect "one in the background, too" 0 '^  vm two$' rows "$(row one OK '')" "$(row two FAIL '')"
in_suite="sanitized meson_tests asan '$scratch/build'"
expect "one with a sanitizer" 0 '^2 passed, 0 failed' rows "$(row one OK '')" "$(row two FAIL '')"
expect "... with the same environment" 0 '^alone, short: 1, seed: none$' rows "$(row one OK '')" "$(row two FAIL '')"
expect "... and with the seed that failed" 0 ', seed: 22$' \
	rows "$(row one OK '')" "$(row two FAIL 'seed 11\nseed 22\n[  FAILED  ] x\nseed 33')"
in_suite="meson_tests unit '$scratch/build'"
expect "cmocka skipped a part" 0 'skipped by the program: test_b' rows "$(row one OK '')" "$(row two OK '[  SKIPPED ] test_b\n')"

echo "-- configuring"
# setup OPTION...: configures a copy of the sources, from which $missing was removed, without the packages in $hidden.
mkdir "$scratch/hide"
printf '#!/bin/sh\ncase "$*" in *"$hidden"*) exit 1 ;; esac\nexec pkg-config "$@"\n' >"$scratch/hide/pkg-config-but"
printf '#!/bin/sh\nexit 1\n' >"$scratch/hide/cmake"
chmod +x "$scratch"/hide/*
setup() {
	rm -rf "$scratch/tree" && mkdir "$scratch/tree" || return 125
	(cd "$root" && tar -cf - --exclude='./build*' --exclude=./.git .) | tar -C "$scratch/tree" -xf -
	[ -z "$missing" ] || rm "$scratch/tree/$missing"
	hidden=$hidden PKG_CONFIG=$scratch/hide/pkg-config-but PATH=$scratch/hide:$PATH \
		meson setup "$scratch/tree/build" "$scratch/tree" -Dcontrol=disabled "$@"
}
missing=tests/unit/test_engine.c hidden=nothing
expect "a unit test whose source is missing" 1 'test_engine.c does not exist' setup
missing='' hidden=cmocka
expect "no cmocka, where tests are wanted" 1 'cmocka' setup -Dtests=enabled

# A library comes after the first configuration, as with make run, make test on a fresh machine.
mkdir -p "$scratch/late/usr"
cat >"$scratch/late/meson.build" <<'END'
project('late', 'c')
cc = meson.get_compiler('c')
late = cc.find_library('late', has_headers: 'late.h', required: false, dirs: meson.current_source_dir() / 'usr',
  header_args: '-I' + meson.current_source_dir() / 'usr')
message('late:', late.found())
END
# configured PACKAGES: as scripts/common.sh does it, if these are installed.
configured() {
	bash -c '. "$1/scripts/common.sh"; now=$3; packages() { echo "$now"; }; cd "$2"; configure build gcc' \
		configured "$root" "$scratch/late" "$1"
}
expect "a library is not there" 0 'late: false' configured none
echo 'int late;' | gcc -x c -shared -fPIC -o "$scratch/late/usr/liblate.so" -
touch "$scratch/late/usr/late.h"
expect "it has come, and is found" 0 'late: true' configured late

[ $bad = 0 ] || echo "$bad failed"
[ $bad = 0 ]
