# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the network tests share. Sourced first: . lib.sh, then start "$@".
set -u
export LC_ALL=C
# shellcheck source-path=SCRIPTDIR
. "$(dirname "${BASH_SOURCE[0]}")/check.sh"
clusters=()
holder=''

# start PATH_TO_TRIB: finds the programs and makes a folder. Everything is undone when the test ends.
start() {
	local up
	trib=$(realpath "${1:?usage: ${0##*/} PATH_TO_TRIB}")
	[ -x "$trib" ] || fail "there is no program $trib"
	tribd=$(dirname "$trib")/tribd
	export TRIB_COUNTERS=on # counter() reads them
	export TRIB_WAY=aggregator # most tests are about aggregators: vectors must not leave them
	for up in . .. ../.. ../../..; do
		build=$(realpath "$(dirname "$trib")/$up")
		[ -x "$build/tests/net/worker_check" ] && break
	done
	worker=$(program tests/net/worker_check) || fail "$worker"
	TRIB_RANK=0 TRIB_SIZE=1 "$worker" --rounds 1 || fail "$worker does not run alone"
	work=$(mktemp -d)
	trap finish EXIT
	trap 'exit 130' INT TERM
}

# program PATH: prints the path of a program of the build. If the build lacks it, prints that and fails.
program() {
	[ -x "$build/$1" ] && echo "$build/$1" && return
	echo "this build has no $1"
	return 1
}

# is_built PATH MODULE...: a file of the build that is made if pkg-config knows these modules, each with or without a
# version. If this machine lacks one, $why says which. If it has them all, the file has to be there.
is_built() {
	local path=$1 module
	shift
	[ ! -e "$build/$path" ] || return 0
	why="pkg-config is not installed, and the build has no $path"
	command -v pkg-config >/dev/null || return 1
	for module; do
		why="$module is not installed"
		pkg-config --exists "$module" || return 1
	done
	fail "this build has no $path, although this machine has all libraries for it: $*"
}
need_built() { is_built "$@" || skip "$why"; }

finish() {
	local name pid
	{ # quiet: the last line of output may be the reason why the test was skipped
		for pid in $(jobs -p); do
			kill -KILL "$pid"
		done
		wait
	} 2>/dev/null
	for name in "${clusters[@]}"; do
		"$trib" net down --name "$name" >/dev/null
	done
	rm -rf "$work"
}

# need_clusters "$@": virtual clusters need namespaces and veth links, so root or a user namespace.
need_clusters() {
	if [ "$(id -u)" != 0 ]; then
		unshare -Urmn mount -t tmpfs none /run 2>/dev/null ||
			skip "namespaces need root, and user namespaces are not allowed here"
		echo "not root: running inside a user namespace"
		exec unshare -Urmn bash -c 'mount -t tmpfs none /run && ip link set lo up && exec "$@"' - bash "$0" "$@"
	fi
	command -v ip >/dev/null || skip "ip is not installed (package iproute2)"
	unshare -n ip link add type veth || skip "this kernel has no network namespaces or no veth links"
}

# is_real_root: root, and not only inside a user namespace.
is_real_root() { [ "$(id -u)" = 0 ] && [ "$(awk '{ print $3 }' /proc/self/uid_map)" = 4294967295 ]; }

# has_bpf: this build has BPF programs, and we may load them. Static programs come without the file.
has_bpf() { is_real_root && { [ -e "$build/src/net/fault.bpf.o" ] || has_xdp; }; }
need_faults() { has_bpf || skip "links with faults need root, and a build with BPF programs"; }

# up NAME OPTION...: makes the cluster in place of one of that name, and makes it the current one.
# If that fails, the test fails: need_clusters has shown that this machine can do it.
up() {
	cluster=$1
	shift
	"$trib" net down --name "$cluster" >/dev/null
	clusters+=("$cluster")
	"$trib" net up --name "$cluster" "$@" >"$work/up" 2>&1 || fail "trib net up $*: $(cat "$work/up")"
}

down() {
	[ -z "$holder" ] || { kill "$holder" && wait "$holder"; } 2>/dev/null
	holder=''
	"$trib" net down --name "$cluster" >/dev/null
}

on() { "$trib" net exec --name "$cluster" "$@"; } # HOST COMMAND...
address() { "$trib" net list | awk -v ns="$cluster-$1" '$4 == ns { print $2 }'; }

# go ARGS...: trib run with them, output to $out.
go() {
	out=$work/out
	timeout -k 5 "${limit:-60}" "$trib" run "$@" >"$out" 2>&1
}

# right N: did N workers find all results right, with one digest of what they share?
right() {
	if [ "$(grep -c ': right, ' "$out")" = "$1" ] &&
		[ "$(grep -o 'common [0-9a-f]*' "$out" | sort -u | wc -l)" = 1 ]; then
		return 0
	fi
	cut -c 1-800 "$out"
	return 1
}

