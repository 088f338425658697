#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The XDP programs on the oldest kernel that they are for, Debian's 6.1 in a virtual machine: its
# verifier takes them for every size of cell, and packets come out as they do here. The other tests of
# the programs (xdp_queue, xdp_results, xdp_rings, xdp_fan) run there too if they are named.
#
# Usage: test_verifier.sh FOLDER-WITH-UNIT-TESTS [TEST]...
# 77: skipped, see run.sh.
set -euo pipefail

here=$(dirname "$0")
folder=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- xdp_load xdp xdp_parent xdp_slot xdp_sparse

files=() commands='set -e; uname -r'
for name in "$@"; do
	[ -x "$folder/test_$name" ] || {
		echo "FAILED: test_$name was not built"
		exit 1
	}
	files+=(--file "$folder/test_$name")
	commands+="; echo \"$name, at \$(cut -d\  -f1 /proc/uptime) s\"; $folder/test_$name 2>&1"
	# It is an emulated machine; but every size is to be loaded.
	[ "$name" != xdp_load ] || commands+="; export TRIB_TEST_SHORT=1"
done
exec "$here/run.sh" "${files[@]}" --limit 240 sh -c "$commands"
