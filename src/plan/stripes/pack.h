/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack: trees of any depth whose rates are multiples of a unit. In that unit a host's links
 * and cores are whole numbers. Trees are filled one after the other, with the largest
 * places first, so that a tree has few places and is shallow. Heavy trees come first. Light
 * trees use what the heavy ones left over on many hosts.
 */
#ifndef TRIB_PLAN_STRIPES_PACK_H
#define TRIB_PLAN_STRIPES_PACK_H

#include "plan/stripes/tree_shape.h"

#define PACK_FULL_MAX 64 /* full places of a host that the buckets distinguish */
#define PACK_BUCKETS(children) (2 * ((children) + PACK_FULL_MAX))

struct pack_host {
	int32_t in, out, cpu; /* remaining units */
	uint32_t next;        /* the next host in its bucket */
};

struct pack {
	const struct model *model;
	struct pack_host *hosts; /* [n] */
	uint32_t *buckets;       /* [PACK_BUCKETS]: hosts by their free capacity */
	uint64_t *steps;
};

/* `heavy` trees of `heavy_weight` units each, then `light` trees of `light_weight` units. */
struct pack_mix {
	unsigned heavy, heavy_weight, light, light_weight;
	bool small_root; /* the root saves a stream: make the host with the least capacity root */
};

/* The largest unit at which the trees fit; 0: none. All trees together stay below `most`. */
double pack_search(struct pack *pack, const struct pack_mix *mix, double most, struct shape *shape);

#endif
