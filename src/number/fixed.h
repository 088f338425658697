/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside number only: floats of up to 32 bits to int32 and back, where the caller knows
 * the scale. An integer is worth 2^unit.
 */
#ifndef TRIB_NUMBER_FIXED_H
#define TRIB_NUMBER_FIXED_H

#include "number/format.h"

/*
 * Elements whose magnitude is not below 2^top become 0, NaN and infinities too. Rounds to
 * nearest, ties to even.
 */
void fixed_encode(trib_type type, const void *elements, size_t n, int top, int unit, void *out);

#define FIXED_DITHER_TINY (-104) /* from this unit on, a denormal is below all chances */

/*
 * The same, but rounds up with a probability of the part that is cut off, so that the mean is
 * right. The seed and the element's index decide, so a repeat gives the same bits. Integers have
 * at most 7 bits.
 */
void fixed_dither(trib_type type, const void *elements, size_t n, int top, int unit, uint32_t seed,
                  void *out);

/*
 * What is added before rounding down: from 2^-17 to 1 - 2^-17. The sum with an integer of 7 bits is
 * an exact f32.
 */
ALWAYS_INLINE float fixed_chance(uint32_t seed, uint32_t i)
{
	uint32_t x = seed + i * 0x9e3779b9u;

	x = (x ^ x >> 16) * 0x85ebca6bu;
	x = (x ^ x >> 13) * 0xc2b2ae35u;
	return ((float)(int32_t)((x ^ x >> 16) >> 16) + 0.5f) * 0x1p-16f;
}

/* If rounding may have reached 2^bits: magnitudes above 2^bits - 1 become that. */
void fixed_clamp(void *integers, size_t n, int bits);

/* Each sum times 2^unit, and by `workers` if `average`; rounds once. A zero sum is +0. */
void fixed_decode(trib_type type, const void *sums, size_t n, int unit, unsigned workers,
                  bool average, void *elements);

#endif
