#!/usr/bin/env bash
# Installs missing packages, then makes an optimised build in build/. Prints nothing if all is well.
. "$(dirname "$0")/common.sh"

main() {
	local log=build/build.log
	scripts/deps.sh build
	mkdir -p build
	if ! is_current build && ! configure build gcc >"$log" 2>&1; then
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
