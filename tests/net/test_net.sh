#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The virtual cluster: test_net.sh PATH_TO_TRIB. Exit 77: skipped, with the reason.
#
# Needs no other network programs: bash sends, /proc counts. A closed TCP port
# answers "refused" and a closed UDP port counts NoPorts, so nobody has to listen.
. "$(dirname "$0")/lib.sh"
trib=$(realpath "${1:?usage: test_net.sh PATH_TO_TRIB}")
[ -x "$trib" ] || fail "there is no program $trib"

if [ "$(id -u)" != 0 ]; then
	if unshare -Urmn mount -t tmpfs none /run 2>/dev/null; then
		echo "not root: running inside a user namespace"
		exec unshare -Urmn bash -c 'mount -t tmpfs none /run && exec "$@"' - "$0" "$trib"
	fi
	skip "namespaces need root, and user namespaces are not allowed here"
fi

build=$(realpath "$(dirname "$trib")/../..")
name=tn$$
other=tn$$-b

finish() {
	"$trib" net down --name $name >/dev/null
	"$trib" net down --name $other >/dev/null
}
trap finish EXIT

up() { "$trib" net up --name $name "$@" >/dev/null; }
down() { "$trib" net down --name $name >/dev/null; }
on() { "$trib" net exec --name "$cluster" "$@"; }
cluster=$name

address() { "$trib" net list | awk -v ns="$cluster-$1" '$4 == ns { print $2 }'; }
field() { # HOST PROTOCOL COUNTER, of /proc/net/snmp
	on "$1" awk -v p="$2:" -v c="$3" '$1 == p && !n { for (i = 2; i <= NF; i++) if ($i == c) n = i; next }
		$1 == p { print $n }' /proc/net/snmp
}
arrived() { on "$1" awk '$1 == "eth0:" { print $3 }' /proc/net/dev; } # packets of any kind
received() { field "$1" Udp NoPorts; }

reaches() { # FROM TO
	on "$1" timeout 10 bash -c "exec 3<>/dev/tcp/$(address "$2")/9" 2>&1 | grep -q refused
}

send() { # FROM TO COUNT BYTES
	on "$1" bash -c "text=\$(printf %0$4d 0); i=0
		while [ \$i -lt $3 ]; do printf \$text >/dev/udp/$(address "$2")/9; i=\$((i + 1)); done"
}

have_come() { [ "$(received "$1")" -ge "$2" ]; } # HOST COUNT
settles() { # HOST COUNT: packets may still be in queues
	wait_for 20 have_come "$1" "$2"
	[ "$(received "$1")" -eq "$2" ]
}

fault() { # HOST up|down COUNTER
	"$trib" net list --json | grep -o "\"namespace\":\"$cluster-$1\"[^]]*" |
		sed 's/}}.*/}}/;q' | grep -o "\"$2\":{[^}]*}" | head -1 |
		grep -o "\"$3\":[0-9]*" | cut -d: -f2
}

