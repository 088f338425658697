/* SPDX-License-Identifier: Apache-2.0 */
/* half: f16 values of rows on the wire. Rounds to nearest, ties to even; NaN and infinity stay. */
#ifndef TRIB_SPARSE_WIRE_HALF_H
#define TRIB_SPARSE_WIRE_HALF_H

#include "number/narrow.h"

#include <math.h>

#define HALF_INFINITY 0x7c00u
#define HALF_NAN 0x7e00u

static inline uint16_t half_from(float value)
{
	uint32_t sign = f32_bits(value) >> 16 & 0x8000;

	if (isnan(value))
		return (uint16_t)(sign | HALF_NAN);
	if (isinf(value))
		return (uint16_t)(sign | HALF_INFINITY);
	return (uint16_t)narrow_from(TRIB_F16, value);
}

static inline float half_value(uint16_t bits)
{
	uint32_t magnitude = bits & 0x7fff;

	if (magnitude < HALF_INFINITY)
		return narrow_value(TRIB_F16, bits, HALF_INFINITY);
	if (magnitude > HALF_INFINITY)
		return NAN;
	return bits & 0x8000 ? -INFINITY : INFINITY;
}

/* Would a finite value become infinite? */
static inline bool half_overflows(float value)
{
	return fabsf(value) >= 65520.0F && !isinf(value);
}

#endif
