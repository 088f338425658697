/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether frames that XDP sends arrive. They may be dropped silently: a veth
 * drops them if the other end has no program, and a card may lack the queues.
 * The child then asks for every result, one by one. Sums stay exact, but slow,
 * so the lane returns to user space, and the program leaves the interfaces of its
 * children, where it would only cost speed. It stays where results have arrived. If
 * the parent misses every sum, user space sends the sums.
 *
 * A child of an engine's lane asks early, so a slow host looks like a host that gets no results.
 * There user space sums for a while. If its results arrive, the program is tried again. If the
 * program's results are missing each time and those of user space arrive each time, the program
 * leaves the interfaces. An engine that replies to each packet does not show whether replies of
 * user space arrive: its lane returns to user space, and the program stays on the interfaces.
 */
#ifndef TRIB_PLANE_XDP_KERNEL_WATCH_H
#define TRIB_PLANE_XDP_KERNEL_WATCH_H

#include "plane/lane/agg_lane.h"
#include "plane/xdp/xdp.h"

/* Whether a child gets what the program sends. */
struct child_watch {
	/* The first fragment that has not been looked at. Engines: how many results had been sent
	 * when the watch began. */
	uint64_t next;
	uint64_t asked_end; /* one above the last fragment that the child asked for */
	uint32_t asked;     /* recent results that it had to ask for */
	uint32_t heard;     /* recent results that it got at once */
	uint32_t repeats;   /* engines: as `asked`, with repeats that may have crossed the result */
};

/* Who asked for the result in an engine's cell, as bits. A late child asks often for one result. */
struct cell_watch {
	uint64_t asked, repeats; /* as counted in struct child_watch */
	uint32_t sent_at;        /* of the result */
};

/* Whether the parent gets the sums that the program sends. */
struct parent_watch {
	uint64_t launched; /* sums of the program that lane->flight includes */
	uint64_t heard;    /* results of the program's sums, up to the last look */
	uint32_t astray;   /* recent sums that the parent lacks */
	uint32_t arrived;  /* recent sums that the parent has answered */
	bool over;         /* the program sends no more sums */
};

/* A lane that the program sums in. */
struct xdp_kernel_lane {
	struct kernel_lane base;
	struct xdp_handle *handle;
	bool in_kernel;   /* the program takes the lane's packets */
	bool paused;      /* user space sums for now: a result would need too many frames */
	uint64_t lost;    /* engines: children that seem to miss the program's results, as bits */
	uint32_t sent;    /* engines: results of user space since `lost` was last judged */
	unsigned retries; /* engines: how often the program was tried again */
	struct child_watch watches[WIRE_CHILDREN_MAX];
	uint64_t *asked;          /* by cell: children that its result was repeated for */
	struct cell_watch *cells; /* of an engine */
	struct parent_watch up;
};

static inline struct xdp_kernel_lane *xdp_lane_of(const struct agg_lane *lane)
{
	return (struct xdp_kernel_lane *)lane->kernel;
}

/* Routes to children have changed: can the program send to all of them? */
void kernel_watch_frames(struct agg_lane *lane);
/* Has the program left an interface that children of the lane are behind? */
void kernel_watch_interfaces(struct agg_lane *lane);
/* The child has reported; `repeat` has the results that it asked for. */
void kernel_watch_child(struct agg_lane *lane, unsigned child, const struct wire_report *report,
                        const uint64_t *repeat);
/* The child asks again for the result of the lane's engine in this cell. */
void kernel_watch_repeat(struct agg_lane *lane, unsigned child, uint32_t cell, uint64_t now);
/* User space has sent a result of the lane's engine. */
void kernel_watch_sent(struct agg_lane *lane);
/* The parent has answered, and lacks `astray` of the sums that the program sent. */
void kernel_watch_parent(struct agg_lane *lane, uint32_t astray);

#endif
