/* SPDX-License-Identifier: Apache-2.0 */
/* link: links, bridges, addresses and neighbours inside namespaces. */
#ifndef TRIB_NET_KERNEL_LINK_H
#define TRIB_NET_KERNEL_LINK_H

#include "net/kernel/netns.h"

#include <net/if.h>
#include <stdint.h>

#define LINK_MAC_BYTES 6

struct link_end {
	const struct netns *ns;
	char name[IFNAMSIZ];
	uint8_t mac[LINK_MAC_BYTES];
};

/*
 * A bridge that forwards from its first packet on. With `snooping`, multicast goes only to
 * ports whose hosts joined the group; without it, the bridge floods multicast.
 */
trib_status link_add_bridge(const struct link_end *bridge, unsigned mtu, bool snooping);
/* A veth pair, both ends up. `port` becomes a port of `bridge` in the same namespace; NULL: none.
 */
trib_status link_add_pair(const struct link_end *port, const struct link_end *host,
                          const struct link_end *bridge, unsigned mtu);
trib_status link_set_up(const struct netns *ns, const char *name);
/* Waits until the link carries packets: a new link may drop its first ones. */
trib_status link_wait(const struct link_end *end);

/* IPv4 in network order. All of 10.84.x.0/24 and multicast go through `end`. */
trib_status link_add_address(const struct link_end *end, uint32_t address);
/* Gives `end` an address with a route to `peer` only; other ends may have the same address. */
trib_status link_add_peer(const struct link_end *end, uint32_t address, uint32_t peer);
/* All multicast goes through `end`. */
trib_status link_add_multicast_route(const struct link_end *end);
/* Adds a static neighbour, so that no ARP is needed over a full or lossy link. */
trib_status link_add_neighbour(const struct link_end *end, uint32_t address,
                               const uint8_t mac[LINK_MAC_BYTES]);
/* Adds a static forwarding entry, so that the bridge never floods unicast. */
trib_status link_add_forward(const struct link_end *port, const uint8_t mac[LINK_MAC_BYTES]);

/* Removes every link that the functions above created in `ns`. */
trib_status link_remove_all(const struct netns *ns);

/* The interface's index, or 0 with the thread's error sentence set. */
unsigned link_index(const struct netns *ns, const char *name);

#endif
