/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that come to a server's ports as they come to a NIC's driver. A
 * cluster with `is_framed` has a namespace between its workers and its switch,
 * in which each link is cut in two: the relay takes what comes in at one end,
 * copies it into a page and sends the page in at the other, on a core of its
 * own choice. So the receiver finds a frame in a page and no socket buffer:
 * for XDP that is all it needs, for the stack it has to make the buffer, as a
 * driver does. Checksums of TCP and UDP are taken as right, as a NIC reports
 * them. Nobody pays at the receiver for what veth does and a NIC does not.
 */
#ifndef TRIB_NET_RELAY_H
#define TRIB_NET_RELAY_H

#include "net/cluster.h"

#define RELAY_LINKS_MAX (6 * CLUSTER_HOSTS_MAX)

struct relay {
	int links[RELAY_LINKS_MAX];
	unsigned n;
};

/* Until relay_end, or until this process ends. `ports`: the ports have no program of their own. */
trib_status relay_start(const struct cluster *cluster, bool ports, struct relay *out);
void relay_end(struct relay *relay);

/* The receive work of the relay for worker `i` goes to this core. */
trib_status relay_place(const struct cluster *cluster, unsigned i, unsigned core);

#endif
