/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames that an XDP program sends into a veth arrive only where the other
 * end has a program too. A real NIC asks for nothing of the kind: this is for
 * the virtual cluster alone.
 */
#ifndef TRIB_NET_ACCEPT_H
#define TRIB_NET_ACCEPT_H

#include "net/cluster.h"

struct accepted {
	int links[CLUSTER_HOSTS_MAX];
	unsigned n;
};

/*
 * Until accept_end, or until this process ends, such frames arrive: from s1
 * where that is a switch, at the workers; else from hosts with an aggregator,
 * at the bridge, which passes them on as any other. `aggregates` says which
 * those are, as the cluster's hosts; NULL: the servers.
 */
trib_status accept_frames(const struct cluster *cluster, const bool *aggregates,
                          struct accepted *out);
/*
 * The same program where servers receive, or at s1's ports where that is a switch: there it only
 * makes packets come the way that XDP's do.
 */
trib_status accept_at_servers(const struct cluster *cluster, struct accepted *out);
void accept_end(struct accepted *accepted);

#endif
