#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prints the folder of mpi4py's own tests, of the version that Debian 12 has. They are downloaded from the server
# that apt has the package python3-mpi4py from, and kept in $XDG_CACHE_HOME/tributary or, where that is not set, in build/mpi. TRIB_MPI4PY
# names another folder. If there are none, prints why and fails.
set -euo pipefail
umask 022
version=3.1.4
sum=0ac7cc1fbd1d026b519c4f439ffc15d8776e5615c262dd233a418d73539c352b

if [ -n "${TRIB_MPI4PY:-}" ]; then
	[ -e "$TRIB_MPI4PY/test_cco_buf.py" ] || { echo "TRIB_MPI4PY=$TRIB_MPI4PY has no test_cco_buf.py" && exit 1; }
	echo "$TRIB_MPI4PY"
	exit
fi
if [ -n "${XDG_CACHE_HOME:-}" ]; then
	cache=$XDG_CACHE_HOME/tributary
else
	cache=$(realpath "$(dirname "$0")/../..")/build/mpi
fi
folder=$cache/mpi4py-$version
if [ ! -e "$folder/test/test_cco_buf.py" ]; then
	# The sources lie beside the package.
	address=$(apt-get download --print-uris python3-mpi4py 2>/dev/null | sed -n "s|^'\\(.*\\)/[^/]*' .*|\\1|p") || true
	[ -n "$address" ] || { echo "mpi4py's tests: apt does not know python3-mpi4py" && exit 1; }
	command -v curl >/dev/null || { echo "mpi4py's tests: curl is not installed" && exit 1; }
	mkdir -p "$cache"
	work=$(mktemp -d "$cache/tmp.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	curl -fsS -m 60 -o "$work/sources" "$address/mpi4py_$version.orig.tar.gz" 2>"$work/why" || {
		echo "mpi4py's tests could not be downloaded: $(head -n 1 "$work/why"); TRIB_MPI4PY names a folder that has them"
		exit 1
	}
	echo "$sum  $work/sources" | sha256sum --quiet -c >/dev/null 2>&1 || { echo "mpi4py's sources have a wrong checksum" && exit 1; }
	tar -xzf "$work/sources" -C "$work"
	mv -T "$work/mpi4py-$version" "$folder" 2>/dev/null || [ -e "$folder" ] # another was faster
fi
echo "$folder/test"
