/* SPDX-License-Identifier: Apache-2.0 */
/* route: routes of a namespace, with one way or several, and rules that choose a table of routes.
 */
#ifndef TRIB_NET_KERNEL_ROUTE_H
#define TRIB_NET_KERNEL_ROUTE_H

#include "net/kernel/netns.h"

#include <linux/rtnetlink.h>
#include <stdint.h>

#define ROUTE_WAYS_MAX 8

struct route_way {
	unsigned index;   /* of the interface */
	uint32_t gateway; /* 0: the receiver itself is at the link */
};

/* IPv4 in network order; `bits` is the length of its prefix. */
struct route_network {
	uint32_t address;
	unsigned bits;
};

/*
 * Sets the route in place of one that was there. With several ways, the kernel chooses one by a
 * hash of the packet. n is 0: there is no route.
 */
trib_status route_set(const struct netns *ns, unsigned table, struct route_network to,
                      const struct route_way *ways, unsigned n);
/*
 * Packets from a network (`by_source`), or to it, take the routes of a table. If it has none for
 * them, the next rule decides. The lowest `preference` comes first.
 */
trib_status route_rule(const struct netns *ns, unsigned preference, struct route_network network,
                       bool by_source, unsigned table);

#endif
