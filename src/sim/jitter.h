/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitter: how long the computation of a step takes, if steps vary. It depends only on the seed, the
 * job and the step, so all policies get the same steps.
 */
#ifndef TRIB_SIM_JITTER_H
#define TRIB_SIM_JITTER_H

#include "base/random_bits.h"

#define JITTER_MOST (1.0 / 3) /* with more, a step could take a negative time */

/* The sum of three uniform numbers from -1 to 1: its mean is 0, its standard deviation 1. */
static inline double jitter_draw(uint64_t bits)
{
	double sum = 0;

	for (unsigned i = 0; i < 3; i++, bits >>= 21)
		sum += (double)(bits & 0x1fffff) / 0xfffff.8p0 - 1;
	return sum;
}

/* The share of its usual time; `jitter` is the standard deviation. */
static inline double jitter_pace(double jitter, uint64_t seed, uint32_t job, uint32_t step)
{
	uint64_t state = bits_mix(seed + RANDOM_STEP) ^ ((uint64_t)job << 32 | step);

	return jitter > 0 ? 1 + jitter * jitter_draw(random_next(&state)) : 1;
}

#endif
