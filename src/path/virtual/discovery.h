/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discovery: finds the virtual paths to one peer while its user already sends. It never blocks.
 * The first path is there at once: the kernel's own choice. Others come with time.
 *
 * Probes are empty UDP datagrams with a short time to live. Routers answer with their address
 * (ICMP "time exceeded"), which any user may read (IP_RECVERR). A probe that reaches the peer is an
 * empty datagram there, and must be dropped.
 */
#ifndef TRIB_PATH_VIRTUAL_DISCOVERY_H
#define TRIB_PATH_VIRTUAL_DISCOVERY_H

#include "path/balance/monitor.h"
#include "path/virtual/virtual_path.h"

struct discovery;

/*
 * Paths to a peer with the addresses to[0..n), in the order in which the peer has told them; all
 * have the port to probe. Follows TRIB_PATHS. If the host has one address and no router is in the
 * way, there is one path, and no socket is opened.
 */
trib_status discovery_start(const struct udp_address to[], unsigned n, uint64_t now,
                            struct discovery **out);
void discovery_stop(struct discovery *discovery);

/* Paths found so far: at least 1, at most PATHS_MAX. They stay, and keep their places. */
unsigned discovery_count(const struct discovery *discovery);
const struct virtual_path *discovery_path(const struct discovery *discovery, unsigned i);

/*
 * For poll: readable if an answer came. -1: nothing is searched. Time of the next step, also
 * without an answer; UINT64_MAX: never.
 */
int discovery_fd(const struct discovery *discovery);
uint64_t discovery_wake(const struct discovery *discovery);
/* Takes answers and sends probes. Returns discovery_count. The cost between steps is none. */
unsigned discovery_step(struct discovery *discovery, uint64_t now);

/* Own addresses that a peer should know: up to `most`, that of the route to `peer` first. */
unsigned discovery_own(const struct udp_address *peer, struct udp_address own[], unsigned most);

#endif
