#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rdma-core's own Python tests: those that pass on this device without libtribverbs.so pass with it.
# Usage: test_suite.sh BUILD-FOLDER
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/lib.sh"
start "$@"
need_library
suite=/usr/share/doc/rdma-core/tests # of the package python3-pyverbs
[ -d $suite ] || skip "rdma-core's tests are not installed (package python3-pyverbs)"
cp -r $suite "$work/tests"
find "$work/tests" -name '*.gz' -exec gunzip {} +

# run_suite OUTPUT: one line for each test that passed.
run_suite() {
	timeout -k 5 200 python3 "$here/suite.py" "$work" "$dev_a" "$gid_a" all >"$work/lines" 2>"$work/errors"
	awk '$1 == "ok" { print $2 }' "$work/lines" | sort >"$1"
}
run_suite "$work/plain"
LD_PRELOAD=$library run_suite "$work/ours"
echo "$(wc -l <"$work/plain") tests pass without the library, $(wc -l <"$work/ours") with it"
comm -23 "$work/plain" "$work/ours" >"$work/lost"
check "tests pass on this device" test "$(wc -l <"$work/plain")" -gt 20
check "... and none is lost with the library: $(tr '\n' ' ' <"$work/lost")" test ! -s "$work/lost" || tail -n 40 "$work/errors"
done_checking
