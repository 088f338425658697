# shellcheck shell=sh disable=SC3043  # every shell that this meets has local
# SPDX-License-Identifier: Apache-2.0
# How a test of shell commands waits, and counts what went wrong. Sourced, also by a plain sh.
failures=0

# check WHAT CONDITION...: CONDITION is a command.
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

# wait_for SECONDS CONDITION...
wait_for() {
	local tries=$(($1 * 20))
	shift
	while ! "$@"; do
		[ $((tries -= 1)) -gt 0 ] || return 1
		sleep 0.05
	done
}

# done_checking: the last line of a test.
done_checking() { [ $failures = 0 ]; }
