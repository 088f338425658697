/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random: random numbers that are the same on every machine (SplitMix64). All ranks shuffle in the
 * same way without communication.
 */
#ifndef EXAMPLES_RANDOM_H
#define EXAMPLES_RANDOM_H

#include <stdint.h>

struct random {
	uint64_t state;
};

static inline uint64_t random_next(struct random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* A separate generator for each pair of numbers. */
static inline struct random random_of(uint64_t seed, uint64_t stream)
{
	struct random mixed = { seed };
	struct random r = { random_next(&mixed) ^ stream * 0xd1342543de82ef95ull };

	r.state = random_next(&r);
	return r;
}

static inline float random_between(struct random *r, float low, float high)
{
	return low + (high - low) * ((float)(random_next(r) >> 40) * 0x1p-24f);
}

static inline int random_chance(struct random *r, float chance)
{
	return random_between(r, 0, 1) < chance;
}

/* Approximately normal, mean 0 and deviation 1: the sum of twelve uniform numbers. */
static inline float random_normal(struct random *r)
{
	uint32_t sum = 0;

	for (int i = 0; i < 3; i++) {
		uint64_t bits = random_next(r);

		sum += (uint32_t)(bits & 0xffff) + (uint32_t)(bits >> 16 & 0xffff) +
		       (uint32_t)(bits >> 32 & 0xffff) + (uint32_t)(bits >> 48);
	}
	return (float)sum * 0x1p-16f - 6;
}

#endif
