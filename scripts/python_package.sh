#!/usr/bin/env bash
# python_package.sh [--python PYTHON] [--build DIR] wheel|deb [FOLDER]: packs the Python package, with nothing from the network.
# wheel: tributary-VERSION-py3-none-PLATFORM.whl, with libtributary inside. pip install takes it, and needs no compiler.
# deb: python3-tributary_VERSION_all.deb, which uses the library of the machine (make install). FOLDER is build/ by default.
. "$(dirname "$0")/common.sh"

usage() { die "usage: python_package.sh [--python PYTHON] [--build DIR] wheel|deb [FOLDER]"; }

# stage DIR: a copy of the sources, because setuptools writes beside them.
stage() {
	cp -r adapters/python/. "$1"
	find "$1" -name __pycache__ -prune -exec rm -rf {} +
}

# The platform's name in the name of a wheel: the oldest glibc that has what the library needs.
platform() {
	local glibc
	glibc=$(objdump -T "$1" | grep -o 'GLIBC_2\.[0-9]*' | sort -t. -k2 -n | tail -n 1)
	printf 'manylinux_%s_%s\n' "${glibc#GLIBC_}" "$(uname -m)" | tr . _
}

# find_python: one that can make wheels; that of a pyenv, which is mostly the first one, may lack the means.
find_python() {
	for python in python3 /usr/bin/python3; do
		! "$python" -c 'from setuptools.dist import Distribution; Distribution().get_command_class("bdist_wheel")' \
			>/dev/null 2>&1 || return 0
	done
	die "python_package: python3 cannot make wheels: install python3-setuptools and python3-wheel"
}

make_wheel() {
	local work=$1 to=$2 library=$build/src/libtributary.so.0
	[ -n "$python" ] || find_python
	[ -e "$library" ] || die "python_package: there is no $library: type make build"
	cp -L "$library" "$work/tributary/"
	[ ! -e "$build/src/sparse/library/libtributary-sparse.so.0" ] ||
		cp -L "$build/src/sparse/library/libtributary-sparse.so.0" "$work/tributary/"
	strip --strip-unneeded "$work"/tributary/*.so.0
	(cd "$work" && "$python" - bdist_wheel --quiet --plat-name "$(platform tributary/libtributary.so.0)" -d "$to" \
		<<<'import setuptools; setuptools.setup()' >pack.log 2>&1 || { cat pack.log && exit 1; })
	ls "$to"/tributary-*.whl
}

make_deb() {
	local work=$1 to=$2 version tree=$1/deb
	version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' adapters/python/tributary/_library.py)
	mkdir -p "$tree/DEBIAN" "$tree/usr/lib/python3/dist-packages" "$tree/usr/share/doc/python3-tributary"
	cp -r "$work/tributary" "$tree/usr/lib/python3/dist-packages/"
	cp LICENSE "$tree/usr/share/doc/python3-tributary/copyright"
	cat >"$tree/DEBIAN/control" <<-END
		Package: python3-tributary
		Version: $version
		Architecture: all
		Section: python
		Maintainer: The Tributary authors <tributary@localhost>
		Depends: python3 (>= 3.8)
		Suggests: python3-numpy, python3-torch
		Description: collectives that sum vectors while they travel, for Python
		 Collectives for numpy arrays and torch tensors, a communication hook for
		 DistributedDataParallel, and a backend of torch.distributed. It needs
		 libtributary.so.
	END
	dpkg-deb --root-owner-group --build "$tree" "$to/python3-tributary_${version}_all.deb"
}

main() {
	local work to
	python='' build=build
	while [ $# -gt 0 ]; do
		case $1 in
		--python) python=$2 && shift 2 ;;
		--build) build=$(realpath "$2") && shift 2 ;;
		*) break ;;
		esac
	done
	case ${1:-} in wheel | deb) ;; *) usage ;; esac
	mkdir -p "${2:-build}"
	to=$(realpath "${2:-build}")
	work=$(mktemp -d)
	# shellcheck disable=SC2064  # the folder of now
	trap "rm -rf '$work'" EXIT
	stage "$work"
	"make_$1" "$work" "$to"
}

main "$@"
