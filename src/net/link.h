/* SPDX-License-Identifier: Apache-2.0 */
/* Links, bridges, addresses and neighbours inside namespaces. */
#ifndef TRIB_NET_LINK_H
#define TRIB_NET_LINK_H

#include "net/netns.h"

#include <net/if.h>
#include <stdint.h>

#define LINK_MAC_BYTES 6

struct link_end {
	const struct netns *ns;
	char name[IFNAMSIZ];
	uint8_t mac[LINK_MAC_BYTES];
};

/*
 * A bridge that forwards from its first packet on. With `snooping` multicast
 * goes only to ports whose hosts are in the group; else it floods all of it.
 */
trib_status link_add_bridge(const struct link_end *bridge, unsigned mtu, bool snooping);
/* A veth pair, both ends up; `port` becomes a port of `bridge`, in the same namespace; or NULL. */
trib_status link_add_pair(const struct link_end *port, const struct link_end *host,
                          const struct link_end *bridge, unsigned mtu);
trib_status link_set_up(const struct netns *ns, const char *name);
/* Waits until it carries packets: one that was just made may drop its first ones. */
trib_status link_wait(const struct link_end *end);

/* IPv4 in network order. All of 10.84.x.0/24 and multicast go through `end`. */
trib_status link_add_address(const struct link_end *end, uint32_t address);
/* Gives `end` an address, which other ends may have too: `peer` alone is behind it. */
trib_status link_add_peer(const struct link_end *end, uint32_t address, uint32_t peer);
/* Says who has the address, so that nobody has to ask over a full or lossy link. */
trib_status link_add_neighbour(const struct link_end *end, uint32_t address,
                               const uint8_t mac[LINK_MAC_BYTES]);
/* Says behind which port the host is, so that the bridge never floods unicast. */
trib_status link_add_forward(const struct link_end *port, const uint8_t mac[LINK_MAC_BYTES]);

/* Removes at once every link that the functions above made in `ns`. */
trib_status link_remove_all(const struct netns *ns);

/* The interface's index, or 0 with the thread's error sentence set. */
unsigned link_index(const struct netns *ns, const char *name);

#endif
