# shellcheck shell=sh disable=SC3043,SC2034,SC2154
# SPDX-License-Identifier: Apache-2.0
# What the RDMA tests share. They run on the test bed (run.sh) or, by scripts/test_rdma.sh, on real devices.
# Sourced first: . lib.sh, then start "$@".
#
# A test has two ends, a and b. For each: $dev_a its device, $address_a its addresses, one for each path. On the
# bed, $paths is 4, and `path` controls the paths. On real devices $paths is 0: nobody knows what they are.
set -u
export LC_ALL=C
here=${here:-$(dirname "$(realpath "$0")")}
# shellcheck source-path=SCRIPTDIR
. "$here/../net/check.sh"

# start BUILD-FOLDER: finds the programs, the devices and a place for files.
start() {
	build=$(realpath "${1:?usage: ${0##*/} BUILD-FOLDER}")
	library=$(find "$build" -name libtribverbs.so | head -n 1)
	work=$(mktemp -d)
	paths=${PATHS:-0}
	dev_a=${RDMA_A:-rxe_a} dev_b=${RDMA_B:-rxe_b}
	gids "$dev_a" >"$work/gids_a"
	gids "$dev_b" >"$work/gids_b"
	gid_a='' gid_b=''
	read -r gid_a _ <"$work/gids_a"
	read -r gid_b _ <"$work/gids_b"
	address_a=$(cut -d ' ' -f 2 "$work/gids_a") address_b=$(cut -d ' ' -f 2 "$work/gids_b")
	preload=''
	trap 'rm -rf "$work"' EXIT
	trap 'exit 130' INT TERM
}

# gids DEVICE: the index and the IPv4 address of each GID that RoCE v2 routes. On the bed they are among the first.
gids() {
	local port=/sys/class/infiniband/$1/ports/1 line gid high low index some='*'
	[ "$paths" = 0 ] || some='?'
	# shellcheck disable=SC2086  # a pattern
	grep -s ':0000:ffff:' "$port"/gids/$some | while read -r line; do
		index=${line%%:*} gid=${line##*:ffff:}
		index=${index##*/} high=${gid%:*} low=${gid#*:}
		grep -qs 'RoCE v2' "$port/gid_attrs/types/$index" &&
			echo "$index $((0x${high%??})).$((0x${high#??})).$((0x${low%??})).$((0x${low#??}))"
	done | sort -n
}

# need_library: the test is about it.
need_library() {
	[ -n "$library" ] || skip "this build has no libtribverbs.so"
	preload=$library
}

now() { cut -d ' ' -f 1 /proc/uptime; }
first() { echo "$1"; }

# with COMMAND...: runs it with the library, if one is in use. Programs that poll leave the emulated processors to
# soft-RoCE, which works in threads of the kernel.
with() { LD_PRELOAD=$preload TRIB_VERBS_LOG=${TRIB_VERBS_LOG:-info} nice -n 19 "$@"; }

# listens PORT: somebody waits for a TCP connection there.
listens() { grep -q ":$(printf %04X "$1") 0*:0000 0A" /proc/net/tcp; }
# listens_rdma: somebody waits for a connection by rdma_cm.
listens_rdma() { rdma resource show cm_id 2>/dev/null | grep -q 'state LISTEN'; }

# both PROGRAM OPTION...: a tool of perftest or ibv_rc_pingpong, at both ends. The output is in $work/a, $work/b.
# False: one of them failed.
both() {
	local tool=$1 server status=0
	shift
	set -- "$tool" "$@"
	# shellcheck disable=SC2046  # one word each
	with timeout -k 5 "${limit:-150}" "$@" $(end "$tool" "$dev_b" "$gid_b") >"$work/b" 2>&1 &
	server=$!
	wait_for 20 listens 18515 || status=1
	# shellcheck disable=SC2046,SC2086
	with timeout -k 5 "${limit:-150}" "$@" $(end "$tool" "$dev_a" "$gid_a") $(first $address_b) >"$work/a" 2>&1 || status=$?
	wait $server || status=$?
	[ $status = 0 ] || cat "$work/a" "$work/b"
	return $status
}

# end TOOL DEVICE GID: options that name the device and its first address. The timeout of a QP is 1 s (-u 18): with
# perftest's own 67 ms, an emulated machine that is late sends all again.
end() {
	case $1 in
	ibv_*) echo "-d $2 -g $3" ;;
	*) echo "-d $2 -x $3 -F -u 18" ;;
	esac
}

