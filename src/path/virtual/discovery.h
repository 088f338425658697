/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discovery: finds the virtual paths to one peer, while its user already sends. The first path is
 * there at once; others come with time.
 *
 *   discovery_start(peer)        path 0, to say hello to the peer
 *   discovery_tell(addresses)    the peer has told its addresses: the search begins
 *   loop: poll discovery_fd until discovery_wake; discovery_step; open a socket for each new path
 *
 * Probes are UDP datagrams of one byte with a short time to live. Routers answer with their address
 * (ICMP "time exceeded"), which any user may read (IP_RECVERR). If a probe reaches the peer, the
 * peer must drop it. Probes of a path end before the path is handed out.
 */
#ifndef TRIB_PATH_VIRTUAL_DISCOVERY_H
#define TRIB_PATH_VIRTUAL_DISCOVERY_H

#include "path/virtual/virtual_path.h"

struct discovery;

/* Why there are these paths, and no others. */
enum path_found {
	FOUND_OFF,       /* TRIB_PATHS=off: only one */
	FOUND_ADDRESSES, /* TRIB_PATHS=addresses: each pair */
	FOUND_COMPUTED,  /* TRIB_PATHS=xor:N */
	FOUND_NO_ROUTER, /* no router is on the way, so there is nothing to choose from */
	FOUND_NEAR,      /* the peer is behind the first router: all paths are one */
	FOUND_MUTE,      /* no router answers: each pair of addresses counts as a path */
	FOUND_SO_FAR,    /* routers differ; probes look for more */
	FOUND_ALL,       /* routers differ; there are no others, or the limit is reached */
	FOUND_GIVEN,     /* by the program */
	FOUND_BY_PEER,   /* the peer looks for paths to here */
	FOUND_END,
};

/*
 * Follows TRIB_PATHS. If a router is on the way, this call waits up to 50 ms (DISCOVERY_FIRST_NS)
 * for the hops of path 0. Otherwise it sends nothing.
 */
trib_status discovery_start(const struct udp_address *to, struct discovery **out);
void discovery_stop(struct discovery *discovery);

/* All addresses of the peer, with the port to use, that of path 0 included. Call it once. */
void discovery_tell(struct discovery *discovery, const struct udp_address to[], unsigned n,
                    uint64_t now);

/*
 * Paths found so far: at least 1, at most PATHS_MAX. They stay, and keep their places. If the port
 * of a path is not free when its user binds it, the user does without the path.
 */
unsigned discovery_count(const struct discovery *discovery);
const struct virtual_path *discovery_path(const struct discovery *discovery, unsigned i);

enum path_found discovery_found(const struct discovery *discovery);
/* "off", "addresses", ... */
const char *path_found_name(enum path_found found);

/* Readable if an answer came; -1: there is nothing to search. */
int discovery_fd(const struct discovery *discovery);
/* The time of the next step if no answer comes; UINT64_MAX: there is nothing to search. */
uint64_t discovery_wake(const struct discovery *discovery);
/*
 * Takes answers and sends probes; never blocks. Returns discovery_count. It may be called at any
 * time: it does something once in a millisecond at most.
 */
unsigned discovery_step(struct discovery *discovery, uint64_t now);

/*
 * For users that have a flow to each of several ports of the peer, and wait for it. Finds a path to
 * the port of `to` that differs from all paths so far; false: there is none, or none is found
 * within `wait` nanoseconds. Do not mix it with discovery_tell.
 */
bool discovery_find(struct discovery *discovery, const struct udp_address *to, uint64_t wait);

/*
 * Own addresses that the peer should know, up to `most`: those of the interface of the route to it,
 * and those of the loopback interface that others can reach. The first is the one that the kernel
 * would choose. Their ports are 0.
 */
unsigned discovery_own(const struct udp_address *peer, struct udp_address own[], unsigned most);

#endif
