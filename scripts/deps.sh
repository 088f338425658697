#!/usr/bin/env bash
# deps.sh SET...: installs the Debian or Ubuntu packages that are missing for build, test, bench or python (its wheel).
# The sets static-x86_64 and static-aarch64 are for static programs of that architecture. If it is not
# the architecture of this machine, it is added to dpkg as a foreign one.
#
# Installing needs root or sudo. Without either, the script says what is missing and what to type. It
# fails only if a needed package is missing. A line that begins with "deps: " reports what is missing.
. "$(dirname "$0")/common.sh"

# An entry is package[|alternative...][@command]. It is there if one of the packages is installed, or
# if the command is found, whatever installed it.
needed_build="gcc@gcc libc6-dev meson@meson ninja-build@ninja pkg-config|pkgconf@pkg-config"
optional_build="clang@clang llvm@llvm-strip libbpf-dev zlib1g-dev liblzma-dev
	bpftool|linux-tools-generic@bpftool iproute2@ip
	libmicrohttpd-dev libjansson-dev libsqlite3-dev libgnutls28-dev
	libcurl4-gnutls-dev|libcurl4-openssl-dev libibverbs-dev librdmacm-dev"

optional_python="python3@python3 python3-setuptools python3-wheel"

needed_test="libcmocka-dev"
optional_test="clang@clang lld@ld.lld clang-format@clang-format clang-tidy@clang-tidy cppcheck@cppcheck gcovr@gcovr
	iproute2@ip ethtool@ethtool shellcheck@shellcheck cpio@cpio busybox-static@busybox
	curl@curl jq@jq openssl@openssl procps@pgrep util-linux@setpriv strace@strace valgrind@valgrind systemd@systemd-analyze
	sqlite3@sqlite3 prometheus@promtool openmpi-bin@mpirun mpich@mpiexec.hydra libglpk-dev
	libopenmpi-dev libmpich-dev gfortran@gfortran hpcc@hpcc python3-mpi4py libgloo-dev g++@g++ python3-pytest python3-numpy python3-torch $optional_python
	ibverbs-utils@ibv_rc_pingpong ibverbs-providers rdmacm-utils@rping perftest@ib_write_bw python3-pyverbs"

needed_bench=""
optional_bench="openmpi-bin@mpirun libopenmpi-dev mpich@mpiexec.mpich libmpich-dev libgloo-dev g++@g++
	liblinear-tools@liblinear-train iperf3@iperf3 iputils-ping@ping python3@python3 python3-torch libopenblas0-pthread linux-perf|linux-tools-generic@perf"

# The names of the two architectures in the names of packages.
declare -A debian_names=([x86_64]=amd64 [aarch64]=arm64)

# static_packages ARCH: libraries and, for a foreign architecture, their headers and a compiler.
static_packages() {
	local name=${debian_names[$1]} package
	if [ "$1" != "$(uname -m)" ]; then
		printf '%s ' "gcc-${1/_/-}-linux-gnu@$1-linux-gnu-gcc"
	fi
	for package in libc6-dev libbpf-dev libelf-dev zlib1g-dev liblzma-dev; do
		printf '%s ' "$package:$name"
	done
	printf '%s ' clang@clang 'bpftool|linux-tools-generic@bpftool'
}

is_installed() {
	dpkg-query -W -f='${Status}\n' "$1" 2>/dev/null | grep -q 'ok installed'
}

is_known() {
	apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'
}

# The runtime of clang's sanitizers is a package of its own, named after clang's version.
clang_runtime() {
	local version
	version=$(clang --version 2>/dev/null | sed -n 's/.*clang version \([0-9]*\).*/\1/p')
	if [ -n "$version" ]; then
		printf 'libclang-rt-%s-dev|libclang-common-%s-dev\n' "$version" "$version"
	fi
}

# For the tests on an older kernel.
qemu() {
	case $(uname -m) in
	aarch64) printf 'qemu-system-arm@qemu-system-aarch64\n' ;;
	x86_64) printf 'qemu-system-x86@qemu-system-x86_64\n' ;;
	esac
}

