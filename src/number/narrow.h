/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow: one float of 8, 16 or 32 bits to an f32 and back, for loops that the compiler makes for
 * each type, and for programs that measure and compare.
 */
#ifndef TRIB_NUMBER_NARROW_H
#define TRIB_NUMBER_NARROW_H

#include "number/format.h"

/* The f32 of an element, or 0 if it is not below the ceiling. Denormals of narrow types are exact.
 */
ALWAYS_INLINE float narrow_value(trib_type type, uint32_t bits, uint32_t ceiling)
{
	const struct format format = format_of(type);
	const uint32_t sign_bit = (uint32_t)format.sign;
	uint32_t sign = (bits & sign_bit) << (31 - __builtin_ctz(sign_bit));
	uint32_t magnitude = bits & (sign_bit - 1);

	magnitude &= below32(magnitude, ceiling);
	if (format_is_narrow(type)) {
		const uint32_t base = (uint32_t)(127 - format.bias) << 23;
		uint32_t is_denormal = below32(magnitude, 1u << format.mantissa);
		uint32_t shifted = magnitude << (23 - format.mantissa);
		/* The denormal plus a power of two is a normal number; the power is subtracted. */
		float denormal = f32_from(shifted + base + (1u << 23)) - f32_power(1 - format.bias);

		return f32_from(sign | choose32(is_denormal, f32_bits(denormal), shifted + base));
	}
	return f32_from(sign | magnitude << (type == TRIB_BF16 ? 16 : 0));
}

/* Rounds to nearest, ties to even. The value is 0 or a normal f32. */
ALWAYS_INLINE uint32_t narrow_from(trib_type type, float value)
{
	const struct format format = format_of(type);
	const unsigned drop = (23u - (unsigned)format.mantissa) & 31;
	const uint32_t sign_bit = (uint32_t)format.sign, infinity = (uint32_t)format.infinity;
	const float step = f32_power(format_is_narrow(type) ? format_smallest(type) + 23 : 0);
	uint32_t bits = f32_bits(value), magnitude = bits & 0x7fffffff;
	uint32_t normal, denormal;

	if (type == TRIB_F32)
		return bits;
	if (type == TRIB_BF16)
		return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
	normal = magnitude - ((uint32_t)(127 - format.bias) << 23);
	normal = (normal + (1u << drop >> 1) - 1 + (magnitude >> drop & 1)) >> drop;
	normal = choose32(below32(normal, infinity), normal, infinity);
	/* A float of this size has the steps of the type's denormals. */
	denormal = f32_bits(f32_from(magnitude) + step) - f32_bits(step);
	return (bits >> (31 - __builtin_ctz(sign_bit)) & sign_bit) |
	       choose32(below32(magnitude, (uint32_t)(128 - format.bias) << 23), denormal, normal);
}

#endif
