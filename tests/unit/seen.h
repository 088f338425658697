/* SPDX-License-Identifier: Apache-2.0 */
/* seen: a set of hashes of visited states, for tests that visit all states. */
#ifndef TRIB_TESTS_SEEN_H
#define TRIB_TESTS_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline uint64_t hash_more(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

struct seen {
	uint64_t *slots;
	size_t size, n;
};

/* False: it was in the set before. A hash is never 0. */
static inline bool seen_add(struct seen *seen, uint64_t hash)
{
	size_t at;

	if (2 * (seen->n + 1) > seen->size) {
		struct seen more = { calloc(2 * seen->size, sizeof(uint64_t)), 2 * seen->size, 0 };

		if (!more.slots)
			abort();
		for (size_t i = 0; i < seen->size; i++)
			if (seen->slots[i])
				seen_add(&more, seen->slots[i]);
		free(seen->slots);
		*seen = more;
	}
	for (at = hash % seen->size; seen->slots[at]; at = (at + 1) % seen->size)
		if (seen->slots[at] == hash)
			return false;
	seen->slots[at] = hash;
	seen->n++;
	return true;
}

#endif
