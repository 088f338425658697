#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unmodified programs with libtribverbs.so: their data is right, and it takes all paths.
# Usage: test_tools.sh BUILD-FOLDER
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/lib.sh"
start "$@"
need_library

for tool in ib_write_bw ib_send_bw ib_read_bw; do
	crossed >"$work/before"
	check "$tool" both $tool -s 262144 -n 24 -t 4 || continue
	grep -h libtribverbs "$work/a" | head -n 5
	[ "$paths" = 4 ] || continue
	shares=$(shares "$work/before")
	check "$tool: $(rate) Mb/s; shares of the paths: $shares" all_paths_share "$shares"
done

crossed >"$work/before"
check "verbs_check, all operations" all_right --seconds 2 --max 500000
[ "$paths" = 4 ] && echo "shares of the paths: $(shares "$work/before")"
check "verbs_check, which sleeps until an event comes" all_right --seconds 1 --events

with timeout 60 rping -s -a "$(first $address_b)" -C 3 -S 60000 -V >"$work/b" 2>&1 &
server=$!
wait_for 20 listens_rdma
check "rping finds its data right" with timeout 60 rping -c -a "$(first $address_b)" -I "$(first $address_a)" -C 3 -S 60000 -V
check "... also at the other end" wait $server

check "ibv_rc_pingpong finds its data right" both ibv_rc_pingpong -n 20 -c

preload_b=''
check "a peer without the library: all right" all_right --seconds 0.3
check "... by plain RDMA, and one line says why" test "$(grep -c 'plain RDMA' "$work/a")" = 1
unset preload_b
done_checking
