/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/heat/key_index.h"

#include "sparse/heat/key_hash.h"

#include <stdlib.h>

#define KEYS_MAX (1u << 30)

void key_index_free(struct key_index *index)
{
	free(index->keys);
	free(index->slots);
	*index = (struct key_index){ 0 };
}

/* The slot of the key, or the empty one in which it would be. A slot has 1 + the number. */
static uint32_t slot_find(const struct key_index *index, uint64_t key)
{
	uint32_t slot = (uint32_t)key_hash(key) & index->slots_mask;

	while (index->slots[slot] && index->keys[index->slots[slot] - 1] != key)
		slot = (slot + 1) & index->slots_mask;
	return slot;
}

static trib_status index_grow(struct key_index *index)
{
	uint32_t room = index->room ? 2 * index->room : 1024;
	uint32_t *slots = index->room < KEYS_MAX ? calloc((size_t)room * 2, sizeof(*slots)) : NULL;
	uint64_t *keys = slots ? realloc(index->keys, room * sizeof(*keys)) : NULL;

	if (!keys) {
		free(slots);
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u keys", room);
	}
	free(index->slots);
	index->keys = keys;
	index->slots = slots;
	index->room = room;
	index->slots_mask = 2 * room - 1;
	for (uint32_t i = 0; i < index->n; i++)
		slots[slot_find(index, keys[i])] = i + 1;
	return TRIB_OK;
}

trib_status key_index_add(struct key_index *index, uint64_t key, uint32_t *number)
{
	uint32_t slot;

	if (index->n == index->room) {
		trib_status status = index_grow(index);

		if (status != TRIB_OK)
			return status;
	}
	slot = slot_find(index, key);
	if (!index->slots[slot]) {
		index->keys[index->n] = key;
		index->slots[slot] = ++index->n;
	}
	*number = index->slots[slot] - 1;
	return TRIB_OK;
}

uint32_t key_index_find(const struct key_index *index, uint64_t key)
{
	uint32_t slot;

	if (!index->n)
		return KEY_INDEX_NONE;
	slot = slot_find(index, key);
	return index->slots[slot] ? index->slots[slot] - 1 : KEY_INDEX_NONE;
}
