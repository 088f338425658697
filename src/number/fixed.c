/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floats to fixed point and back.
 *
 * Scaling by a power of two is exact, so the only rounding is the explicit one here.
 * Denormals are the exception if the process flushes them: if a scale is so small that a
 * denormal matters, the `tiny` loops take over, which keep denormals away from
 * floating-point operations.
 */
#include "number/fixed.h"

#include "number/wide.h"

#include <math.h>

/* In tiny loops elements are lifted by this much, well into the normal range. */
#define F32_LIFT 96
#define F64_LIFT 600

#define F64_MANTISSA ((1ull << 52) - 1)

/*
 * The f32 bits of an element. Elements not below `ceiling` become 0: NaN, infinities, and
 * magnitudes above the class.
 */
ALWAYS_INLINE uint32_t widen(trib_type type, uint32_t bits, uint32_t ceiling)
{
	const struct format format = format_of(type);
	const uint32_t one = 1u << format.mantissa, sign = (uint32_t)format.sign;
	uint32_t magnitude = bits & (sign - 1);
	uint32_t normal, denormal;

	if (!format_is_narrow(type)) {
		bits = magnitude < ceiling ? bits : 0;
		return type == TRIB_BF16 ? bits << 16 : bits;
	}
	magnitude &= below32(magnitude, ceiling);
	normal = (magnitude << (23 - format.mantissa)) + ((uint32_t)(127 - format.bias) << 23);
	denormal = f32_bits((float)(int32_t)(magnitude & (one - 1)) *
	                    f32_power(format_smallest(type)));
	return (bits & sign) << (31 - __builtin_ctz(sign)) |
	       choose32(below32(magnitude, one), denormal, normal);
}

ALWAYS_INLINE float f32_lift(uint32_t bits)
{
	uint32_t magnitude = bits & 0x7fffffff;
	float normal = f32_from(magnitude) * f32_power(F32_LIFT);
	float denormal = (float)(int32_t)(magnitude & 0x7fffff) * f32_power(F32_LIFT - 149);
	uint32_t lifted =
		choose32(below32(magnitude, 1 << 23), f32_bits(denormal), f32_bits(normal));

	return f32_from((bits & 1u << 31) | lifted);
}

ALWAYS_INLINE double f64_lift(uint64_t bits)
{
	uint64_t magnitude = bits & INT64_MAX;
	double normal = f64_from(magnitude) * f64_power(F64_LIFT);
	double denormal = (double)(int64_t)(magnitude & F64_MANTISSA) * f64_power(F64_LIFT - 1074);
	uint64_t lifted =
		choose64(below64(magnitude, 1ull << 52), f64_bits(denormal), f64_bits(normal));

	return f64_from((bits & 1ull << 63) | lifted);
}

ALWAYS_INLINE void encode32(trib_type type, bool tiny, bool more, const void *restrict elements,
                            size_t n, uint32_t ceiling, int unit, void *restrict out)
{
	loose_u32 *restrict integers = out;
	const float scale = f32_power(tiny ? -unit - F32_LIFT : -unit);

	for (size_t i = 0; i < n; i++) {
		uint32_t element = widen(type, load32(type, elements, i), ceiling);
		float value = tiny ? f32_lift(element) : f32_from(element);

		integers[i] = (more ? integers[i] : 0) + (uint32_t)(int32_t)rintf(value * scale);
	}
}

ALWAYS_INLINE void encode64(bool tiny, const void *restrict elements, size_t n, uint64_t ceiling,
                            int unit, void *restrict out)
{
	const loose_u64 *restrict in = elements;
	loose_i64 *restrict integers = out;
	const double scale = f64_power(tiny ? -unit - F64_LIFT : -unit);

	for (size_t i = 0; i < n; i++) {
		uint64_t element = (in[i] & INT64_MAX) < ceiling ? in[i] : 0;
		double value = tiny ? f64_lift(element) : f64_from(element);

		integers[i] = (int64_t)rint(value * scale);
	}
}

/* If there are fewer bits than an element has, rounding may reach 2^bits: clamp it. */
static void clamp32(loose_i32 *integers, size_t n, int32_t limit)
{
	for (size_t i = 0; i < n; i++) {
		int32_t high = integers[i] < limit ? integers[i] : limit;

		integers[i] = high > -limit ? high : -limit;
	}
}

