/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_BASE_BITMAP_H
#define TRIB_BASE_BITMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t bitmap_words(size_t bits)
{
	return (bits + 63) / 64;
}

static inline bool bitmap_get(const uint64_t *map, size_t bit)
{
	return map[bit / 64] >> (bit % 64) & 1;
}

static inline void bitmap_set(uint64_t *map, size_t bit)
{
	map[bit / 64] |= 1ull << (bit % 64);
}

static inline void bitmap_clear(uint64_t *map, size_t bit)
{
	map[bit / 64] &= ~(1ull << (bit % 64));
}

/* The first bit at or after `from` that is `value`; `bits`: none. */
static inline size_t bitmap_find(const uint64_t *map, size_t bits, size_t from, bool value)
{
	while (from < bits) {
		uint64_t word = (value ? map[from / 64] : ~map[from / 64]) >> (from % 64);

		if (word) {
			from += (size_t)__builtin_ctzll(word);
			return from < bits ? from : bits;
		}
		from = (from / 64 + 1) * 64;
	}
	return bits;
}

#endif
