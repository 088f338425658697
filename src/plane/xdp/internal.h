/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share, and nobody else sees. */
#ifndef TRIB_PLANE_XDP_INTERNAL_H
#define TRIB_PLANE_XDP_INTERNAL_H

#include "plane/xdp/xdp.h"

#include "plane.skel.h" /* after the structs that it has in it */

struct xdp_queue;

struct xdp_plane {
	struct plane_bpf *bpf;
	struct xdp_lane *lanes; /* all of them, mapped */
	uint32_t payload;
	int links[XDP_INTERFACES_MAX];
	struct xdp_interface interfaces[XDP_INTERFACES_MAX]; /* of the links */
	unsigned n_links;
	bool generic; /* on one of them, at least */
	_Atomic unsigned pools;
	struct xdp_queue *queues[WIRE_LANES_MAX]; /* NULL: what is for that lane passes on */
};

struct xdp_slot {
	struct xdp_plane *plane;
	struct xdp_lane *lane;
	uint32_t index;
	uint32_t children;
	void *cells;
	size_t bytes;
	int pool, fan;
	bool started;
	struct xdp_uplink uplink; /* port 0: there is no parent */
	struct udp_address group;
	uint64_t hears;
	uint32_t fan_ifindex[XDP_ROUTES]; /* what the fan's slots are set to */
};

/* xdp.c */
/* The program takes its packets if it is started, and results can leave as they are. */
void slot_activate(struct xdp_slot *slot);
/* queue.c */
void queues_open(struct xdp_plane *plane, const struct xdp_options *options);
void queues_close(struct xdp_plane *plane);
/* ways.c */
/* Where a frame came from, as a socket for IPv6 or for IPv4 alone would say it. */
bool seen_source(const struct xdp_seen *seen, bool six, struct udp_address *out);
void slot_forget_parent(struct xdp_slot *slot);

#endif
