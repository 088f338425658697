/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each host in one tree: hosts are parted into groups that can do about as
 * much, and each group's tree is as fast as its hosts allow. No host pays for a
 * second place, and rates are as unlike as the hosts are.
 */
#ifndef TRIB_PLAN_GROUP_H
#define TRIB_PLAN_GROUP_H

#include "plan/shape.h"

/* Not faster than `most` in all. Scratch is order[n] and group[n]. False: no such plan. */
bool group_fill(const struct model *model, double most, uint32_t *order, uint32_t *group,
                struct shape *shape, uint64_t *steps);

#endif
