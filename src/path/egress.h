/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress: finds the interface that a connected socket sends through, and its
 * queueing discipline, and the next router. If that is fq (also below mq), the queue holds a packet
 * until the time that the sender attached, so the kernel can space packets for
 * path/pacer.h.
 */
#ifndef TRIB_PATH_EGRESS_H
#define TRIB_PATH_EGRESS_H

#include "path/rtnl.h"
#include "path/udp.h"

#include <net/if.h>

struct egress {
	char interface[IF_NAMESIZE];
	struct rtnl_qdisc qdisc;
};

/* Asks the kernel. Needs no privileges. */
trib_status egress_find(int fd, struct egress *egress);

/* The route of datagrams between two addresses. Ports count, since a route may have several paths.
 */
trib_status egress_route(const struct udp_address *from, const struct udp_address *to,
                         struct rtnl_route *route);

#endif
