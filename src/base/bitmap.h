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

/* Bit i of the result is bit 63 - i of the word. */
static inline uint64_t bits_reverse(uint64_t word)
{
	word = (word >> 1 & 0x5555555555555555ull) | (word & 0x5555555555555555ull) << 1;
	word = (word >> 2 & 0x3333333333333333ull) | (word & 0x3333333333333333ull) << 2;
	word = (word >> 4 & 0x0f0f0f0f0f0f0f0full) | (word & 0x0f0f0f0f0f0f0f0full) << 4;
	return __builtin_bswap64(word);
}

/* The 64 bits of a ring that end at `last`, in reverse: bit i is that of `last - i`. The ring has
 * `words` words, a power of two. */
static inline uint64_t bitmap_back(const uint64_t *ring, size_t words, uint64_t last)
{
	uint64_t first = last - 63;
	unsigned shift = first % 64;
	uint64_t word = ring[first / 64 % words] >> shift;

	if (shift)
		word |= ring[(first / 64 + 1) % words] << (64 - shift);
	return bits_reverse(word);
}

#endif
