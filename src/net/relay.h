/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that come to an aggregator's ports as they come to a NIC's driver.
 * In a cluster with `is_framed` each link of an aggregator is cut in two, and
 * the relay between takes what comes to the aggregator, copies it into a page
 * and sends the page on, on a core of its own choice. So the receiver finds a
 * frame in a page and no socket buffer: for XDP that is all it needs, for the
 * stack it has to make the buffer, as a driver does. Checksums of TCP and UDP
 * are taken as right, as a NIC reports them. Nobody pays at the receiver for
 * what veth does and a NIC does not.
 *
 * The way back to workers' hosts is the same. Back to a bridge, where a link
 * has a rate, packets go through a queue behind the relay that keeps to it:
 * also what XDP sends, which a queue before it would never see.
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
 * Until relay_end, or until this process ends. `plain`: aggregators have no
 * program at their ports. While packets come, those for an aggregator wait
 * `wait_us` microseconds for more, as NICs moderate their interrupts.
 */
trib_status relay_start(const struct cluster *cluster, bool plain, unsigned wait_us,
                        struct relay *out);
void relay_end(struct relay *relay);

/* The relay on the link of host `i` works on one core for what goes to the aggregator, on one for
 * what comes from it. */
trib_status relay_place(const struct cluster *cluster, unsigned i, unsigned in, unsigned out);

#endif
