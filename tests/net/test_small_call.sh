#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How many instructions the library runs for a small allreduce. The count is the same on a busy machine.
# Usage: test_small_call.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
need_clusters "$@"
[ "$(id -u)" = 0 ] || skip "scripts/latency_profile.py needs root"
[ "$(uname -m)" = x86_64 ] || skip "the limit is that of x86_64"
for tool in valgrind python3; do
	command -v $tool >/dev/null || skip "no $tool"
done
start "$@"

# With gcc 12 about 3,650; the rest is for other compilers and C libraries.
most=4000
plane=udp
! has_xdp || plane=xdp
profile=$(dirname "$0")/../../scripts/latency_profile.py

count_instructions() { python3 "$profile" "$build" --instructions --plane "$plane" >"$work/out"; }

check "instructions are counted" count_instructions
count=$(sed -n 's/^\([0-9]*\) instructions.*/\1/p' "$work/out")
echo "$count instructions, at most $most"
check "... they are few" [ "${count:-$((most + 1))}" -le "$most" ]
check "... and more than none" [ "${count:-0}" -gt 1000 ]
done_checking
