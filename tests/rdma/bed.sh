#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Inside the virtual machine: makes the bed, then runs a command on it.
# Usage: bed.sh COMMAND [ARGUMENT]...
#
# One link, net_a to net_b, and one soft-RoCE device at each end, rxe_a and rxe_b. Path N, 1 to 4, leads from
# address 10.0.N.1 of net_a to address 10.0.N.2 of net_b, and back. Each path has its own queue in each
# direction, shaped to $PATH_RATE. Soft-RoCE does not work in other network namespaces, so both ends are here,
# and rules lead the packets over the link instead of the loopback interface.
#
# `path` cuts, slows and restores single paths: see path.sh.
set -eu
here=$(dirname "$(realpath "$0")")
MTU=4500 # leaves room for a payload of 4096 bytes in each packet
MAC=02:00:00:00:00:0

# way FROM TO DEVICE MAC: packets between these addresses take the link. A program that does not choose its
# own address (0) gets the one of the same path.
way() {
	table=$((table + 1))
	cat <<-END
		rule add pref $table from $1 to $2 lookup $table
		rule add pref $table from 0.0.0.0/32 to $2 lookup $table
		address add $1/32 dev $3
		route add $2 dev $3 src $1 table $table
		neighbour add $2 lladdr $4 dev $3 nud permanent
	END
}

# What comes from the link is for this machine. All else takes the link first: the rule for addresses of this
# machine comes after those of the paths.
link_up() {
	cat <<-END
		link add net_a mtu $MTU address ${MAC}a type veth peer name net_b mtu $MTU address ${MAC}b
		link set net_a up
		link set net_b up
		rule add pref 50 iif net_a lookup local
		rule add pref 50 iif net_b lookup local
		rule add pref 1000 lookup local
		rule del pref 0
	END
	for n in $(seq "$PATHS"); do
		way "10.0.$n.1" "10.0.$n.2" net_a ${MAC}b
		way "10.0.$n.2" "10.0.$n.1" net_b ${MAC}a
	done
}

# shape DEVICE OTHER-END: class 1:N is path N. All else is not shaped.
shape() {
	echo "qdisc add dev $1 root handle 1: htb r2q 100"
	for n in $(seq "$PATHS"); do
		cat <<-END
			class add dev $1 parent 1: classid 1:$n htb rate $PATH_RATE burst 16k
			filter add dev $1 parent 1: protocol ip u32 match ip dst 10.0.$n.$2 flowid 1:$n
			qdisc add dev $1 parent 1:$n handle 1$n: netem limit 300
		END
	done
}

ln -sf "$here/path.sh" /usr/local/bin/path
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
table=100
link_up | ip -batch -
# One processor takes all that arrives at an end. With two, packets overtake each other, and each time soft-RoCE
# waits for a timeout. If there is a second processor, it takes what arrives at the other end.
echo 1 >/sys/class/net/net_a/queues/rx-0/rps_cpus
[ "$(nproc)" = 1 ] || echo 2 >/sys/class/net/net_b/queues/rx-0/rps_cpus
for dev in all net_a net_b; do
	echo 1 >/proc/sys/net/ipv4/conf/$dev/accept_local
	echo 0 >/proc/sys/net/ipv4/conf/$dev/rp_filter
done
{
	shape net_a 2
	shape net_b 1
} | tc -batch -
rdma link add rxe_a type rxe netdev net_a
rdma link add rxe_b type rxe netdev net_b
exec "$@"