# go_right WHAT N WORKER_ARG...: N workers on the current cluster, exact on all ranks.
go_right() {
	local what=$1 n=$2
	shift 2
	# shellcheck disable=SC2086  # options of trib run, if any
	go -n "$n" --net "$cluster" ${run_options:-} --timeout 30 -- "$worker" "$@"
	check "$what: exact on all ranks" right "$n"
}

# all_marked N [FOLDER]: are N workers with --mark $work/mark, or FOLDER/mark, in the middle of it?
all_marked() { [ "$(find "${2:-$work}" -name 'mark.*' | wc -l)" = "$1" ]; }

# Bits of all results, rank by rank.
digests() { grep -o 'rank [0-9]* of [0-9]*: right.*digest [0-9a-f]*' "$1" | sort; }

# same_digests FILE: are they in $out as in a file that is not empty?
same_digests() { [ -s "$1" ] && cmp "$1" <(digests "$out"); }

# counter NAME: from the last line of tribd, in $out unless named.
counter() {
	grep '"tribd":' "${2:-$out}" | tail -n 1 | grep -o "\"$1\":[0-9]*" | head -n 1 | cut -d: -f2
}

# A worker's counter, summed over the ranks.
worker_sum() { grep ': right, ' "$out" | grep -o "$1 [0-9]*" | awk '{ n += $2 } END { print n + 0 }'; }

# faults COUNTER: of the current cluster, all links, both ways.
faults() {
	"$trib" net list --json | grep -o "\"name\":\"$cluster\",\"complete\".*" | sed 's/\]}.*//' |
		grep -o "\"$1\":[0-9]*" | awk -F: '{ n += $2 } END { print n + 0 }'
}

# aggregator HOST [COMMAND]...: a tribd on a host, or on this machine where HOST is empty; leaves
# its pid in $aggregator and its address in $at, which is $listen where set. Its output goes to $work/tribd.
aggregator() {
	local host=$1 prefix=() port=${port:-7700} listen=${listen:-}
	shift
	if [ -n "$host" ]; then
		prefix=("$trib" net exec --name "$cluster" "$host" --)
		at=$(address "$host"):$port
	else
		at=127.0.0.1:$port
	fi
	at=${listen:-$at}
	: >"$work/tribd"
	"${prefix[@]}" "$tribd" --open --listen "$at" "$@" >"$work/tribd" 2>&1 &
	# shellcheck disable=SC2034
	aggregator=$!
}

aggregator_ready() { wait_for 30 grep -q 'ready on' "$work/tribd"; }

# end_aggregator: its counters are the last line of $work/tribd.
end_aggregator() {
	kill -TERM "$aggregator"
	wait "$aggregator"
}

# need_xdp: root that may load BPF programs, and a build that has them. If the kernel takes XDP programs
# from bpftool but not from trib, then trib is wrong.
need_xdp() {
	has_bpf || skip "XDP needs root, and a build with BPF programs"
	! has_xdp || return 0
	command -v bpftool >/dev/null || skip "no XDP, and no bpftool to find out why"
	bpftool feature probe kernel 2>&1 | grep -q 'program_type xdp is available' || skip "this kernel has no XDP"
	fail "this kernel has XDP, but trib check says: $("$trib" check | grep ' xdp:')"
}
has_xdp() { "$trib" check | grep -q '^ok *xdp:'; }

# kernel_is MAJOR MINOR: this version or a later one.
kernel_is() {
	local major minor
	IFS=.- read -r major minor _ < <(uname -r)
	[ "$major" -gt "$1" ] || { [ "$major" = "$1" ] && [ "$minor" -ge "$2" ]; }
}

# in_kernel PERCENT [FILE]: of what was added, so much at least was added in the kernel.
in_kernel() {
	local kernel all
	kernel=$(counter kernel_payload_bytes "${2:-$out}") all=$(counter payload_bytes "${2:-$out}")
	check "... $((${kernel:-0} / 1000)) of $((${all:-0} / 1000)) KB were added in the kernel" \
		test "${kernel:-0}" -gt 0 -a $((${kernel:-0} * 100)) -ge $((${all:-1} * $1))
}

# by_queue PERCENT [FILE]: as many packets as so much of the reports came to tribd by its check queue.
# Reports at a job's begin and end do not, and a busy machine has more of them.
by_queue() {
	local queued all
	queued=$(counter kernel_queued "${2:-$out}") all=$(counter reports "${2:-$out}")
	check "... ${queued:-0} packets came by the queue, for ${all:-0} reports" \
		test "${queued:-0}" -gt 0 -a $((${queued:-0} * 100)) -ge $((${all:-1} * $1))
}

# hold_frames: links of the current cluster take what XDP sends, until it goes down; for `trib run`
# does that itself only as long as it runs. Its worker starts when they do.
hold_frames() {
	rm -f "$work/frames"
	"$trib" run -n 1 --net "$cluster" --plane xdp --aggregator 127.0.0.1:9 -- \
		sh -c "touch '$work/frames'; exec sleep 600" &>/dev/null &
	holder=$!
	wait_for 20 test -e "$work/frames"
}