# satisfied ENTRY
satisfied() {
	local packages=${1%@*} command=${1#*@} package
	if [ "$command" != "$1" ] && have "$command"; then
		return 0
	fi
	for package in ${packages//|/ }; do
		if is_installed "$package"; then
			return 0
		fi
	done
	return 1
}

# missing ENTRIES: those that are not there, one a line.
missing() {
	local entry
	for entry in $1; do
		satisfied "$entry" || printf '%s\n' "$entry"
	done
}

# choose ENTRIES: for each the first package that the archive has; else its first name.
choose() {
	local entry package chosen
	for entry in $1; do
		entry=${entry%@*}
		chosen=${entry%%|*}
		for package in ${entry//|/ }; do
			if is_known "$package"; then
				chosen=$package
				break
			fi
		done
		printf '%s ' "$chosen"
	done
}

# sudo asks for the password on the terminal, wherever the output goes.
has_terminal() { { : </dev/tty; } 2>/dev/null; }

as_root() {
	if is_root; then
		"$@"
	elif have sudo && { sudo -n true 2>/dev/null || has_terminal; }; then
		sudo "$@"
	else
		return 1
	fi
}

install_packages() {
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -q --no-install-recommends "$@"
}

# accept_foreign: prepares dpkg for packages of another architecture.
accept_foreign() {
	if [ -n "$foreign" ] && ! dpkg --print-foreign-architectures | grep -qx "$foreign"; then
		as_root dpkg --add-architecture "$foreign"
	fi
}

# install NEEDED OPTIONAL: all at once. If that fails, one by one, so that a package which the archive
# lacks does not keep the others out.
install() {
	local package
	as_root true || return 0
	accept_foreign
	as_root apt-get update -q || warn "deps: apt-get update failed; trying with the lists at hand"
	# shellcheck disable=SC2046
	if install_packages $(choose "$1 $2"); then
		return 0
	fi
	for package in $(choose "$1 $2"); do
		install_packages "$package" || true
	done
}

usage() { die "usage: deps.sh build|test|bench|python|static-x86_64|static-aarch64 ..."; }

collect() {
	local set
	for set in "$@"; do
		case $set in
		build) needed+=" $needed_build" optional+=" $optional_build" ;;
		test) needed+=" $needed_test" optional+=" $optional_test $(clang_runtime) $(qemu)" ;;
		bench) needed+=" $needed_bench" optional+=" $optional_bench" ;;
		python) optional+=" $optional_python" ;;
		static-x86_64 | static-aarch64)
			needed+=" $(static_packages "${set#static-}")"
			[ "${set#static-}" = "$(uname -m)" ] || foreign=${debian_names[${set#static-}]}
			;;
		*) usage ;;
		esac
	done
}

report() {
	local hint
	hint="apt-get install --no-install-recommends $(choose "$1 $2")"
	if [ -n "$2" ] && is_root; then
		warn "deps: these packages could not be installed, and tests that need them are skipped: $(choose "$2")"
	elif [ -n "$2" ]; then
		warn "deps: these packages are not installed, and what needs them is left out: $(choose "$2")"
	fi
	if [ -n "$1" ]; then
		warn "deps: missing, and needed: $(choose "$1")"
	fi
	warn "deps: as root, type: $hint"
}

main() {
	local needed="" optional="" foreign="" lack_needed lack_optional
	[ $# -gt 0 ] || usage
	collect "$@"
	if ! have dpkg-query; then
		warn "deps: no Debian or Ubuntu here; not checked:" "$(choose "$needed $optional")"
		return 0
	fi
	if [ -n "$(missing "$needed")$(missing "$optional")" ]; then
		install "$(missing "$needed")" "$(missing "$optional")" >&2
		# clang may have come only now, and the package of its runtime has its version in the name.
		needed="" optional=""
		collect "$@"
		if [ -n "$(missing "$optional")" ] && as_root true; then
			# shellcheck disable=SC2046
			install_packages $(choose "$(missing "$optional")") >&2 || true
		fi
	fi
	lack_needed=$(missing "$needed")
	lack_optional=$(missing "$optional")
	if [ -n "$lack_needed$lack_optional" ]; then
		report "$lack_needed" "$lack_optional"
	fi
	[ -z "$lack_needed" ]
}

main "$@"
