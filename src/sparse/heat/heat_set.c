/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/heat/heat_set.h"

#include "sparse/heat/key_hash.h"

#include <string.h>

/* Counts stay below 2^54, so that a decay cannot overflow. */
#define COUNT_MAX (1ull << 54)

static uint32_t slots_for(uint32_t room)
{
	uint32_t slots = 4;

	while (slots < 2 * room)
		slots *= 2;
	return slots;
}

size_t heat_set_bytes(uint32_t room)
{
	return (size_t)room * (sizeof(struct heat_key) + sizeof(uint32_t)) +
	       (size_t)slots_for(room) * sizeof(uint32_t);
}

void heat_set_init(struct heat_set *set, void *memory, uint32_t room)
{
	uint32_t slots = slots_for(room);

	*set = (struct heat_set){ .room = room, .heap = memory, .slots_mask = slots - 1 };
	set->slot_of_heap = (void *)(set->heap + room);
	set->slots = set->slot_of_heap + room;
	memset(set->slots, 0, slots * sizeof(*set->slots));
}

/* ---- the slots: open addressing, and no slot between a key and its first choice is empty ---- */

static uint32_t first_choice(const struct heat_set *set, uint64_t key)
{
	return (uint32_t)key_hash(key) & set->slots_mask;
}

/* The slot of the key, or the empty slot in which it would be. */
static uint32_t slot_find(const struct heat_set *set, uint64_t key)
{
	uint32_t slot = first_choice(set, key);

	while (set->slots[slot] && set->heap[set->slots[slot] - 1].key != key)
		slot = (slot + 1) & set->slots_mask;
	return slot;
}

static void slot_set(struct heat_set *set, uint32_t slot, uint32_t at)
{
	set->slots[slot] = at + 1;
	set->slot_of_heap[at] = slot;
}

/* Empties a slot, and moves keys behind it that would be lost. */
static void slot_clear(struct heat_set *set, uint32_t slot)
{
	uint32_t mask = set->slots_mask;

	for (uint32_t next = (slot + 1) & mask; set->slots[next]; next = (next + 1) & mask) {
		uint32_t at = set->slots[next] - 1;
		uint32_t first = first_choice(set, set->heap[at].key);

		/* A key may stand in `slot` if that is not before its first choice. */
		if (((next - first) & mask) >= ((next - slot) & mask)) {
			slot_set(set, slot, at);
			slot = next;
		}
	}
	set->slots[slot] = 0;
}

/* ---- the heap ---- */

/* Of keys with the same count, the higher key is the colder one: heat_rank has the same order. */
static bool is_colder(const struct heat_key *a, const struct heat_key *b)
{
	return a->count != b->count ? a->count < b->count : a->key > b->key;
}

static void heap_swap(struct heat_set *set, uint32_t a, uint32_t b)
{
	struct heat_key key = set->heap[a];
	uint32_t slot_a = set->slot_of_heap[a], slot_b = set->slot_of_heap[b];

	set->heap[a] = set->heap[b];
	set->heap[b] = key;
	slot_set(set, slot_b, a);
	slot_set(set, slot_a, b);
}

static void heap_down(struct heat_set *set, uint32_t at)
{
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < set->n && is_colder(&set->heap[child + 1], &set->heap[child]))
			child++;
		if (child >= set->n || !is_colder(&set->heap[child], &set->heap[at]))
			return;
		heap_swap(set, at, child);
		at = child;
	}
}

static void heap_up(struct heat_set *set, uint32_t at)
{
	while (at && is_colder(&set->heap[at], &set->heap[(at - 1) / 2])) {
		heap_swap(set, at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

/* ---- */

static uint64_t count_add(uint64_t count, uint64_t more)
{
	return count + more < COUNT_MAX ? count + more : COUNT_MAX;
}

void heat_set_add(struct heat_set *set, uint64_t key, uint64_t updates)
{
	uint64_t units = updates < COUNT_MAX / HEAT_UNIT ? updates * HEAT_UNIT : COUNT_MAX;
	uint32_t slot = slot_find(set, key);

	if (!units)
		return;
	set->total = count_add(set->total, units);
	if (set->slots[slot]) {
		uint32_t at = set->slots[slot] - 1;

		set->heap[at].count = count_add(set->heap[at].count, units);
		heap_down(set, at);
	} else if (set->n < set->room) {
		set->heap[set->n] = (struct heat_key){ key, units };
		slot_set(set, slot, set->n);
		heap_up(set, set->n++);
	} else {
		slot_clear(set, set->slot_of_heap[0]);
		set->heap[0] = (struct heat_key){ key, count_add(set->heap[0].count, units) };
		/* `slot` may have been filled by the move. */
		slot = first_choice(set, key);
		while (set->slots[slot])
			slot = (slot + 1) & set->slots_mask;
		slot_set(set, slot, 0);
		heap_down(set, 0);
	}
}

void heat_set_decay(struct heat_set *set, uint32_t keep)
{
	uint32_t n = 0;

	keep = keep < 256 ? keep : 256;
	set->total = set->total * keep / 256;
	for (uint32_t i = 0; i < set->n; i++) {
		uint64_t count = set->heap[i].count * keep / 256;

		if (count)
			set->heap[n++] = (struct heat_key){ set->heap[i].key, count };
	}
	set->n = 0;
	memset(set->slots, 0, ((size_t)set->slots_mask + 1) * sizeof(*set->slots));
	/* Counts that became equal are ordered by key: the heap is made anew. */
	while (set->n < n) {
		uint32_t slot = first_choice(set, set->heap[set->n].key);

		while (set->slots[slot])
			slot = (slot + 1) & set->slots_mask;
		slot_set(set, slot, set->n);
		heap_up(set, set->n++);
	}
}

size_t heat_set_list(const struct heat_set *set, struct heat_key *out)
{
	if (set->n)
		memcpy(out, set->heap, set->n * sizeof(*out));
	heat_rank(out, set->n);
	return set->n;
}
