/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/audit/audit_set.h"

#include <stdlib.h>

static uint64_t slot_of(const struct audit_set *set, struct audit_key key)
{
	uint64_t hash = key.a * 0x9e3779b97f4a7c15ull ^ (key.b + 0x632be59bd9b4e019ull);

	hash = (hash ^ hash >> 31) * 0xff51afd7ed558ccdull;
	hash = (hash ^ hash >> 33) & (set->n_slots - 1);
	while (set->slots[hash] && (set->keys[set->slots[hash] - 1].a != key.a ||
	                            set->keys[set->slots[hash] - 1].b != key.b))
		hash = (hash + 1) & (set->n_slots - 1);
	return hash;
}

static bool set_grow(struct audit_set *set)
{
	uint64_t room = set->room ? 2 * set->room : 64;
	struct audit_key *keys = realloc(set->keys, room * sizeof(*keys));
	uint64_t *values, *slots;

	if (!keys)
		return false;
	set->keys = keys;
	values = realloc(set->values, room * sizeof(*values));
	if (!values)
		return false;
	set->values = values;
	slots = calloc(2 * room, sizeof(*slots));
	if (!slots)
		return false;
	free(set->slots);
	set->slots = slots;
	set->n_slots = 2 * room;
	set->room = room;
	for (uint64_t i = 0; i < set->n; i++)
		slots[slot_of(set, set->keys[i])] = i + 1;
	return true;
}

uint64_t *audit_set_find(const struct audit_set *set, struct audit_key key)
{
	uint64_t at = set->n ? set->slots[slot_of(set, key)] : 0;

	return at ? &set->values[at - 1] : NULL;
}

uint64_t *audit_set_add(struct audit_set *set, struct audit_key key, uint64_t value, bool *was)
{
	uint64_t *found = audit_set_find(set, key);

	*was = found != NULL;
	if (found)
		return found;
	if ((!set->values || set->n == set->room) && !set_grow(set))
		return NULL;
	set->slots[slot_of(set, key)] = set->n + 1;
	set->keys[set->n] = key;
	set->values[set->n] = value;
	return &set->values[set->n++];
}

void audit_set_free(struct audit_set *set)
{
	free(set->keys);
	free(set->values);
	free(set->slots);
	*set = (struct audit_set){ 0 };
}
