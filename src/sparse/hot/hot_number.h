/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot_number: gradients as 32-bit integers, and back. Pure.
 *
 * 2^HOT_BITS stands for the largest magnitude. The scale is a power of two, so a value that is a
 * multiple of the unit keeps all its bits. A gradient that is too large, or not a number, cannot be
 * hot: its row is sent to the server.
 */
#ifndef TRIB_SPARSE_HOT_HOT_NUMBER_H
#define TRIB_SPARSE_HOT_HOT_NUMBER_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HOT_BITS 21

/* The exponent e of the unit 2^e: 2^(e + HOT_BITS) is the least power of two >= largest. */
static inline int hot_exponent(double largest)
{
	int e = 0;
	double half = frexp(largest, &e); /* largest = half * 2^e, half in [0.5, 1) */

	return (half > 0.5 ? e : e - 1) - HOT_BITS;
}

/* Converts a row. False: a value does not fit. `unit_inverse` is 2^-e. */
static inline bool hot_from_floats(const float *row, uint32_t width, double unit_inverse,
                                   uint32_t *out)
{
	for (uint32_t i = 0; i < width; i++) {
		double scaled = (double)row[i] * unit_inverse;

		if (!(fabs(scaled) <= (double)(1 << HOT_BITS))) /* NaN fails, too */
			return false;
		out[i] = (uint32_t)(int32_t)lrint(scaled);
	}
	return true;
}

/* A value or a sum; `unit` is 2^e. */
static inline float hot_to_float(uint32_t value, double unit)
{
	return (float)((double)(int32_t)value * unit);
}

/* With sums by table a value is the bits of a float. False: it is not finite. */
static inline bool hot_from_bits(const float *row, uint32_t width, uint32_t *out)
{
	memcpy(out, row, (size_t)width * sizeof(*out));
	for (uint32_t i = 0; i < width; i++)
		if (!isfinite(row[i]))
			return false;
	return true;
}

/* A value or a sum of either kind: in fixed point, or by table. */
static inline float hot_value(uint32_t value, bool is_fixed, double unit)
{
	float bits;

	if (is_fixed)
		return hot_to_float(value, unit);
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

#endif
