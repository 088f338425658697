#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The bed itself, without the library: programs work, all their bytes take the first path, a path has the rate
# that it should have, and a cut path carries nothing.
# Usage: test_plain.sh BUILD-FOLDER
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/lib.sh"
start "$@"
echo "a: $dev_a, $address_a; b: $dev_b, $address_b"

for tool in ib_write_bw ib_send_bw ib_read_bw; do
	crossed >"$work/before"
	check "$tool" both $tool -s 65536 -n 100 -t 16 || continue
	echo "$tool: $(rate) Mb/s"
	[ "$paths" -gt 0 ] || continue
	since "$work/before" >"$work/bytes"
	check "... one path has all of it" awk 'NR == 1 { ok = $1 + $2 > 6553600 } NR > 1 && $1 + $2 > 20000 { ok = 0 } END { exit !ok }' "$work/bytes"
done
check "ibv_rc_pingpong" both ibv_rc_pingpong -n 50 -c
grep usec "$work/a"
done_checking
