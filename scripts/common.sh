# shellcheck shell=bash
# What the scripts share. Sourced, never run. It changes into the root folder of the project.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PATH:/usr/sbin:/sbin"
umask 022
export CCACHE_DEPEND=1 # ccache runs no preprocessor: ninja has the compiler write down what a file includes

say() { printf '%s\n' "$@"; }
warn() { printf '%s\n' "$*" >&2; }
die() {
	warn "$*"
	exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }
is_root() { [ "$(id -u)" -eq 0 ]; }

# Ubuntu's bpftool is a wrapper that works only for the running kernel. For a build, the real program of
# any kernel will do.
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

# packages: one line that changes if a compiler or a library for building comes, goes or is upgraded.
packages() {
	if have dpkg-query; then
		dpkg-query -W | grep -E -- '-dev|^(gcc|g\+\+|clang|llvm|bpftool|ccache|meson|pkg-?conf)'
	else
		pkg-config --list-all
	fi 2>/dev/null | sort | cksum
}

# is_current DIR: the folder is configured, and no package has come or gone since.
is_current() { [ -f "$1/build.ninja" ] && [ "$(cat "$1/packages" 2>/dev/null)" = "$(packages)" ]; }

# options_of_build DIR: what Meson was told when it configured the folder, one option a line.
options_of_build() {
	sed -n '/^\[options\]/,/^\[prop/s/^\([a-z0-9_.:]*\) = \(.*\)/-D\1=\2/p' "$1/meson-private/cmd_line.txt" 2>/dev/null
}

# configure DIR COMPILER [meson options]: makes or updates a build folder. Meson remembers which
# libraries it did not find, so it has to start anew if packages have come since. Objects are kept.
configure() {
	local dir=$1 compiler=$2 options=()
	shift 2
	if have ccache; then
		compiler="ccache $compiler"
	fi
	if [ "${compiler##* }" = clang ] && have ld.lld; then
		local -x CC_LD=lld # takes half the time
	fi
	find_bpftool
	if ! is_current "$dir" || ! CC=$compiler meson setup --reconfigure "$dir" "$@"; then
		mapfile -t options < <(options_of_build "$dir")
		rm -f "$dir/packages" "$dir/meson-private/coredata.dat"
		CC=$compiler meson setup "$dir" "${options[@]}" "$@" || return
	fi
	packages >"$dir/packages"
}

# build DIR [TARGET]...: only ninja. It configures again by itself if a meson.build has changed. If $behind is set, it
# has a low priority, also beside tests that Meson starts: see behind.sh.
build() { ${behind:+setsid --wait scripts/behind.sh} ninja -C "$@"; }

# build_flavour NAME: configures and builds build/ (gcc) or build-NAME. Warnings are errors: those of gcc
# in the first, those of clang in asan. The TSan flavour has only the programs that are run with TSan.
# With -g1 a sanitizer names lines, and the build takes less time than with all that a debugger needs.
build_flavour() {
	local sanitize=(-Dtests=enabled -Db_lundef=false -Doptimization=1)
	case $1 in
	gcc) configure build gcc -Dwerror=true -Dtests=enabled && build build ;;
	asan)
		configure build-asan clang -Dwerror=true "${sanitize[@]}" -Db_sanitize=address,undefined \
			-Dc_args="-g1 -fno-sanitize-recover=all $(fuzz_arguments)" \
			-Dfuzz="$(has_libfuzzer && echo true || echo false)" && build build-asan
		;;
	tsan)
		configure build-tsan clang -Dwerror=true "${sanitize[@]}" -Db_sanitize=thread -Dc_args=-g1 &&
			build build-tsan threads_tests src/cli/tribd bench/peers/trib_allreduce examples/train
		;;
	coverage)
		configure build-coverage gcc -Dtests=enabled -Db_coverage=true -Doptimization=1 && build build-coverage
		;;
	*) die "build_flavour: no flavour $1" ;;
	esac
}

has_libfuzzer() {
	printf 'int LLVMFuzzerTestOneInput(const char *p, unsigned long n){return !p && n;}' |
		clang -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null
}

# The code under test is instrumented too, so that libFuzzer sees which lines an input has reached.
fuzz_arguments() {
	if has_libfuzzer; then
		echo -fsanitize=fuzzer-no-link
	fi
}

# Sanitizers of clang 14 fail if the kernel randomises addresses with many bits.
fixed_addresses() {
	if setarch -R true 2>/dev/null; then
		echo "setarch -R"
	fi
}
