# shellcheck shell=bash
# What the scripts share; sourced, never run. Leaves the shell in the project's root folder.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PATH:/usr/sbin:/sbin"
umask 022

say() { printf '%s\n' "$@"; }
warn() { printf '%s\n' "$*" >&2; }
die() {
	warn "$*"
	exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }
is_root() { [ "$(id -u)" -eq 0 ]; }

# Ubuntu's bpftool is a wrapper that only serves the kernel that runs. The real one is as good for
# a build, whichever kernel it came with.
find_bpftool() {
	local real
	if bpftool version >/dev/null 2>&1; then
		return
	fi
	for real in /usr/lib/linux-tools*/*/bpftool /usr/lib/linux-tools*/bpftool; do
		if [ -x "$real" ]; then
			PATH="$(dirname "$real"):$PATH"
			return
		fi
	done
}

# configure DIR COMPILER [meson options]: makes or updates a build folder.
configure() {
	local dir=$1 compiler=$2
	shift 2
	if have ccache; then
		compiler="ccache $compiler"
	fi
	find_bpftool
	if [ ! -f "$dir/build.ninja" ]; then
		CC=$compiler meson setup "$dir" "$@"
	elif ! CC=$compiler meson setup --reconfigure "$dir" "$@"; then
		CC=$compiler meson setup --wipe "$dir" "$@"
	fi
}

# build DIR [TARGET]...: ninja alone; it configures again by itself when a meson.build has changed.
build() { ninja -C "$@"; }

# build_flavour NAME: configures and builds build/ (gcc) or build-NAME, warnings being errors. That with
# clang is for its warnings, and that with TSan has what is run of it.
build_flavour() {
	local sanitize=(-Db_lundef=false -Doptimization=1)
	case $1 in
	gcc) configure build gcc --werror && build build ;;
	clang) configure build-clang clang --werror -Doptimization=0 && build build-clang ;;
	asan)
		configure build-asan clang --werror "${sanitize[@]}" -Db_sanitize=address,undefined \
			-Dc_args="-fno-sanitize-recover=all $(fuzz_arguments)" \
			-Dfuzz="$(has_libfuzzer && echo true || echo false)" && build build-asan
		;;
	tsan)
		configure build-tsan clang --werror "${sanitize[@]}" -Db_sanitize=thread &&
			build build-tsan threads_tests src/cli/trib{,d} bench/peers/trib_allreduce examples/train
		;;
	coverage)
		configure build-coverage gcc -Db_coverage=true -Doptimization=1 && build build-coverage
		;;
	*) die "build_flavour: no flavour $1" ;;
	esac
}

has_libfuzzer() {
	printf 'int LLVMFuzzerTestOneInput(const char *p, unsigned long n){return !p && n;}' |
		clang -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null
}

# Code under test is instrumented too, so that libFuzzer sees where an input went.
fuzz_arguments() {
	if has_libfuzzer; then
		echo -fsanitize=fuzzer-no-link
	fi
}

# Sanitizers of clang 14 lose their way where the kernel spreads addresses widely.
fixed_addresses() {
	if setarch -R true 2>/dev/null; then
		echo "setarch -R"
	fi
}
