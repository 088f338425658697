# shellcheck shell=sh disable=SC3043  # every shell that runs this file has `local`
# SPDX-License-Identifier: Apache-2.0
# How a shell test waits for a condition, and how it counts failed checks. Sourced, also by a plain sh.
#
# A test ends in one of three ways. It fails if any check failed. Otherwise it is skipped if the
# machine lacks something that the test, or a part of it, needs. Otherwise it passes.
# tests/harness/test_harness.sh proves these rules.
failures=0
omitted=''

# check WHAT CONDITION...: CONDITION is a command. Never write `! helper` as a condition: a helper
# also fails when it cannot find out. Use a helper that asks for the opposite (lacks, lacks_plan, not).
check() {
	local what=$1
	shift
	if "$@"; then
		echo "ok: $what"
	else
		echo "FAILED: $what ($*)"
		failures=$((failures + 1))
		return 1
	fi
}

# not COMMAND...: succeeds if a program ran and reported failure (exit code 1 to 123). A program that
# is missing, cannot be started, ran out of time or was killed proves nothing.
not() {
	local code=0
	"$@" || code=$?
	[ "$code" -ge 1 ] && [ "$code" -le 123 ]
}

# ends_badly PID: waits for a child of this shell, which ends with an error or by a signal.
ends_badly() {
	local code=0
	wait "$1" || code=$?
	[ "$code" != 0 ] && [ "$code" != 127 ] # 127: no such child
}

# lacks PATTERN FILE...: every file is there, and none has a line with the pattern.
lacks() {
	local pattern=$1 file
	shift
	[ $# -gt 0 ] || return 1
	for file; do
		grep -q -- "$pattern" "$file"
		[ $? = 1 ] || return 1 # 2: the file cannot be read
	done
}

# wait_for SECONDS CONDITION... It asks less often after a second, because many conditions start programs. It
# waits for half as long again, as room for a busy machine.
wait_for() {
	local left=$(($1 * 30)) quick=20
	shift
	while ! "$@"; do
		if [ $((quick -= 1)) -gt 0 ]; then
			left=$((left - 1))
			sleep 0.05
		else
			left=$((left - 2))
			sleep 0.1
		fi
		[ "$left" -gt 0 ] || return 1
	done
}

# fail WHAT: the test ends here, because nothing after this point can work.
fail() {
	echo "FAILED: $*"
	failures=$((failures + 1))
	exit 1
}

# skip WHY: the test ends here, because the machine lacks something. A test with a failed check has
# failed, whatever the machine lacks.
skip() {
	fail_if_any
	echo "skipped: $*"
	exit 77
}

# omit WHY: the machine lacks something that the next part needs, and the rest of the test goes on.
omit() {
	echo "omitted: $*"
	omitted="${omitted:+$omitted; }$*"
}

fail_if_any() {
	case $failures in
	0) return 0 ;;
	1) echo "1 check failed" ;;
	*) echo "$failures checks failed" ;;
	esac
	exit 1
}

# done_checking: the last line of every test.
done_checking() {
	fail_if_any
	[ -z "$omitted" ] || skip "$omitted; all other parts passed"
	exit 0
}
