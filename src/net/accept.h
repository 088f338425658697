/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accept: attaches pass-through programs to veth ends. A frame that an XDP program sends into
 * a veth arrives only if the other end has an XDP program too. Real NICs do not need this.
 */
#ifndef TRIB_NET_ACCEPT_H
#define TRIB_NET_ACCEPT_H

#include "net/cluster.h"

struct accepted {
	int links[CLUSTER_HOSTS_MAX];
	unsigned n;
};

/*
 * Lets such frames arrive until accept_end, or until this process ends. If s1 is a switch, the
 * programs are at the workers. Otherwise they are at the bridge, on the ports of hosts with
 * an aggregator. `aggregates`: which of the cluster's hosts have one; NULL: the servers.
 */
trib_status accept_frames(const struct cluster *cluster, const bool *aggregates,
                          struct accepted *out);
/*
 * Attaches the program where servers receive (if s1 is a switch: at its ports), so that packets
 * take the same kernel path as on the XDP plane.
 */
trib_status accept_at_servers(const struct cluster *cluster, struct accepted *out);
void accept_end(struct accepted *accepted);

#endif
