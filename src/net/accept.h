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
	int links[CLUSTER_HOSTS_MAX + 1];
	unsigned n;
};

/*
 * Until accept_end, or until this process ends, all links of the cluster's
 * workers take such frames (and where s1 is no switch, the bridge's port to it).
 */
trib_status accept_frames(const struct cluster *cluster, struct accepted *out);
/* The same program at s1's ports, where it only makes packets come the way that XDP's do. */
trib_status accept_at_ports(const struct cluster *cluster, struct accepted *out);
void accept_end(struct accepted *accepted);

#endif
