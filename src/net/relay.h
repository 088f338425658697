/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay: delivers packets to an aggregator's ports as a NIC's driver does. In a cluster with
 * `is_framed`, a relay sits in the middle of each link of an aggregator. It copies each
 * packet for the aggregator into a page and sends the page on, on a core of its own. The
 * receiver gets a frame in a page and no socket buffer. XDP needs no more; the network stack
 * must build the socket buffer, as with a driver. TCP and UDP checksums count as verified,
 * as a NIC reports them. So the receiver pays no cost that veth has and a NIC has not.
 *
 * Packets back to workers' hosts take the same path. If a link to a bridge is shaped, the
 * queue that shapes it is behind the relay, so that it also sees packets sent by XDP.
 */
#ifndef TRIB_NET_RELAY_H
#define TRIB_NET_RELAY_H

#include "net/cluster.h"

#define RELAY_LINKS_MAX (6 * CLUSTER_HOSTS_MAX)

struct relay {
	int links[RELAY_LINKS_MAX];
	unsigned n;
};

/*
 * Relays until relay_end, or until this process ends. `plain`: aggregators have no XDP program
 * at their ports. While packets arrive, packets for an aggregator wait `wait_us` microseconds
 * for more, as with a NIC's interrupt moderation.
 */
trib_status relay_start(const struct cluster *cluster, bool plain, unsigned wait_us,
                        struct relay *out);
void relay_end(struct relay *relay);

/* Sets the cores of the relay on host i's link: `in` for packets to the aggregator, `out` for
 * packets from it. */
trib_status relay_place(const struct cluster *cluster, unsigned i, unsigned in, unsigned out);

#endif
