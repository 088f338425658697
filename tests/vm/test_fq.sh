#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Pacing by the kernel, on Debian's 6.1 in a virtual machine, for many kernels lack fq: sums are exact,
# fq holds packets until their time, and none leaves before.
#
# Usage: test_fq.sh BUILD-FOLDER
# 77: skipped, see run.sh.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
build=$(realpath "$1")
files=(--file "$here/fq_inside.sh" --file "$(realpath "$here/../net/check.sh")")
for program in "$build"/src/cli/{trib,tribd} "$build"/tests/net/worker_check "$build"/tests/vm/fq_times; do
	[ -x "$program" ] || {
		echo "FAILED: $program was not built"
		exit 1
	}
	files+=(--file "$program")
done
for program in ip tc awk timeout; do
	path=$(command -v "$program") || {
		echo "skipped: $program is not installed"
		exit 77
	}
	files+=(--file "$path")
done
exec "$here/run.sh" "${files[@]}" --module sch_fq --limit 500 sh "$here/fq_inside.sh" "$build"
