/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane/lane: the work of one lane of one communicator at an aggregator. It
 * owns the reports of children (child_packets), lanes of engines with functions
 * (engine_lane), the share of a link (link_share), occupancy, and the hand-over of
 * lanes to their threads (lane_handover). lane_kind.h is the table of what lanes
 * do for their engines.
 *
 * It must not decide which children join (plane/membership), touch sockets (the
 * carrier), nor know how a stream sums (plane/stream).
 *
 * A lane is owned by one thread. This header has its data, and what both its
 * directions (children, parent) need.
 */
#ifndef TRIB_PLANE_LANE_AGG_LANE_H
#define TRIB_PLANE_LANE_AGG_LANE_H

#include "engine/uplink.h"
#include "path/closed_port.h"
#include "path/group_probe.h"
#include "path/in_flight.h"
#include "plane/core/aggregator_state.h"
#include "wire/brief.h"

struct result_entry {
	uint64_t position;
	uint8_t child;  /* WIRE_ALL: every child that wants it; else a repeat for this child */
	uint8_t to;     /* tcp: copy of the cell's `to` */
	uint16_t bytes; /* tcp: length of the packet, header included */
};

struct lane_kind;

struct agg_lane {
	const struct lane_kind *does; /* for its engine; see lane_kind.h */
	struct kernel_lane *kernel;   /* NULL: the kernel part does not share the cells */
	struct engine_pool engine;    /* cells; of a stream: none */
	struct dense_lane *dense;     /* of a stream */
	struct dense_pool pool;       /* of a stream */
	uint32_t open;   /* cells that wait for a child; counted where there is a capacity */
	uint32_t stride; /* distance of packets that lie side by side and leave as one message */
	unsigned index;
	struct comm *comm;
	uint64_t left; /* children that have left, as far as the lane's thread knows */
	/* What is known of each child: */
	struct udp_address addresses[WIRE_CHILDREN_MAX];
	uint64_t serials[WIRE_CHILDREN_MAX]; /* of its newest report */
	uint64_t known;                      /* children whose address is known, as bits */
	uint64_t hears;                      /* children that hear multicast, as bits */
	uint64_t last[WIRE_CHILDREN_MAX];    /* fragments of which it was the last to arrive */
	uint64_t judged[WIRE_CHILDREN_MAX];  /* its packets whose fate it knows */
	uint64_t missed[WIRE_CHILDREN_MAX];  /* those of `judged` that were lost */
	uint32_t told_judged[WIRE_CHILDREN_MAX], told_lost[WIRE_CHILDREN_MAX]; /* last report */
	uint64_t repeated[WIRE_CHILDREN_MAX]; /* results that it got only when repeated */
	uint16_t told_again[WIRE_CHILDREN_MAX];
	uint64_t heard_at[WIRE_CHILDREN_MAX];
	uint32_t carried[WIRE_CHILDREN_MAX];       /* a worker's report of its own link */
	uint16_t away[WIRE_CHILDREN_MAX];          /* as in its newest report */
	uint16_t waited[WIRE_CHILDREN_MAX];        /* a worker's report of its own waiting */
	struct wire_call calls[WIRE_CHILDREN_MAX]; /* what it has called, by its newest report */
	struct closed_port closed[WIRE_CHILDREN_MAX];
	uint8_t ways[WIRE_CHILDREN_MAX];    /* of an engine's lane: enum wire_wait_way */
	uint64_t awaits[WIRE_CHILDREN_MAX]; /* an aggregator's report: ranks that it waits for */
	uint32_t earlier; /* a call that children made differently, as `asks` in struct wire_status;
	                     0: none is known */
	uint32_t parent_asks; /* the call that the parent asks for, as in struct wire_status */
	uint64_t disputed_at; /* when a packet did not fit those of other children; 0: never */
	char dispute[WIRE_TEXT_MAX]; /* that in words */
	/* Of a stream: results to send. */
	struct result_entry *queue; /* ring of 2 * cells entries */
	uint64_t head, tail;
	uint64_t heads[WIRE_CHILDREN_MAX]; /* tcp: each child's own head */
	uint32_t recent_results;           /* results sent since the last look at losses */
	uint32_t recent_losses[WIRE_CHILDREN_MAX];
	uint64_t single_until; /* no multicast until this time: a link is too slow for it */
	uint64_t told_low;     /* children know a `low` of at least this */
	struct udp_address group;
	uint64_t probe_at; /* time of the last probe of the multicast group */
	unsigned probes;   /* probes so far */
	/* Of a stream with a parent: */
	struct uplink up;
	struct flight flight;
	struct udp_address parent;
	uint64_t parent_heard_at;
	uint32_t parent_token; /* it has given this lane another token; 0: no */
	struct closed_port parent_closed;
	int group_fd;                   /* socket of the parent's multicast group; -1: none */
	struct group_probe group_probe; /* whether that group is heard */
	uint32_t kernel_heard;          /* results of sums that the kernel part alone had sent */
	struct agg_lane *next_up;       /* next lane whose parent has assigned the same id */
	struct lane_rates rates;
};

/* The header of a packet to a child. `lane` NULL: lane 0, before the lane exists. */
static inline struct wire_control wire_answer(const struct comm *comm, const struct agg_lane *lane,
                                              uint8_t type, uint8_t child)
{
	return (struct wire_control){ .magic = WIRE_MAGIC,
		                      .type = type,
		                      .cookie = comm->cookie,
		                      .job = comm->job,
		                      .comm = comm->id,
		                      .epoch = comm->epoch,
		                      .child = child,
		                      .pos = wire_pos(lane ? lane->index : 0, 0) };
}

struct status_packet {
	struct wire_control header;
	struct wire_status status;
};

/* The part of a fragment's checksum that is not sent, for packets from and to children. */
struct wire_unsent agg_lane_unsent(const struct agg_lane *lane, uint64_t position);
/* The ranks of these children that are late, as far as it is known here. */
uint64_t agg_lane_late(const struct agg_lane *lane, uint64_t children);
void agg_lane_send_abort(struct thread *thread, struct agg_lane *lane, unsigned child);
/* A child or the parent has given up, and says which rank it waited for. */
void agg_lane_take_abort(struct agg_lane *lane, const struct wire_control *header,
                         const struct udp_address *from);
/* Fragments of which the child was the last to arrive, here or in the kernel part. */
uint64_t agg_lane_came_last(const struct agg_lane *lane, unsigned child);

#endif
