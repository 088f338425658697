#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The XDP program comes and goes: it leaves nothing behind, and sums stay exact without rights, on interfaces that
# do not take it, and if it is detached while jobs run. Usage: test_xdp_life.sh PATH_TO_TRIB
. "$(dirname "$0")/lib.sh"
start "$@"
need_xdp
export TRIB_COOKIE=00000000000011fe
a=tl$$
mixed=(--rounds 40 --max 50000 --split)

programs() { # how many interfaces of s1 have one; nothing if s1 cannot be asked
	local links
	links=$(on s1 ip link) && grep -c 'prog/xdp' <<<"$links"
}
no_programs() { [ "$(programs)" = 0 ]; }
ready_line() { grep 'ready on' "$work/tribd"; }
says() { grep -q "$1" "$work/tribd"; } # WORDS: the log, the ready line or the JSON
explains() { on s1 "$trib" explain --aggregator "$at" >"$work/explain" 2>&1 && grep -q "$1" "$work/explain"; }
# job N WORKER_ARG...: in the background, into $out; its pid is in $job.
job() {
	local n=$1
	shift
	out=$work/out
	rm -f "$work"/mark.*
	timeout -k 5 60 "$trib" run -n "$n" --net $a --aggregator "$at" --plane "${plane:-xdp}" \
		--timeout "${timeout:-20}" -- "$worker" --mark "$work/mark" "$@" >"$out" 2>&1 &
	job=$!
}
in_mid_run() { wait_for 10 test -e "$work/mark.0"; }
works() { # WHAT N
	job "$2" "${mixed[@]}" --seed 31
	wait $job
	check "$1: exact on all ranks" right "$2"
	check "... the same bits" same_digests "$work/expected.$2"
}
ranks=()

up $a --hosts 3 --servers 1 --switch
for n in 2 3; do
	go_right "udp" $n "${mixed[@]}" --seed 31
	digests "$out" >"$work/expected.$n"
done

# --- SIGTERM, SIGKILL
for signal in TERM KILL; do
	aggregator s1 --plane xdp && aggregator_ready
	check "a program on every port" test "$(programs)" = 3
	kill -$signal "$aggregator"
	wait "$aggregator" 2>/dev/null
	check "... on none after SIG$signal" wait_for 20 no_programs
done

# --- a worker dies: `trib run` would end the others at once
# endless: workers of three ranks, each in a file of its own; their pids are in $ranks.
endless() {
	local rank
	rm -f "$work"/mark.* "$work"/rank.*
	ranks=()
	for rank in 0 1 2; do
		TRIB_RANK=$rank TRIB_SIZE=3 TRIB_AGGREGATOR=$at TRIB_TIMEOUT=3 "$trib" net exec \
			--name $a h$((rank + 1)) -- "$worker" --mark "$work/mark" --linger 2 \
			--rounds 1000000 --max 100000 >"$work/rank.$rank" 2>&1 &
		ranks[rank]=$!
	done
	in_mid_run
}
lost() { # WHAT: ranks 0 and 1 say that it is rank 2, whether the aggregator or the ring noticed it
	wait "${ranks[@]}" 2>/dev/null
	check "$1: rank 0 names it" grep -q 'error peer.*rank 2 ' "$work/rank.0" || cat "$work/rank.0"
	check "... rank 1 too" grep -q 'error peer.*rank 2 ' "$work/rank.1" || cat "$work/rank.1"
	check "... and tribd" says 'rank 2 (host.* is lost' || cat "$work/tribd"
}
hold_frames
aggregator s1 --plane xdp && aggregator_ready
endless
kill -KILL "${ranks[2]}"
lost "a worker dies"
end_aggregator

# --- another program is there
other() { on s1 ip link set dev p2 xdp "$@"; }
if other obj "$build/src/net/pass.bpf.o" sec xdp 2>"$work/other"; then
	aggregator s1 --plane xdp
	wait "$aggregator"
	check "another program: tribd ends" test $? = 1
	check "... and names it" says 'interface p2 already runs another XDP program, pass'
	check "... and leaves the others alone" test "$(programs)" = 1
	on s1 "$trib" check >"$work/check"
	check "... trib check says so too" grep -q 'interface p2 already runs another program, pass' "$work/check"
	aggregator s1 --plane xdp --interface p1,p3 && aggregator_ready
	check "... but not where it is not asked for" says 'p1 (driver mode), p3 (driver mode)'
	plane=xdp works "one port of three by way of the sockets" 3
	end_aggregator
	other off
else
	omit "ip takes no XDP program here: $(tail -n 1 "$work/other")"
fi
aggregator s1 --plane xdp --interface p1,p9
wait "$aggregator"
check "an interface that is not there is named" says 'there is no interface p9'

# --- taken off in the middle, by an admin
if command -v bpftool >/dev/null; then
	aggregator s1 --plane xdp && aggregator_ready
	job 3 --rounds 400 --max 50000 --seed 5
	in_mid_run
	link=$(sed -n 's/^link_id:[ \t]*//p' "/proc/$aggregator/fdinfo/"* | head -n 1)
	bpftool link detach id "$link"
	wait $job
	check "taken off one port in the middle: exact on all ranks" right 3
	check "... and said so" wait_for 20 says 'somebody detached the program'
	check "... trib explain as well" explains 'not any more: somebody detached the program'
	for link in $(sed -n 's/^link_id:[ \t]*//p' "/proc/$aggregator/fdinfo/"*); do
		bpftool link detach id "$link" 2>/dev/null
	done
	works "taken off all ports" 3
	end_aggregator
else
	omit "bpftool is not installed, and takes programs off"
