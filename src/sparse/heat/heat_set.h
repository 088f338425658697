/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heat_set: counts of updates by key, in bounded memory, for a server that sees pushes. It keeps
 * the `room` hottest keys (Space-Saving: a new key takes the place of the coldest one, and
 * inherits its count). So a count is never too low, and too high by at most total / room. Counts
 * decay, so that old heat is forgotten.
 *
 * A count is in units: one update is HEAT_UNIT. Shares of updates do not depend on the unit.
 */
#ifndef TRIB_SPARSE_HEAT_SET_H
#define TRIB_SPARSE_HEAT_SET_H

#include "sparse/heat/heat.h"

#define HEAT_UNIT 256u

struct heat_set {
	uint32_t room, n;
	uint64_t total;         /* of all updates, in units; it decays too */
	struct heat_key *heap;  /* the coldest key is [0] */
	uint32_t *slot_of_heap; /* [i]: the slot of heap[i] */
	uint32_t *slots;        /* by hash; 1 + an index of the heap, 0: empty */
	uint32_t slots_mask;
};

/* Bytes for a set of `room` keys, 1 to 2^26; the memory has to be aligned to 8. */
size_t heat_set_bytes(uint32_t room);
void heat_set_init(struct heat_set *set, void *memory, uint32_t room);

/* Adds updates of a key. */
void heat_set_add(struct heat_set *set, uint64_t key, uint64_t updates);

/* Counts become keep / 256 of what they were. Keys without a count leave. */
void heat_set_decay(struct heat_set *set, uint32_t keep);

/* Writes all kept keys, the hottest first, to `out`, which has `set->n` places. Returns set->n. */
size_t heat_set_list(const struct heat_set *set, struct heat_key *out);

#endif