static void clamp64(loose_i64 *integers, size_t n, int64_t limit)
{
	for (size_t i = 0; i < n; i++) {
		int64_t high = integers[i] < limit ? integers[i] : limit;

		integers[i] = high > -limit ? high : -limit;
	}
}

/* The same, rounded up or down by chance. Few bits need it: see parts.h. */
ALWAYS_INLINE void dither32(trib_type type, const void *restrict elements, size_t n,
                            uint32_t ceiling, int unit, bool tiny, uint32_t seed,
                            void *restrict out)
{
	loose_i32 *restrict integers = out;
	const float scale = f32_power(tiny ? -unit - F32_LIFT : -unit);

	for (size_t i = 0; i < n; i++) {
		uint32_t element = widen(type, load32(type, elements, i), ceiling);
		float value = tiny ? f32_lift(element) : f32_from(element);

		integers[i] = (int32_t)floorf(value * scale + fixed_chance(seed, (uint32_t)i));
	}
}

/* Narrow types are never tiny: as f32 they are all normal. */
ALWAYS_INLINE void encode_of(trib_type type, bool more, const void *elements, size_t n, int top,
                             int unit, void *out)
{
	uint32_t ceiling = (uint32_t)format_power(type, top);
	/* From a unit of 2^-125 on, a denormal is 0, flushed or not. */
	bool tiny = unit < 2 - format_of(type).bias;

	if (tiny && !format_is_narrow(type))
		encode32(type, true, more, elements, n, ceiling, unit, out);
	else
		encode32(type, false, more, elements, n, ceiling, unit, out);
}

void fixed_encode(trib_type type, const void *elements, size_t n, int top, int unit, void *out)
{
	WITH_TYPE(type, encode_of, false, elements, n, top, unit, out);
}

WIDE static void encode_more_wide(trib_type type, const void *elements, size_t n, int top, int unit,
                                  void *out)
{
	WITH_TYPE(type, encode_of, true, elements, n, top, unit, out);
}

void number_encode_more(trib_type type, const void *elements, size_t n, uint16_t klass,
                        unsigned workers, void *out)
{
	int unit = unit_exponent(type, klass, workers), top = class_top(type, klass);

	if (number_is_wide())
		encode_more_wide(type, elements, n, top, unit, out);
	else
		WITH_TYPE(type, encode_of, true, elements, n, top, unit, out);
}

void fixed_dither(trib_type type, const void *elements, size_t n, int top, int unit, uint32_t seed,
                  void *out)
{
	uint32_t ceiling = (uint32_t)format_power(type, top);
	/* A denormal of less than a unit may become one: below this unit, all of them count. */
	bool tiny = unit < FIXED_DITHER_TINY && !format_is_narrow(type);

	WITH_TYPE(type, dither32, elements, n, ceiling, unit, tiny, seed, out);
}

void fixed_clamp(void *integers, size_t n, int bits)
{
	clamp32(integers, n, (int32_t)((1u << bits) - 1));
}

ALWAYS_INLINE void encode_scaled(trib_type type, const void *elements, size_t n, uint16_t klass,
                                 unsigned workers, void *out)
{
	int unit = unit_exponent(type, klass, workers);
	int bits = format_of(type).sum_bits - ceil_log2(workers);

	encode_of(type, false, elements, n, class_top(type, klass), unit, out);
	if (bits <= format_of(type).mantissa) /* fewer than the significand has */
		clamp32(out, n, (int32_t)((1u << bits) - 1));
}

static void encode_f64(const void *elements, size_t n, uint16_t klass, unsigned workers, void *out)
{
	const struct format format = format_of(TRIB_F64);
	int unit = unit_exponent(TRIB_F64, klass, workers), top = class_top(TRIB_F64, klass);
	int bits = format.sum_bits - ceil_log2(workers);

	if (unit < 2 - format.bias) /* from 2^-1021 on, a denormal is 0, flushed or not */
		encode64(true, elements, n, format_power(TRIB_F64, top), unit, out);
	else
		encode64(false, elements, n, format_power(TRIB_F64, top), unit, out);
	if (bits <= format.mantissa)
		clamp64(out, n, (1ll << bits) - 1);
}

