/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fabric/sharing_groups.h"
#include "plan/cluster/carve.h"

#include <string.h>

static size_t groups_carve(struct groups *groups, uint32_t slots, uint32_t resources, char *work)
{
	size_t used = 0;

	groups->tree = carve(work, &used, slots, sizeof(*groups->tree));
	groups->users = carve(work, &used, resources, sizeof(uint32_t));
	groups->at = carve(work, &used, resources, sizeof(uint32_t));
	groups->group = carve(work, &used, slots, sizeof(uint32_t));
	groups->next = carve(work, &used, slots, sizeof(uint32_t));
	groups->size = carve(work, &used, slots, sizeof(uint32_t));
	groups->busy = carve(work, &used, slots, sizeof(uint32_t));
	groups->tree_n = carve(work, &used, slots, sizeof(uint32_t));
	groups->scratch = carve(work, &used, slots, sizeof(uint32_t));
	groups->active = carve(work, &used, slots, 1);
	return used;
}

size_t groups_bytes(uint32_t slots, uint32_t resources)
{
	struct groups none;

	return groups_carve(&none, slots, resources, NULL);
}

void groups_init(struct groups *groups, uint32_t slots, uint32_t resources, void *work)
{
	size_t bytes = groups_carve(groups, slots, resources, work);

	memset(work, 0, bytes);
	memset(groups->at, 0xff, resources * sizeof(uint32_t));
}

static void slot_alone(struct groups *groups, uint32_t slot)
{
	groups->group[slot] = groups->next[slot] = slot;
	groups->size[slot] = 1;
	groups->busy[slot] = groups->active[slot];
}

/* Renames the smaller group to the larger one, which is cheaper. */
static void groups_merge(struct groups *groups, uint32_t a, uint32_t b)
{
	uint32_t large = groups->group[a], small = groups->group[b], swap;

	if (large == small)
		return;
	if (groups->size[large] < groups->size[small]) {
		swap = large;
		large = small;
		small = swap;
		swap = a;
		a = b;
		b = swap;
	}
	groups->size[large] += groups->size[small];
	groups->busy[large] += groups->busy[small];
	for (uint32_t slot = b; groups->group[slot] != large; slot = groups->next[slot])
		groups->group[slot] = large;
	swap = groups->next[a];
	groups->next[a] = groups->next[b];
	groups->next[b] = swap;
}

static void slot_connect(struct groups *groups, uint32_t slot)
{
	for (uint32_t i = 0; i < groups->tree_n[slot]; i++) {
		uint32_t resource = groups->tree[slot][i];

		if (groups->at[resource] != GROUPS_NONE)
			groups_merge(groups, slot, groups->at[resource]);
		groups->at[resource] = slot;
	}
}

void groups_join(struct groups *groups, uint32_t slot, const uint32_t *tree, uint32_t n)
{
	groups->tree[slot] = tree;
	groups->tree_n[slot] = n;
	slot_alone(groups, slot);
	for (uint32_t i = 0; i < n; i++)
		groups->users[tree[i]]++;
	slot_connect(groups, slot);
}

static void slot_forget(struct groups *groups, uint32_t slot)
{
	for (uint32_t i = 0; i < groups->tree_n[slot]; i++)
		groups->at[groups->tree[slot][i]] = GROUPS_NONE;
}

/* Removes a job. Its sharing group may fall apart into several. */
void groups_leave(struct groups *groups, uint32_t slot)
{
	uint32_t n = 0;

	for (uint32_t other = groups->next[slot]; other != slot; other = groups->next[other])
		groups->scratch[n++] = other;
	for (uint32_t i = 0; i < groups->tree_n[slot]; i++)
		groups->users[groups->tree[slot][i]]--;
	slot_forget(groups, slot);
	for (uint32_t i = 0; i < n; i++)
		slot_forget(groups, groups->scratch[i]);
	slot_alone(groups, slot);
	groups->tree_n[slot] = 0;
	for (uint32_t i = 0; i < n; i++)
		slot_alone(groups, groups->scratch[i]);
	for (uint32_t i = 0; i < n; i++)
		slot_connect(groups, groups->scratch[i]);
}
