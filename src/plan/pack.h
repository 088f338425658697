/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of one rate, of any depth. At a given rate a host's links and cores
 * are whole numbers of streams, and trees are filled one after the other with
 * the largest places first: few places a tree, so that it is shallow.
 */
#ifndef TRIB_PLAN_PACK_H
#define TRIB_PLAN_PACK_H

#include "plan/shape.h"

struct pack_host {
	int32_t in, out, cpu; /* streams that are left */
	uint32_t next;        /* in its bucket */
};

struct pack {
	const struct model *model;
	struct pack_host *hosts; /* [n] */
	uint32_t *buckets;       /* [children]: hosts by what they can take away at once */
	uint64_t *steps;
};

/* `trees` trees of `rate` bits a second each; false where they do not fit. */
bool pack_fill(struct pack *pack, unsigned trees, double rate, struct shape *shape);

/* The fastest that `trees` equal trees fit; 0: not at all. `most` is a rate of all that is known
   not to be exceeded. */
double pack_search(struct pack *pack, unsigned trees, double most, struct shape *shape);

#endif
