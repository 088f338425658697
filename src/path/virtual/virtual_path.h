/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual owns the paths from this host to one peer: which pairs of addresses and ports there are
 * (virtual paths), and which of them are different physical paths. It must not touch what
 * travels on them.
 *
 * A virtual path is what a switch sees of a flow: source and destination address and port. A
 * fabric that hashes these (ECMP), or routes by source address, sends different virtual paths over
 * different links. Its hops tell them apart.
 */
#ifndef TRIB_PATH_VIRTUAL_PATH_H
#define TRIB_PATH_VIRTUAL_PATH_H

#include "path/udp.h"

#define VIRTUAL_HOPS 4u /* routers whose addresses are asked for */

struct path_hop {
	uint8_t raw[16]; /* address; an IPv4 address has 4 bytes and zeros; all zeros: unknown */
};

struct virtual_path {
	struct udp_address from, to; /* bind to `from` and send to `to`; port 0: any */
	unsigned interface;          /* index of the interface it leaves through; 0: unknown */
	struct path_hop hops[VIRTUAL_HOPS]; /* routers, the nearest first */
};

bool path_hop_is_known(const struct path_hop *hop);

#define VIRTUAL_HOPS_TEXT (VIRTUAL_HOPS * (INET6_ADDRSTRLEN + 1u))

/* The known routers, with blanks between. */
const char *virtual_path_hops(const struct virtual_path *path, char out[VIRTUAL_HOPS_TEXT]);

#endif
