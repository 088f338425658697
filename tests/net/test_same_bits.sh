#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every collective on every plane, in both shapes: the bits of all results are the same, whether user
# space, the kernel or the TCP plane has made them: test_same_bits.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
need_xdp
a=ts$$

# made_by PLANE: did it run there?
made_by() { grep '"tribd":' "$out" | tail -n 1 | grep -q "\"plane\":\"$1\""; }

# from_kernel: nine results in ten at least, a barrier's too, which have nothing to add.
from_kernel() {
	kernel=$(counter kernel_results) all=$(counter results)
	[ "${kernel:-0}" -gt 0 ] && [ $((kernel * 10)) -ge $((all * 9)) ]
}

# every_plane COLLECTIVE: types, operations and lengths follow from the seed.
every_plane() {
	local plane rounds=30 _
	[ "$1" != barrier ] || rounds=100 # of one result each
	for plane in udp xdp tcp; do
		# Results leave from user space until workers hear the group. On a busy machine a job may end before.
		for _ in 1 2 3 4 5; do
			run_options="--plane $plane --lanes 2" go_right "$shape, $1 on $plane" 4 --only "$1" \
				--rounds $rounds --max 30000 --seed 51
			[ $plane = xdp ] && ! from_kernel || break
		done
		check "... by $plane" made_by $plane
		[ $plane != udp ] || digests "$out" >"$work/udp"
		check "... the bits of udp" same_digests "$work/udp"
		[ $plane != xdp ] || check "... ${kernel:-0} of ${all:-0} results left from the kernel" from_kernel
	done
}

for shape in switch server; do
	options=()
	[ $shape = server ] || options=(--switch)
	up $a --hosts 4 --servers 1 "${options[@]}"
	for collective in allreduce reduce broadcast allgather reduce_scatter barrier; do
		every_plane $collective
	done
	down
done
done_checking
