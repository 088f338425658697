#!/usr/bin/env bash
# static.sh [x86_64|aarch64]: builds static programs, for machines without any packages.
#
# They are in build-static-ARCH/tributary-ARCH/, and that folder is packed as a tar.gz beside it. For a foreign
# architecture, Debian's cross compiler and libraries are installed.
. "$(dirname "$0")/common.sh"

# Program -> its folder in the package, where trib finds tribd and the peers, and tests/net/lib.sh finds all.
declare -A places=(
	[src/cli/trib]=bin
	[src/cli/tribd]=bin
	[bench/peers/trib_allreduce]=bench/peers
	[bench/peers/ring]=bench/peers
	[bench/peers/pingpong]=bench/peers
	[bench/peers/ps]=bench/peers
	[tests/net/worker_check]=tests/net
)

usage() { die "usage: static.sh [x86_64|aarch64]"; }

# cross_file ARCH
cross_file() {
	cat <<-END
		[binaries]
		c = '$1-linux-gnu-gcc'
		ar = '$1-linux-gnu-ar'
		strip = '$1-linux-gnu-strip'
		pkgconfig = 'pkg-config'

		[properties]
		pkg_config_libdir = ['/usr/lib/$1-linux-gnu/pkgconfig', '/usr/share/pkgconfig']

		[host_machine]
		system = 'linux'
		cpu_family = '$1'
		cpu = '$1'
		endian = 'little'
	END
}

# make_programs ARCH DIR
make_programs() {
	local options=(-Dstatic=true)
	if [ "$1" != "$(uname -m)" ]; then
		cross_file "$1" >"$2/cross.ini"
		options+=(--cross-file "$2/cross.ini")
	fi
	find_bpftool
	[ -f "$2/build.ninja" ] || configure "$2" gcc "${options[@]}" || return
	ninja -C "$2" "${!places[@]}"
}

# pack ARCH DIR
pack() {
	local folder=$2/tributary-$1 program
	rm -rf "$folder"
	for program in "${!places[@]}"; do
		install -D -s --strip-program="$1-linux-gnu-strip" -t "$folder/${places[$program]}" "$2/$program"
	done
	install -m 644 -t "$folder" LICENSE
	tar -C "$2" --sort=name --owner=0 --group=0 -czf "$folder.tar.gz" "tributary-$1"
}

main() {
	local arch=${1:-$(uname -m)} dir
	[ $# -le 1 ] || usage
	case $arch in
	x86_64 | aarch64) ;;
	*) usage ;;
	esac
	dir=build-static-$arch
	scripts/deps.sh build "static-$arch"
	mkdir -p "$dir"
	if ! make_programs "$arch" "$dir" >"$dir/build.log" 2>&1; then
		cat "$dir/build.log"
		die "static: the build in $dir/ failed"
	fi
	pack "$arch" "$dir"
	say "$dir/tributary-$arch.tar.gz"
}

main "$@"
