#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Packets that an attacker without the cookie sends into a running job: it ends well all the same.
# Usage: test_hostile.sh PATH_TO_TRIB
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib_tree.sh"
need_clusters "$@"
start "$@"
command -v python3 >/dev/null || skip "python3 is not installed"
forge=$(realpath "$(dirname "$0")/forge.py")
TRIB_COOKIE=$("$trib" cookie)
export TRIB_COOKIE
up "th$$" --hosts 4 --servers 2 --link 200mbit

# attacked WHAT TREE HOST ARG...: a job in that tree, on which HOST forges packets while it runs.
attacked() {
	local what=$1 shape=$2 host=$3 job
	shift 3
	rm -f "$work"/mark.* "$work/over"
	run_options="--timeout 20" tree_right "$what" "$shape" 4 --rounds 1000000 --until "$work/over" --max 3000 \
		--mark "$work/mark" &
	job=$!
	check "$what: all ranks are at work" wait_for 20 all_marked 4
	check "... packets are forged" test "$(on "$host" -- "$forge" "$@")" -gt 0
	sleep 0.5 # the time in which a hint becomes a verdict
	touch "$work/over"
	wait "$job" || failures=$((failures + 1))
}

tribd_on s1 s2
attacked "a star" 's1(0-3)' h1 closed
attacked "a tree, its leaves" 's1(s2(0,1),2,3)' h1 closed
attacked "a tree, between aggregators" 's1(s2(0,1),2,3)' h1 closed "$(at_host s1)" "$(at_host s2)"
end_tribds
done_checking