# rate: Mb/s, as the tool of perftest says.
rate() { awk '/^ [0-9]+ +[0-9]+ / { v = $4 } END { printf "%.1f\n", v * 1.048576 * 8 }' "$work/a"; }

# crossed: bytes that have crossed each path from a to b, and back; `path bytes` for all paths at once.
crossed() {
	[ "$paths" = 0 ] || {
		tc -s class show dev net_a
		tc -s class show dev net_b
	} | awk '$1 == "class" { n = substr($3, 3) } $1 == "Sent" { b[n] = b[n] " " $2 } END { for (n = 1; n in b; n++) print b[n] }'
}
# since FILE: what has crossed since `crossed >FILE`, one line for each path: bytes from a to b, bytes back.
since() { crossed | paste -d ' ' "$1" - | awk '{ print $3 - $1, $4 - $2 }'; }

# at_least A B: A >= B, for numbers with a point.
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

# serve_and COMMAND...: runs COMMAND while verbs_check serves at b. The outputs are in $work/a and $work/b; $server
# is the server's process. $preload_b: another library at b. False: one of them failed.
serve_and() {
	local status=0
	preload=${preload_b-$preload} with \
		timeout -k 5 "${limit:-150}" "$build/tests/rdma/verbs_check" server "$(first $address_b)" >"$work/b" 2>&1 &
	server=$!
	wait_for 20 listens_rdma || status=1
	"$@" >"$work/a" 2>&1 || status=$?
	wait $server || status=$?
	return $status
}

# client OPTION...: of verbs_check, at a.
client() {
	with timeout -k 5 "${limit:-150}" "$build/tests/rdma/verbs_check" client "$(first $address_b)" \
		--from "$(first $address_a)" "$@"
}

# all_right OPTION...: verbs_check at both ends finds every byte right.
all_right() {
	serve_and client "$@" && grep 'all right' "$work/a" "$work/b" | sed 's/^.*\///' && return
	cat "$work/a" "$work/b"
	return 1
}

# shares FILE: of each path, in percent, of what has crossed in both directions since `crossed >FILE`.
shares() { since "$1" | awk '{ n[NR] = $1 + $2; all += n[NR] } END { for (i = 1; i <= NR; i++) printf "%.1f ", n[i] * 100 / (all ? all : 1) }'; }

# all_paths_share SHARES: each path has at least a twentieth. How even they are depends on whether the emulated machine can
# fill the paths; scripts/bench_verbs.py measures that.
all_paths_share() { echo "$1" | awk '{ for (i = 1; i <= NF; i++) if ($i < 5) exit 1; exit NF != 4 }'; }

# ranks OPTION...: ranks 0 and 1 of worker_check. The test has `rank N OPTION...`, which starts rank N with its output in
# $work/N, and sets $pid. False: one of them failed.
ranks() {
	local other status=0
	rank 1 "$@"
	other=$pid
	rank 0 "$@"
	wait "$other" || status=$?
	wait "$pid" || status=$?
	[ $status = 0 ] || cat "$work/0" "$work/1"
	return $status
}
# digest: of all sums of rank 0. same_digest: it is $expected.
digest() { sed -n 's/.*digest \([0-9a-f]*\).*/\1/p' "$work/0"; }
same_digest() { [ -n "$expected" ] && [ "$(digest)" = "$expected" ]; }
