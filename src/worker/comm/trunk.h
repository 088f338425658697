/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trunk: a communicator's connection to one tree. It names the aggregator that this rank
 * sends to, the aggregators above that one, and the lanes between. Data only.
 */
#ifndef TRIB_WORKER_COMM_TRUNK_H
#define TRIB_WORKER_COMM_TRUNK_H

#include "path/udp.h"
#include "wire/packet.h"

struct lane;
struct lane_engine;

struct trunk {
	unsigned tree; /* the tree's number */
	uint32_t star; /* of a shared star: its number in the plan */
	double share;  /* of every vector, relative to the shares of the other trunks */
	const struct lane_engine *engine; /* of its lanes; the JOIN names it */
	struct udp_address aggregator;
	uint64_t ranks; /* bits of the ranks below this aggregator; 0: all ranks */
	unsigned hops;
	struct wire_hop up[WIRE_HOPS_MAX]; /* aggregators above: the parent first, the root last */
	struct wire_welcome welcome;       /* the aggregator's answer; cookie 0: not joined */
	uint32_t token; /* proves this rank's address there, see path/address_proof.h */
	unsigned n_lanes;
	struct lane *lanes[WIRE_LANES_MAX]; /* lane 0 also carries JOIN and BYE */
};

/* "10.0.0.7:7700", for error messages. */
static inline const char *trunk_name(const struct trunk *trunk, char *out, size_t size)
{
	return udp_text(&trunk->aggregator, out, size);
}

#endif
