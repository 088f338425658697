#!/usr/bin/env bash
# bench.sh [NAME...]: measures all sections of docs/benchmarks.md, or the named ones (ONLY=a,b does the same), and
# writes their tables and plots into docs/. QUICK=1: short runs that leave docs/ as it is, unless DOCS=1.
# The sections "sim-..." and "share-..." need MINA's traces in the folder mina of TRIB_DATA (../shared/data).
. "$(dirname "$0")/common.sh"

main() {
	local options=(--only "${ONLY:-} $*")
	is_root || die "bench: needs root, for network namespaces"
	[ -z "${QUICK:-}" ] || options+=(--quick)
	[ -z "${DOCS:-}" ] || options+=(--docs)
	scripts/deps.sh bench
	scripts/build.sh
	python3 scripts/bench_report.py "${options[@]}"
}

main "$@"
