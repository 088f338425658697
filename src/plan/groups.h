/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sharing groups: jobs whose trees have a link or switch in common, directly
 * or by way of others. Only those have to take turns, so a decision looks no
 * further than its group. Jobs have slots, numbers that are used again.
 */
#ifndef TRIB_PLAN_GROUPS_H
#define TRIB_PLAN_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROUPS_NONE UINT32_MAX

struct groups {
	uint32_t *users;       /* of a resource: trees that have it */
	uint32_t *at;          /* of a resource: one of them, or GROUPS_NONE */
	uint32_t *group;       /* of a slot: the number of its group */
	uint32_t *next;        /* of a slot: another one of its group, in a ring */
	uint32_t *size, *busy; /* of a group: members; those that are being aggregated */
	const uint32_t **tree; /* of a slot: its resources, kept by the caller */
	uint32_t *tree_n;
	uint8_t *active; /* of a slot: whether it is being aggregated */
	uint32_t *scratch;
};

size_t groups_bytes(uint32_t slots, uint32_t resources);
void groups_init(struct groups *groups, uint32_t slots, uint32_t resources, void *work);

/* `tree` has to stay where it is until the slot leaves. */
void groups_join(struct groups *groups, uint32_t slot, const uint32_t *tree, uint32_t n);
void groups_leave(struct groups *groups, uint32_t slot);

static inline void groups_activate(struct groups *groups, uint32_t slot, bool active)
{
	groups->active[slot] = active;
	groups->busy[groups->group[slot]] += active ? 1u : -1u;
}

/* Whether two trees have something in common; resources of a tree ascend. */
static inline bool groups_meet(const struct groups *groups, uint32_t a, uint32_t b)
{
	for (uint32_t i = 0, k = 0; i < groups->tree_n[a] && k < groups->tree_n[b];) {
		uint32_t left = groups->tree[a][i], right = groups->tree[b][k];

		if (left == right)
			return true;
		i += left < right;
		k += right < left;
	}
	return false;
}

#endif
