#!/usr/bin/env bash
# build.sh [TARGET]...: installs missing packages, then makes an optimised build in build/, all of it or these
# targets. Says how far it is; prints nothing if there is nothing to do.
. "$(dirname "$0")/common.sh"

# Reads what ninja says, and shows the numbers of its steps: on a terminal in one line, else every 5 s.
show_progress() {
	local line last=$SECONDS shown=
	while IFS= read -r line; do
		[[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
		if [ -t 2 ]; then
			printf '\rbuilding: %s of %s ' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" >&2
			shown=yes
		elif [ $((SECONDS - last)) -ge 5 ]; then
			warn "building: ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
			last=$SECONDS
		fi
	done
	[ -z "$shown" ] || printf '\r\033[K' >&2
}

main() {
	local log=build/build.log
	scripts/deps.sh build
	mkdir -p build
	if ! is_current build; then
		warn "building: configuring build/; the first build takes minutes"
		if ! configure build gcc >"$log" 2>&1; then
			cat "$log"
			die "build: meson could not configure build/"
		fi
	fi
	find_bpftool
	if ! build build "$@" 2>&1 | tee "$log" | show_progress; then
		cat "$log"
		die "build: ninja failed"
	fi
}

main "$@"
