#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Changes a path of the test bed, in both directions. See bed.sh.
# Usage: path cut N | slow N RATE | delay N TIME | restore N | bytes N
#   bytes    what has crossed since the bed was made: bytes from net_a to net_b, and back
set -eu

usage() {
	sed -n 's/^# Usage: /usage: /p' "$0" >&2
	exit 2
}
[ $# -ge 2 ] || usage
n=$2

rate() {
	for dev in net_a net_b; do
		tc class change dev $dev parent 1: classid 1:"$n" htb rate "$1" burst 16k
	done
}
# queue OPTION...: of netem. 300 packets are 100 ms at 30 Mb/s.
queue() {
	for dev in net_a net_b; do
		tc qdisc replace dev $dev parent 1:"$n" handle 1"$n": netem limit 300 "$@"
	done
}
crossed() { # DEVICE
	tc -s class show dev "$1" classid 1:"$n" | awk '$1 == "Sent" { print $2 }'
}

case $1 in
cut) queue loss 100% ;;
slow) rate "${3:?$(usage)}" ;;
delay) queue delay "${3:?$(usage)}" ;;
restore)
	rate "$PATH_RATE"
	queue
	;;
bytes) echo "$(crossed net_a) $(crossed net_b)" ;;
*) usage ;;
esac
