/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each host in one tree: hosts are parted into groups that can do about as
 * much, and each group's tree is as fast as its hosts allow. No host pays for a
 * second place, and rates are as unlike as the hosts are. Children are whole numbers,
 * so each host has a little left over: of that slower trees can be made, of many
 * hosts each.
 */
#ifndef TRIB_PLAN_GROUP_H
#define TRIB_PLAN_GROUP_H

#include "plan/load.h"
#include "plan/shape.h"

struct group_scratch {
	uint32_t *order, *next; /* [n] */
	struct load *left;      /* [n] */
};

/* Not faster than `most` in all, `slow` trees being made of what is left. False: no such plan. */
bool group_fill(const struct model *model, double most, unsigned slow,
                const struct group_scratch *scratch, struct shape *shape, uint64_t *steps);

#endif