WIDE static void encode_wide(trib_type type, const void *elements, size_t n, uint16_t klass,
                             unsigned workers, void *out)
{
	WITH_TYPE(type, encode_scaled, elements, n, klass, workers, out);
}

void number_encode(trib_type type, const void *elements, size_t n, uint16_t klass, unsigned workers,
                   void *out)
{
	if (!number_is_float(type))
		return;
	if (type == TRIB_F64)
		encode_f64(elements, n, klass, workers, out);
	else if (number_is_wide())
		encode_wide(type, elements, n, klass, workers, out);
	else
		WITH_TYPE(type, encode_scaled, elements, n, klass, workers, out);
}

/* A negative low half borrows one from the high half. */
ALWAYS_INLINE void pair(loose_u64 *pairs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pairs[i] -= (pairs[i] & 1ull << 31) << 1;
}

WIDE static void pair_wide(loose_u64 *pairs, size_t n)
{
	pair(pairs, n);
}

void number_pair(void *integers, size_t n)
{
	if (number_is_wide())
		pair_wide(integers, n / 2);
	else
		pair(integers, n / 2);
}

ALWAYS_INLINE void unpair(const loose_u64 *restrict in, size_t n, loose_u64 *restrict out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = in[i] + ((in[i] & 1ull << 31) << 1);
}

WIDE static void unpair_wide(const loose_u64 *restrict in, size_t n, loose_u64 *restrict out)
{
	unpair(in, n, out);
}

void number_unpair(const void *restrict pairs, size_t n, void *restrict integers)
{
	if (number_is_wide())
		unpair_wide(pairs, n / 2, integers);
	else
		unpair(pairs, n / 2, integers);
	if (n % 2)
		((loose_i32 *)integers)[n - 1] = ((const loose_i32 *)pairs)[n - 1];
}

/*
 * sum * scale, where scale is 2^unit or the double nearest to 2^unit / workers,
 * such that rounding it to f32, f16 or bf16 is rounding the exact quotient.
 *
 * The product is off by less than 2^-51 of itself. The exact quotient either is
 * a number of 25 bits (a tie between two f32, or one of them), or is away from
 * all of those by 2^-42 of itself at least, since workers <= 2^16. So rounding
 * the product to 47 bits restores the former and leaves the latter on its side.
 */
ALWAYS_INLINE double quotient(int32_t sum, double scale)
{
	return f64_from((f64_bits(sum * scale) + 0x20) & ~0x3full);
}

/*
 * The bits in `type` of a value that is given in units of the type's smallest
 * denormal. Rounds to nearest, ties to even.
 */
ALWAYS_INLINE uint64_t narrow(trib_type type, double units)
{
	const struct format format = format_of(type);
	const int drop = 52 - format.mantissa;
	const uint64_t smallest_normal = (uint64_t)(1023 + format.mantissa) << 52;
	uint64_t magnitude = f64_bits(units) & INT64_MAX;
	uint64_t sign = (f64_bits(units) & 1ull << 63) >> (63 - __builtin_ctzll(format.sign));
	/* Adding 2^52 rounds to an integer and leaves it in the low bits. */
	uint64_t denormal = f64_bits(f64_from(magnitude) + 0x1p52) & F64_MANTISSA;
	uint64_t normal = magnitude - smallest_normal + (1ull << 52);

	if (drop)
		normal += (1ull << drop >> 1) - 1 + (magnitude >> drop & 1);
	normal >>= drop;
	normal = choose64(below64(normal, format.infinity), normal, format.infinity);
	return sign | choose64(below64(magnitude, smallest_normal), denormal, normal);
}

ALWAYS_INLINE void decode_narrow(trib_type type, const void *restrict sums, size_t n, double scale,
                                 void *restrict elements)
{
	const loose_i32 *restrict in = sums;

	scale *= f64_power(-format_smallest(type));
	for (size_t i = 0; i < n; i++)
		store32(type, elements, i, (uint32_t)narrow(type, quotient(in[i], scale)));
}

