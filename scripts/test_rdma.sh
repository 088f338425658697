#!/usr/bin/env bash
# test_rdma.sh: the tests of tests/rdma on this machine's own RDMA devices, instead of soft-RoCE in a virtual machine.
# It takes the first two devices with IPv4 addresses for RoCE v2, or the only one for both ends. RDMA_A and RDMA_B name
# others. Paths are not cut here: nobody but the owner of the network may do that.
# A machine without such a device runs them all in the virtual machine. `make test` runs the shorter ones there.
. "$(dirname "$0")/common.sh"

# usable: devices with an active port and an IPv4 address for RoCE v2.
usable() {
	local device
	for device in /sys/class/infiniband/*; do
		grep -q ACTIVE "$device/ports/1/state" 2>/dev/null || continue
		if (here=tests/rdma; . tests/rdma/lib.sh; paths=0; [ -n "$(gids "${device##*/}")" ]); then
			say "${device##*/}"
		fi
	done
}

main() {
	local devices bed=() name code failed=0
	mapfile -t devices < <(usable)
	export RDMA_A=${RDMA_A:-${devices[0]:-}} RDMA_B=${RDMA_B:-${devices[1]:-${devices[0]:-}}}
	scripts/build.sh
	if [ -z "$RDMA_A" ]; then
		say "this machine has no RDMA device with an IPv4 address for RoCE v2: soft-RoCE in a virtual machine"
		unset RDMA_A RDMA_B
		bed=(tests/rdma/run.sh --limit 500)
	else
		say "ends: $RDMA_A and $RDMA_B, of ${#devices[@]} usable devices: ${devices[*]}"
	fi
	for name in plain tools faults ring streams suite; do
		code=0
		say "-- $name"
		"${bed[@]}" sh "tests/rdma/test_$name.sh" build || code=$?
		case $code in
		0) say "PASS $name" ;;
		77) say "SKIP $name" ;;
		*) say "FAIL $name" && failed=1 ;;
		esac
	done
	exit $failed
}

main