# A host asks with Python, as bash cannot; the bridge trusts what it was told after 0.1 s.
has_asked() { on h3 grep -qi 010154EF /proc/net/igmp; }
all_came() { [ "$(arrived h3)" -ge $((${1#* } + 50)) ]; }
goes_to_members() {
	local before
	"$trib" net exec --name "$cluster" h3 python3 -c 'import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
group = socket.inet_aton("239.84.1.1")
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + bytes(4))
time.sleep(60)' &
	wait_for 10 has_asked
	sleep 0.3
	before="$(arrived h2) $(arrived h3)"
	for _ in $(seq 50); do on h1 bash -c 'printf x >/dev/udp/239.84.1.1/9'; done
	wait_for 20 all_came "$before"
	kill $! && wait $! 2>/dev/null
	# The bridge and IPv6 have a word to say now and then.
	[ "$(arrived h2)" -lt $((${before% *} + 25)) ] && all_came "$before"
}

nothing_left() {
	[ -z "$(ls /run/netns 2>/dev/null | grep -E "^$name-([hs][0-9]+|net)$")" ] && [ ! -e /run/tributary/net/$name ] &&
		[ "$(cut -d: -f1 /proc/net/dev)" = "$links_before" ]
}

kernel_faults() { # nothing if the kernel log cannot be read
	local log
	log=$(dmesg 2>/dev/null) && grep -cE 'BUG:|WARNING:|Oops' <<<"$log"
}

links_before=$(cut -d: -f1 /proc/net/dev)
kernel_before=$(kernel_faults)

# --- a plain cluster ---
check "up" up --hosts 3 --servers 2 --link 1gbit
[ $failures = 0 ] || exit 1
check "h1 reaches h3" reaches h1 h3
check "h2 reaches s2" reaches h2 s2
check "s1 reaches h1" reaches s1 h1
check "multicast goes where it was asked for, and nowhere else" goes_to_members
check "exec passes the exit code on" test "$(on h1 bash -c 'exit 7'; echo $?)" = 7
check "a second up of the name is refused, with the remedy" \
	grep -q "net down --name $name" <(up --hosts 1 2>&1)
check "an unknown host is named" grep -q "no host h9" <(on h9 true 2>&1)

# --- two side by side ---
"$trib" net up --name $other --hosts 2 --switch >/dev/null
check "another cluster beside it" test $? = 0
cluster=$other
check "its h1 reaches its switch" reaches h1 s1
check "its h1 reaches its h2" reaches h1 h2
b=$(address h1)
cluster=$name
check "their addresses differ" test "$(address h1)" != "$b"
check "down" down
check "down leaves nothing" nothing_left
cluster=$other
check "the other one still works" reaches h2 s1
cluster=$name
"$trib" net down --name $other >/dev/null

# --- MTU, counted in fragments ---
up --hosts 1
send h1 s1 1 4000
settles s1 1
check "4000 bytes are 3 packets at MTU 1500" test "$(field s1 Ip ReasmReqds)" = 3
down
up --hosts 1 --mtu 9000 --switch
send h1 s1 1 4000
check "4000 bytes arrive at MTU 9000" settles s1 1
check "... in one packet" test "$(field s1 Ip ReasmReqds)" = 0
down

# --- unlike links: a slow one passes its burst and drops what its queue cannot hold ---
check "up with unlike links" up --hosts 2 --link 1gbit --link h2=100kbit
send h1 s1 1000 1000
check "the fast link passes 1000 of 1000" settles s1 1000
send h2 s1 1000 1000
slow=$(($(received s1) - 1000))
check "the slow link passes $slow of 1000" test $slow -gt 100 -a $slow -lt 600
down

# --- a crash half way ---
for _ in 1 2 3; do
	"$trib" net up --name $name --hosts 90 --link 1gbit >/dev/null &
	pid=$!
	while [ ! -e /run/netns/$name-h20 ] && kill -0 $pid 2>/dev/null; do :; done
	kill -9 $pid
	wait $pid 2>/dev/null
	check "killed with $(ls /run/netns | grep -c "^$name-") namespaces there" test -e /run/netns/$name-h1
	check "down after the crash" down
	check "... leaves nothing" nothing_left
done
up --hosts 2
rm /run/tributary/net/$name
check "down by name when the state is lost" down
check "... leaves nothing" nothing_left

# --- faults ---
if ! has_bpf; then
	omit "links with faults need root, and a build with BPF programs"
else
	check "up with faults" up --hosts 1 --switch --loss 0.5 --seed 1
	check "TCP is left alone" reaches h1 s1
	send h1 s1 400 100
	lost=$(fault h1 up lost)
	check "lost $lost of 400 at 50 %" test "$lost" -gt 120 -a "$lost" -lt 280
	check "the rest arrived" settles s1 $((400 - lost))
	down
	up --hosts 1 --switch --loss 0.5 --seed 1
	send h1 s1 400 100
	check "the same seed loses the same" test "$(fault h1 up lost)" = "$lost"
	down
	up --hosts 1 --switch --dup 1
	send h1 s1 100 100
	check "all arrive twice" settles s1 200
	down
	up --hosts 1 --switch --reorder 1
	send h1 s1 100 1400
	check "all arrive, every second one overtaken" settles s1 100
	check "... as counted" test "$(fault h1 up reordered)" = 50
	down
	up --hosts 1 --switch --corrupt 1
	send h1 s1 100 1
	check "corrupted packets reach the host" settles s1 100
	check "... as counted" test "$(fault h1 up corrupted)" = 100
	check "... without checksum errors" test "$(field s1 Udp InCsumErrors)" = 0
	down
	# Behind a bridge packets meet the faults of two links: where they come in, and where they go out.
	up --hosts 1 --loss 0.5 --seed 1
	send h1 s1 400 100
	lost=$(fault h1 up lost) out=$(fault s1 down lost)
	check "a bridge: lost $lost of 400, then $out" test "$out" -gt 50 -a "$out" -lt $((400 - lost))
	check "the rest arrived" settles s1 $((400 - lost - out))
	down
	up --hosts 1 --dup 1
	send h1 s1 100 100
	check "a bridge: all arrive four times" settles s1 400
	down
	up --hosts 1 --reorder 1
	send h1 s1 100 1400
	check "a bridge: all arrive, overtaken and back" settles s1 100
	check "... as counted" test "$(fault h1 up reordered) $(fault s1 down reordered)" = "50 50"
	down
	up --hosts 1 --corrupt 1
	send h1 s1 100 1
	check "a bridge: corrupted packets reach the host" settles s1 100
	check "... as counted" test "$(fault s1 down corrupted)" = 100
	check "... without checksum errors" test "$(field s1 Udp InCsumErrors)" = 0
	down
	up --hosts 1 --loss 0.3 --dup 0.3 --reorder 0.3 --corrupt 0.3 --mtu 9000
	send h1 s1 300 4000
	check "all at once, on two links" test "$(fault s1 down packets)" -gt 100
	down
fi

check "nothing is left" nothing_left
if [ -n "$kernel_before" ]; then
	check "the kernel log is clean" test "$(kernel_faults)" = "$kernel_before"
else
	omit "the kernel log cannot be read"
fi
done_checking
