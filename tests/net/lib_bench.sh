# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For tests of a benchmark: `benchmark` is its name, `measure` are the options of a short measurement.

# bench WHAT OPTION...: measures; JSON in $work/json, the table in $work/out.
bench() {
	local what=$1
	shift
	# shellcheck disable=SC2154
	timeout -k 5 200 "$trib" bench "$benchmark" --hurry --repeats 1 "${measure[@]}" --json "$work/json" "$@" \
		>"$work/out" 2>&1
	check "trib bench $benchmark $what" test $? = 0 || cat "$work/out"
}

# rows N PATTERN: so many rows of the JSON have the pattern.
rows() { [ "$(grep '"system":' "$work/json" | grep -c -- "$2")" = "$1" ] || { cat "$work/json" && false; }; }

# refuses WORDS OPTION...: exit code 2, and the words on stderr.
refuses() {
	local words=$1 code=0
	shift
	"$trib" bench "$benchmark" "$@" >"$work/out" 2>&1 || code=$?
	[ "$code" = 2 ] && grep -q -- "$words" "$work/out"
}

# The planes that all benchmarks can measure here.
planes=udp
if has_bpf && has_xdp; then
	# shellcheck disable=SC2034
	planes=xdp,udp
else
	omit "the plane xdp needs root and a build with BPF programs"
fi
