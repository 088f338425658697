#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command on the RDMA test bed: a virtual machine with two soft-RoCE devices and four shaped paths
# between them (see bed.sh). The files of this machine are there. The command's output comes out here, and
# its exit status is the script's. 77: something is missing on this machine; see ../vm/run.sh for the rest.
#
# PATH_RATE: the rate of each path, 30mbit unless told. PATHS: how many, 4. PROCESSORS: of the machine, 2.
# Usage: run.sh [--limit SECONDS] COMMAND [ARGUMENT]...
set -euo pipefail
here=$(dirname "$(realpath "$0")")

limit=300
if [ "${1:-}" = --limit ]; then
	limit=$2
	shift 2
fi
[ $# -gt 0 ] || {
	sed -n 's/^# Usage: /usage: /p' "$0" >&2
	exit 125
}
for program in ip:iproute2 tc:iproute2 rdma:iproute2 ib_write_bw:perftest rping:rdmacm-utils ibv_rc_pingpong:ibverbs-utils; do
	PATH=$PATH:/usr/sbin:/sbin command -v "${program%:*}" >/dev/null || {
		echo "skipped: ${program%:*} is not installed (package ${program#*:})"
		exit 77
	}
done
modules=()
for module in crc32_generic ib_uverbs rdma_rxe rdma_ucm ib_umad sch_htb sch_netem cls_u32; do
	modules+=(--module "$module")
done
# Soft-RoCE of this kernel warns when a QP is destroyed whose peer has gone.
exec "$here/../vm/run.sh" --host yes --memory 2G --processors "${PROCESSORS:-2}" --warnings ok --limit "$limit" --kernel RDMA_RXE=m "${modules[@]}" \
	env PATH_RATE="${PATH_RATE:-30mbit}" PATHS="${PATHS:-4}" sh "$here/bed.sh" "$@"
