#!/usr/bin/env bash
# Packages, then an optimised build in build/. Quiet when all is well.
. "$(dirname "$0")/common.sh"

main() {
	local log=build/build.log
	scripts/deps.sh build
	mkdir -p build
	if [ ! -f build/build.ninja ] && ! configure build gcc >"$log" 2>&1; then
		cat "$log"
		die "build: meson could not configure build/"
	fi
	find_bpftool
	if ! build build >"$log" 2>&1; then
		cat "$log"
		die "build: ninja failed"
	fi
}

main
