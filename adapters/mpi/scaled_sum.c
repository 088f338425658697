/* SPDX-License-Identifier: Apache-2.0 */
#include "scaled_sum.h"

#include <math.h>
#include <string.h>

#define CLASS_BITS 2   /* a class is four powers of two */
#define CLASS_LOW 128u /* class 0 in steps of the exponent's field */
#define EXPONENT_BIAS 1023

void scaled_classes(const double *values, size_t n, uint8_t *classes)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t bits;
		uint32_t step;

		memcpy(&bits, &values[i], sizeof(bits));
		bits &= INT64_MAX; /* without the sign */
		step = (uint32_t)(bits >> (52 + CLASS_BITS)) - CLASS_LOW;
		/* Below the lowest class, a step wraps to a large number. */
		step = step >= 1 && step < SCALED_NONE ? step : SCALED_NONE;
		classes[i] = (uint8_t)(bits ? step : 0);
	}
}

bool scaled_is_possible(const uint8_t *classes, size_t n)
{
	uint8_t highest = 0;

	for (size_t i = 0; i < n; i++)
		highest = classes[i] > highest ? classes[i] : highest;
	return highest < SCALED_NONE;
}

/* Factors from numbers to integers, or back. All numbers of class c are below 2^t. */
static void factors_fill(double *factors, unsigned ranks, int sign)
{
	int bits = 63;

	while (63 - bits < 31 && 1u << (63 - bits) < ranks)
		bits--;
	factors[0] = 0;
	for (unsigned c = 1; c < SCALED_NONE; c++) {
		int t = (int)((c + CLASS_LOW + 1) << CLASS_BITS) - EXPONENT_BIAS;

		factors[c] = ldexp(1, sign * (bits - t));
	}
	factors[SCALED_NONE] = 0;
}

void scaled_encode(const double *values, const uint8_t *classes, size_t n, unsigned ranks,
                   int64_t *integers)
{
	double factors[256];

	factors_fill(factors, ranks, 1);
	for (size_t i = 0; i < n; i++)
		integers[i] = llrint(values[i] * factors[classes[i]]);
}

void scaled_decode(const int64_t *sums, const uint8_t *classes, size_t n, unsigned ranks,
                   double *values)
{
	double factors[256];

	factors_fill(factors, ranks, -1);
	for (size_t i = 0; i < n; i++)
		values[i] = (double)sums[i] * factors[classes[i]];
}
