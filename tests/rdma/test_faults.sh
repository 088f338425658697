#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libtribverbs.so while paths fail and come back, when the peer dies, without a second path and without a device.
# Usage: test_faults.sh BUILD-FOLDER [SECONDS [SEED]]
#   SECONDS   how long a random path is cut and restored, once a second; 6
# shellcheck source-path=SCRIPTDIR disable=SC3043
. "${0%/*}/lib.sh"
start "$@"
need_library
seconds=${2:-6} seed=${3:-$(date +%s)}
limit=$((seconds * 3 + 100))

# cut_paths: until the file $work/stop is there. First the path of the program's own QP is down for so long that the
# QP moves to another one. Then, each second, another path is down.
cut_paths() {
	local n state=$seed
	wait_for 20 grep -qs '4 paths' "$work/a"
	path cut 1
	wait_for 20 grep -q 'goes on, on path' "$work/a"
	path restore 1
	while [ ! -e "$work/stop" ]; do
		state=$(((state * 1103515245 + 12345) % 2147483648))
		n=$((state / 65536 % paths + 1))
		path cut $n
		sleep 0.9
		path restore $n
		sleep 0.1
	done
}

if [ "$paths" -gt 1 ]; then
	echo "seed $seed"
	crossed >"$work/before"
	cut_paths &
	check "a path is cut and restored every second: all right" all_right --seconds "$seconds" --seed "$seed"
	touch "$work/stop"
	wait $!
	check "... and the program's QP has left a path that was cut" grep -q 'goes on, on path' "$work/a"
	grep -h 'path.*failed\|went again' "$work/a" | tail -n 5
	echo "shares of the paths: $(shares "$work/before")"
fi

# killed_while OPTION...: the server dies after a while. How the client ends.
killed_while() {
	client "$@" &
	client=$!
	wait_for 20 grep -qs seed "$work/a" # it is connected
	sleep 1
	kill -KILL "$(pgrep -f "^$build/tests/rdma/verbs_check server")"
	wait $client
}
serve_and killed_while --seconds 60
check "the peer is killed: every work request ends once" grep -q 'ended, each once' "$work/a" || cat "$work/a"

TRIB_VERBS_ADDRESSES=$(first $address_a),$(first $address_b)
export TRIB_VERBS_ADDRESSES
check "without a second path: all right" all_right --seconds 0.3
check "... by plain RDMA, and one line says why" test "$(grep -c 'plain RDMA' "$work/a")" = 1
unset TRIB_VERBS_ADDRESSES

if [ "$paths" -gt 1 ]; then
	rdma link delete "$dev_a"
	rdma link delete "$dev_b"
	with ibv_rc_pingpong >"$work/a" 2>&1
	check "without a device: one line says so" test "$(grep -c 'libtribverbs.*no RDMA device' "$work/a")" = 1 || cat "$work/a"
	rdma link add "$dev_a" type rxe netdev net_a
	rdma link add "$dev_b" type rxe netdev net_b
fi
done_checking
