/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reference for the number module: the float formats implemented again, slowly and simply. It
 * rounds in long double, and its sums are exact.
 */
#ifndef TEST_NUMBER_REFERENCE_H
#define TEST_NUMBER_REFERENCE_H

#include "number/number.h"

#include <math.h>
#include <string.h>

#define countof(array) (sizeof(array) / sizeof((array)[0]))

static inline int mantissa_of(trib_type type)
{
	switch (type) {
	case TRIB_F8E4M3:
		return 3;
	case TRIB_F8E5M2:
		return 2;
	case TRIB_F16:
		return 10;
	case TRIB_BF16:
		return 7;
	default:
		return type == TRIB_F32 ? 23 : 52;
	}
}

static inline int bias_of(trib_type type)
{
	if (type == TRIB_F8E4M3)
		return 7;
	if (type == TRIB_F64)
		return 1023;
	return type == TRIB_F16 || type == TRIB_F8E5M2 ? 15 : 127;
}

static inline int smallest_of(trib_type type)
{
	return 1 - bias_of(type) - mantissa_of(type);
}

static inline size_t size_of(trib_type type)
{
	if (type == TRIB_F8E4M3 || type == TRIB_F8E5M2)
		return 1;
	return type == TRIB_F64 ? 8 : type == TRIB_F32 ? 4 : 2;
}

static inline uint64_t sign_of(trib_type type)
{
	return 1ull << (8 * size_of(type) - 1);
}

/* Magnitudes below are finite. E4M3 has a NaN here, and no infinity. */
static inline uint64_t infinity_of(trib_type type)
{
	if (type == TRIB_F8E4M3)
		return 0x7f;
	return (2ull * (unsigned)bias_of(type) + 1) << mantissa_of(type);
}

static inline uint64_t nan_of(trib_type type)
{
	return type == TRIB_F8E4M3 ? 0x7f : infinity_of(type) + 1;
}

static inline uint64_t get(trib_type type, const void *elements, size_t i)
{
	uint64_t bits = 0;

	memcpy(&bits, (const char *)elements + i * size_of(type), size_of(type));
	return bits;
}

static inline void put(trib_type type, void *elements, size_t i, uint64_t bits)
{
	memcpy((char *)elements + i * size_of(type), &bits, size_of(type));
}

static inline bool is_special(trib_type type, uint64_t bits)
{
	return (bits & (sign_of(type) - 1)) >= infinity_of(type);
}

/* The exact value. */
static inline long double value_of(trib_type type, uint64_t bits)
{
	int mantissa = mantissa_of(type);
	uint64_t magnitude = bits & (sign_of(type) - 1);
	uint64_t fraction = magnitude & ((1ull << mantissa) - 1);
	int exponent = (int)(magnitude >> mantissa);
	long double value;

	if (magnitude >= nan_of(type))
		value = NAN;
	else if (magnitude == infinity_of(type))
		value = INFINITY;
	else if (exponent == 0)
		value = ldexpl((long double)fraction, smallest_of(type));
	else
		value = ldexpl((long double)(fraction | 1ull << mantissa),
		               smallest_of(type) + exponent - 1);
	return bits & sign_of(type) ? -value : value;
}

/* The exponent of the last place of a value in `type`. */
static inline int place_of(trib_type type, long double value)
{
	int exponent;

	frexpl(value, &exponent);
	exponent -= mantissa_of(type) + 1;
	return value != 0 && exponent > smallest_of(type) ? exponent : smallest_of(type);
}

/* The nearest value of `type`, ties to even. */
static inline long double round_to(trib_type type, long double value)
{
	int place = place_of(type, value);
	long double rounded = ldexpl(rintl(ldexpl(value, -place)), place);

	if (fabsl(rounded) <= value_of(type, infinity_of(type) - 1))
		return rounded;
	return type == TRIB_F8E4M3 ? NAN : copysignl(INFINITY, value);
}

/* Equal, or both NaN. */
static inline bool is_same(long double a, long double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static inline int bits_for(trib_type type, unsigned workers)
{
	int bits = type == TRIB_F64 ? 63 : 31;

	while (workers > 1u << ((type == TRIB_F64 ? 63 : 31) - bits))
		bits--;
	return bits;
}

static inline int64_t integer_at(trib_type type, const void *integers, size_t i)
{
	return type == TRIB_F64 ? ((const int64_t *)integers)[i] : ((const int32_t *)integers)[i];
}

/* A sum without rounding, in two's complement. Bit 0 is worth 2^-1074. */

struct wide {
	uint64_t words[36];
};

static inline void wide_add(struct wide *sum, long double value)
{
	int exponent = 0;
	double fraction = (double)frexpl(value, &exponent); /* exact: 53 bits or fewer */
	int64_t integer = (int64_t)ldexp(fraction, 53);
	int shift = exponent - 53 + 1074;
	__int128 shifted;

	if (integer == 0)
		return;
	for (; shift < 0; shift++)
		integer /= 2; /* a denormal: these bits are 0 */
	shifted = (__int128)((unsigned __int128)integer << shift % 64);
	for (size_t i = (size_t)shift / 64; i < countof(sum->words); i++) {
		shifted += sum->words[i];
		sum->words[i] = (uint64_t)shifted;
		shifted >>= 64;
		if (shifted == 0)
			return;
	}
}

static inline bool wide_negative(const struct wide *sum)
{
	return sum->words[countof(sum->words) - 1] >> 63;
}

static inline long double wide_magnitude(struct wide sum)
{
	bool negative = wide_negative(&sum);
	uint64_t carry = negative;
	long double value = 0;

	for (size_t i = 0; i < countof(sum.words); i++) {
		if (negative) {
			sum.words[i] = ~sum.words[i] + carry;
			carry = carry && sum.words[i] == 0;
		}
		value += ldexpl((long double)sum.words[i], (int)i * 64 - 1074);
	}
	return value;
}

#endif
