/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sharing_groups: a sharing group is a set of jobs whose trees have a link or switch in
 * common, directly or through other jobs. Only these jobs must take turns, so a decision
 * examines one sharing group. A job has a slot, a number that is reused after it ends.
 */
#ifndef TRIB_PLAN_FABRIC_SHARING_GROUPS_H
#define TRIB_PLAN_FABRIC_SHARING_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROUPS_NONE UINT32_MAX

struct groups {
	uint32_t *users;       /* by resource: number of trees that use it */
	uint32_t *at;          /* by resource: a slot that uses it, or GROUPS_NONE */
	uint32_t *group;       /* by slot: the number of its sharing group */
	uint32_t *next;        /* by slot: the next slot of its sharing group, as a ring */
	uint32_t *size, *busy; /* by sharing group: members, and members being aggregated */
	const uint32_t **tree; /* by slot: its resources, kept by the caller */
	uint32_t *tree_n;
	uint8_t *active; /* by slot: 1: it is being aggregated */
	uint32_t *scratch;
};

size_t groups_bytes(uint32_t slots, uint32_t resources);
void groups_init(struct groups *groups, uint32_t slots, uint32_t resources, void *work);

/* The caller keeps `tree` until the slot leaves. */
void groups_join(struct groups *groups, uint32_t slot, const uint32_t *tree, uint32_t n);
void groups_leave(struct groups *groups, uint32_t slot);

static inline void groups_activate(struct groups *groups, uint32_t slot, bool active)
{
	groups->active[slot] = active;
	groups->busy[groups->group[slot]] += active ? 1u : -1u;
}

#endif
