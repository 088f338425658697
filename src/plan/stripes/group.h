/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group: a plan in which each host belongs to one tree. Hosts are divided into groups of
 * similar capacity, and each group's tree is as fast as its hosts allow. No host pays for a
 * second place. Because the number of children is a whole number, each host has some
 * capacity left; slower trees over many hosts use it.
 */
#ifndef TRIB_PLAN_STRIPES_GROUP_H
#define TRIB_PLAN_STRIPES_GROUP_H

#include "plan/stripes/tree_load.h"
#include "plan/stripes/tree_shape.h"

struct group_scratch {
	uint32_t *order, *next; /* [n] */
	struct load *left;      /* [n] */
};

/* At most `most` bits a second in all, with `slow` trees from the remaining capacity. False: no
 * such plan. */
bool group_fill(const struct model *model, double most, unsigned slow,
                const struct group_scratch *scratch, struct shape *shape, uint64_t *steps);

#endif
