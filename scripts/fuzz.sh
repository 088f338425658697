#!/usr/bin/env bash
# fuzz.sh [SECONDS]: runs every fuzz target in turn on all cores; the targets share the time. libFuzzer keeps
# its corpus in build-asan/fuzz/NAME for the next time. An input that breaks a target is kept in
# build-asan/fuzz/crashes, and ends the run.
. "$(dirname "$0")/common.sh"

main() {
	local total=${1:-600} out=build-asan/fuzz name target targets each
	scripts/deps.sh build test
	has_libfuzzer || die "fuzz: this clang has no libFuzzer (libclang-rt-*-dev)"
	build_flavour asan >/dev/null
	mapfile -t targets < <(find build-asan/tests/fuzz -maxdepth 1 -type f -name 'fuzz_*' -perm -u+x)
	[ ${#targets[@]} -gt 0 ] || die "fuzz: no targets in build-asan/tests/fuzz"
	each=$(((total + ${#targets[@]} - 1) / ${#targets[@]}))
	mkdir -p "$out/crashes"
	for target in "${targets[@]}"; do
		name=$(basename "$target")
		name=${name#fuzz_}
		if [ "$name" = xdp ] && ! is_root; then
			say "fuzz: $name is left out: loading a BPF program needs root"
			continue
		fi
		mkdir -p "$out/$name"
		say "fuzz: $name for $each s"
		$(fixed_addresses) "$target" -max_total_time="$each" -fork="$(nproc)" \
			-artifact_prefix="$out/crashes/$name-" "$out/$name" "tests/fuzz/corpus/$name" \
			2>"$out/$name.log" || {
			tail -n 60 "$out/$name.log"
			die "fuzz: $name failed; inputs: $(find "$out/crashes" -name "$name-*" | tr '\n' ' ')"
		}
		tail -n 1 "$out/$name.log"
	done
	say "fuzz: nothing found"
}

main "$@"
