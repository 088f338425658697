#!/usr/bin/env bash
# bench_traffic.sh: ordinary traffic through an aggregator's interface, with and without the XDP
# program on it, in turns, while nothing is aggregated: TCP both ways (iperf3), and a flood of pings.
. "$(dirname "$0")/common.sh"

name=traffic$$
trib=build/src/cli/trib
repeats=${REPEATS:-3}
seconds=${SECONDS_EACH:-2}

on() { "$trib" net exec --name "$name" "$@"; }

address() { "$trib" net list | awk -v ns="$name-s1" '$4 == ns { print $2 }'; }

# up OPTION...: a worker and a server, with one link each.
up() { "$trib" net up --name "$name" --hosts 1 --servers 1 "$@" >/dev/null; }

down() { "$trib" net down --name "$name" >/dev/null 2>&1 || true; }

# rate [-R]: Gb/s of TCP from the worker to the server, or back.
rate() {
	local server
	on s1 iperf3 -s -1 >/dev/null 2>&1 &
	server=$!
	sleep 0.3
	on h1 iperf3 -c "$to" -t "$seconds" -J "$@" |
		python3 -c 'import json, sys
print("%.3f" % (json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"] / 1e9))'
	wait "$server"
}

# lost: pings of 10000 that were not answered.
lost() { on h1 ping -q -f -c 10000 -s 1000 "$to" | awk '/transmitted/ { print $1 - $4 }'; }

# once LINK PLANE: a line of figures with tribd there on that plane, at rest.
once() {
	local daemon
	# exec: what is killed below is tribd, and not a shell around it.
	TRIB_COOKIE=0000000000000001 exec "$trib" net exec --name "$name" s1 build/src/cli/tribd \
		--listen "$to:7700" --plane "$2" >"$log" 2>&1 &
	daemon=$!
	until grep -q "ready on" "$log"; do
		kill -0 "$daemon" || die "bench_traffic: tribd ended: $(cat "$log")"
		sleep 0.05
	done
	printf '%-22s %-12s %10s %10s %8s\n' "$1" "$(grep -q 'plane xdp' "$log" &&
		echo "with XDP" || echo without)" "$(rate)" "$(rate -R)" "$(lost)"
	kill "$daemon"
	wait "$daemon" || true
}

# row NAME OPTION...: both ways in turns on one cluster.
row() {
	local link=$1 i
	shift
	down
	up "$@"
	to=$(address)
	for ((i = 0; i < repeats; i++)); do
		once "$link" udp
		once "$link" xdp
	done
	down
}

is_root || die "bench_traffic: needs root, for network namespaces"
scripts/deps.sh bench
for program in iperf3 ping python3; do
	command -v "$program" >/dev/null || die "bench_traffic: needs $program"
done
log=$(mktemp)
trap 'down; rm -f "$log"' EXIT
printf '%-22s %-12s %10s %10s %8s\n' link program "Gb/s up" "Gb/s down" "lost"
row "1 Gb/s" --link 1gbit
row "1 Gb/s, no offloads" --link 1gbit --no-offload
row "not shaped, no offloads" --no-offload