fi

# --- an interface vanishes
aggregator s1 --plane xdp && aggregator_ready
endless
on s1 ip link del p3
lost "the interface of one vanishes"
check "... and tribd lives on, and has seen why" wait_for 20 says 'interface p3: the interface is gone'
works "... two ranks that are left" 2
end_aggregator
check "... and it ends as it should" says '"tribd":'
down

# --- generic mode, by wish: there the program also sees several packets that were joined as one
up $a --hosts 3 --servers 1
aggregator s1 --plane xdp --generic && aggregator_ready
works "--generic, with offloads" 3
end_aggregator
down
up $a --hosts 3 --servers 1 --no-offload
aggregator s1 --plane xdp --generic && aggregator_ready
check "--generic: the mode is told" says 'ready on .*eth0 (generic mode: --generic was given)'
works "--generic" 3
check "... trib explain says why" explains 'eth0: in generic mode.*--generic was given'
end_aggregator
in_kernel 50 "$work/tribd"

down

# --- generic mode with a copy for each child, which would share their bytes there
up $a --hosts 3 --servers 1 --switch --no-offload
export TRIB_MULTICAST=off
aggregator s1 --plane xdp --generic && aggregator_ready
works "--generic, a port a worker, no multicast" 3
job 3 --rounds 1000000 --seed 5
in_mid_run
check "... trib explain says why it is in user space" \
	wait_for 20 explains 'summed in user space: in generic mode a result can leave in one frame' || cat "$work/explain"
kill $job
wait $job 2>/dev/null
end_aggregator
unset TRIB_MULTICAST
down
up $a --hosts 3 --servers 1 --no-offload

# --- results that do not arrive, as ends of the links have no program
aggregator s1 --plane xdp && aggregator_ready
plane=udp works "results from XDP do not arrive" 3
check "... which is noticed" says 'warn.*rank [0-2] (host.*interface eth0 does not reach it'
end_aggregator

# --- rights: none, in a user namespace, and just those that are needed
mkdir "$work/bin"
cp "$tribd" "$work/bin/"
chmod 755 "$work" "$work/bin" "$work/bin/tribd"
real=$tribd
# as COMMAND...: a tribd that is started by it.
as() {
	printf '#!/bin/sh\nexec %s %s "$@"\n' "$*" "$work/bin/tribd" >"$work/as"
	chmod 755 "$work/as"
	tribd=$work/as
	aggregator s1 --plane xdp
	aggregator_ready
	tribd=$real
}
nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
falls_back() { # WHAT
	check "$1: falls back to udp, and the log says why" says 'warn: plane udp: .*CAP_BPF'
	check "... and the ready line" grep -q 'plane udp: XDP was asked for, but no right' <(ready_line)
	check "... and trib explain" explains 'user space (udp: XDP was asked for, but no right'
	works "... and works" 3
	end_aggregator
	check "... and the JSON" says '"plane":"udp","why":"udp: XDP was asked for, but no right'
}
if command -v setpriv >/dev/null; then
	as "$nobody --bounding-set -bpf,-sys_admin"
	falls_back "without rights"
	cp "$trib" "$work/bin/"
	on s1 $nobody --bounding-set -bpf,-sys_admin "$work/bin/trib" check >"$work/check"
	check "... and trib check says why not" grep -q '^warn *xdp: no right to load BPF' "$work/check"
	caps=+bpf,+net_admin,+perfmon
	as "$nobody --inh-caps $caps --ambient-caps $caps --bounding-set -all,$caps"
	check "with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON only: in the kernel" says 'ready on .*plane xdp: on eth0 (driver mode)'
	works "... and works" 3
	end_aggregator
	in_kernel 95 "$work/tribd"
	# Workers have no rights at all.
	aggregator s1 --plane xdp && aggregator_ready
	cp "$worker" "$work/bin/" && chmod 755 "$work/bin/worker_check"
	mkdir "$work/src" && cp "$build"/src/libtributary.so.0 "$work/src/" 2>/dev/null
	out=$work/out
	# shellcheck disable=SC2086
	timeout -k 5 60 "$trib" run -n 3 --net $a --aggregator "$at" --plane xdp --timeout 20 -- \
		$nobody --bounding-set -all env LD_LIBRARY_PATH="$work/src" "$work/bin/worker_check" \
		"${mixed[@]}" --seed 31 >"$out" 2>&1
	check "workers without any rights: exact on all ranks" right 3
	check "... the same bits" same_digests "$work/expected.3"
	end_aggregator
	in_kernel 95 "$work/tribd"
fi
command -v setpriv >/dev/null || omit "setpriv is not installed, and takes rights away"
if unshare -U true 2>/dev/null; then
	as unshare -U -r
	falls_back "in a user namespace"
else
	omit "user namespaces are not allowed here"
fi
down

# --- an MTU that the driver has no XDP for, and loopback
up $a --hosts 3 --servers 1 --mtu 9000 --no-offload
on s1 "$trib" check >"$work/check"
check "MTU 9000: trib check expects generic mode" grep -q 'eth0, MTU 9000: generic mode, most likely' "$work/check"
aggregator s1 --plane xdp && aggregator_ready
check "MTU 9000: not in the driver, and says why" says 'generic mode: the MTU is too large'
job 3 "${mixed[@]}" --seed 31
wait $job
check "... fragments are as long as the kernel can sum: exact on all ranks" right 3
end_aggregator
in_kernel 50 "$work/tribd"
aggregator '' --plane xdp && aggregator_ready
check "loopback: udp, and says why" grep -q 'plane udp: .*loopback' <(ready_line)
end_aggregator
done_checking
