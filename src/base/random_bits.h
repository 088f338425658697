/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that a seed repeats, and hashes of keys: splitmix64. Not for secrets. */
#ifndef TRIB_BASE_RANDOM_BITS_H
#define TRIB_BASE_RANDOM_BITS_H

#include <stdint.h>

#define RANDOM_STEP 0x9e3779b97f4a7c15ull

/* No two numbers give the same result. Each bit of it depends on all bits of x. */
static inline uint64_t bits_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* The next number of a sequence that starts with any seed. */
static inline uint64_t random_next(uint64_t *state)
{
	return bits_mix(*state += RANDOM_STEP);
}

#endif
