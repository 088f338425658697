/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of any depth whose rates are whole multiples of a unit. In that unit a
 * host's links and cores are whole numbers, and trees are filled one after the
 * other with the largest places first: few places a tree, so that it is shallow.
 * Heavy trees come first; light ones use what these leave over on many hosts.
 */
#ifndef TRIB_PLAN_PACK_H
#define TRIB_PLAN_PACK_H

#include "plan/shape.h"

#define PACK_FULL_MAX 64 /* full places that a host is known to have room for */
#define PACK_BUCKETS(children) (2 * ((children) + PACK_FULL_MAX))

struct pack_host {
	int32_t in, out, cpu; /* units that are left */
	uint32_t next;        /* in its bucket */
};

struct pack {
	const struct model *model;
	struct pack_host *hosts; /* [n] */
	uint32_t *buckets;       /* [PACK_BUCKETS]: hosts by their room */
	uint64_t *steps;
};

/* So many trees of so many units each, the heavy ones first. */
struct pack_mix {
	unsigned heavy, heavy_weight, light, light_weight;
	bool small_root; /* the root saves a stream: give that to who has least */
};

/* Trees with a unit of so many bits a second; false where they do not fit. */
bool pack_fill(struct pack *pack, const struct pack_mix *mix, double unit, struct shape *shape);

/* The largest unit at which they fit, 0: none; all trees together are not to exceed `most`. */
double pack_search(struct pack *pack, const struct pack_mix *mix, double most, struct shape *shape);

#endif