/*
 * The fast path for f32 and bf16. The scale is a power of two, large enough that no result
 * is a denormal. The f32 holds 24 bits of the sum, rounded. If it is rounded again to bf16,
 * the first rounding rounds to odd: the last bit is set if any lost bit was. Then the two
 * roundings act as one.
 */
ALWAYS_INLINE void decode_power(trib_type type, const void *restrict sums, size_t n, float scale,
                                void *restrict elements)
{
	const loose_i32 *restrict in = sums;

	for (size_t i = 0; i < n; i++) {
		int32_t sum = in[i];
		uint32_t bits;

		if (type == TRIB_BF16) {
			bool fits = (uint32_t)sum + (1 << 24) < 1 << 25;
			int32_t lost = fits ? 0 : 0x7f;

			sum = (sum & ~lost) | (((sum & lost) + lost) & 0x80);
		}
		bits = f32_bits((float)sum * scale);
		if (type == TRIB_BF16)
			bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
		store32(type, elements, i, bits);
	}
}

ALWAYS_INLINE void decode_f64(bool tiny, bool average, const void *restrict sums, size_t n,
                              int unit, unsigned workers, void *restrict elements)
{
	const loose_i64 *restrict in = sums;
	loose_u64 *restrict out = elements;
	const double scale = f64_power(tiny ? unit - format_smallest(TRIB_F64) : unit);
	const double divisor = workers;

	for (size_t i = 0; i < n; i++) {
		double value = (average ? (double)in[i] / divisor : (double)in[i]) * scale;

		out[i] = tiny ? narrow(TRIB_F64, value) : f64_bits(value);
	}
}

ALWAYS_INLINE void decode32(trib_type type, const void *restrict sums, size_t n, double scale,
                            void *restrict elements)
{
	const loose_i32 *restrict in = sums;
	bool denormals = scale < 0x1p-126; /* the scale is the smallest result there can be */

	if (!format_is_narrow(type) && !denormals && (f64_bits(scale) & F64_MANTISSA) == 0)
		decode_power(type, sums, n, (float)scale, elements);
	else if (type == TRIB_F32 && !denormals)
		for (size_t i = 0; i < n; i++)
			store32(type, elements, i, f32_bits((float)quotient(in[i], scale)));
	else
		decode_narrow(type, sums, n, scale, elements);
}

ALWAYS_INLINE void decode_of(trib_type type, const void *sums, size_t n, int unit, unsigned workers,
                             bool average, void *elements)
{
	decode32(type, sums, n, f64_power(unit) / (average ? workers : 1), elements);
}

void fixed_decode(trib_type type, const void *sums, size_t n, int unit, unsigned workers,
                  bool average, void *elements)
{
	WITH_TYPE(type, decode_of, sums, n, unit, workers, average, elements);
}

ALWAYS_INLINE void decode_scaled(trib_type type, const void *sums, size_t n, uint16_t klass,
                                 unsigned workers, bool average, void *elements)
{
	decode_of(type, sums, n, unit_exponent(type, klass, workers), workers, average, elements);
}

static void decode_scaled_f64(const void *sums, size_t n, uint16_t klass, unsigned workers,
                              bool average, void *elements)
{
	int unit = unit_exponent(TRIB_F64, klass, workers);

	if (unit < -1022 + ceil_log2(workers))
		decode_f64(true, average, sums, n, unit, workers, elements);
	else if (average)
		decode_f64(false, true, sums, n, unit, workers, elements);
	else
		decode_f64(false, false, sums, n, unit, workers, elements);
}

WIDE static void decode_wide(trib_type type, const void *sums, size_t n, uint16_t klass,
                             unsigned workers, bool average, void *elements)
{
	WITH_TYPE(type, decode_scaled, sums, n, klass, workers, average, elements);
}

void number_decode(trib_type type, const void *sums, size_t n, uint16_t klass, unsigned workers,
                   bool average, void *elements)
{
	if (!number_is_float(type))
		return;
	if (type == TRIB_F64)
		decode_scaled_f64(sums, n, klass, workers, average, elements);
	else if (number_is_wide())
		decode_wide(type, sums, n, klass, workers, average, elements);
	else
		WITH_TYPE(type, decode_scaled, sums, n, klass, workers, average, elements);
}
