/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce_reference.h"

#include "number_reference.h"

#include <assert.h>
#include <stdlib.h>

static uint64_t scramble(uint64_t seed, uint64_t i)
{
	uint64_t z = (seed + i) * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* A finite float: any bits, but exponents that crowd within a block, as gradients do. */
static uint64_t float_bits(trib_type type, uint64_t random, uint64_t seed, uint64_t i)
{
	int mantissa = mantissa_of(type);
	uint64_t highest = 2ull * (unsigned)bias_of(type);
	uint64_t centre = scramble(seed ^ 77, i / 300) % (highest - 12) + 8;
	uint64_t exponent = centre - (random >> 58) % 8;

	if ((random & 31) == 0)
		return random & sign_of(type); /* zeros of both signs */
	return (random & sign_of(type)) | exponent << mantissa |
	       (random >> 3 & ((1ull << mantissa) - 1));
}

static uint64_t special_bits(trib_type type, uint64_t random)
{
	uint64_t quiet = 1ull << (mantissa_of(type) - 1);

	switch (random >> 40 & 3) {
	case 0:
		return infinity_of(type) | quiet | (random & 7);
	case 1:
		return infinity_of(type) | sign_of(type);
	default:
		return infinity_of(type);
	}
}

void reduce_fill(trib_type type, enum reduce_values values, uint64_t seed, void *out, size_t count)
{
	size_t size = trib_type_size(type);

	for (size_t i = 0; i < count; i++) {
		uint64_t random = scramble(seed, i), bits = random;

		if (number_is_float(type))
			bits = values == REDUCE_SPECIAL && (random >> 20) % 97 == 0
			               ? special_bits(type, random)
			               : float_bits(type, random, seed, i);
		memcpy((uint8_t *)out + i * size, &bits, size);
	}
}

static bool is_signed(trib_type type)
{
	return type == TRIB_I8 || type == TRIB_I32 || type == TRIB_I64;
}

/* The element with its sign, in 64 bits. */
static uint64_t load(trib_type type, const void *in, size_t i)
{
	size_t size = trib_type_size(type);
	uint64_t bits = 0;

	memcpy(&bits, (const uint8_t *)in + i * size, size);
	if (is_signed(type) && size < 8)
		bits = (uint64_t)((int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size));
	return bits;
}

static uint64_t integer_op(trib_type type, trib_op op, const void *const *in, unsigned ranks,
                           size_t i)
{
	uint64_t result = load(type, in[0], i);

	for (unsigned r = 1; r < ranks; r++) {
		uint64_t x = load(type, in[r], i);
		bool less = is_signed(type) ? (int64_t)x < (int64_t)result : x < result;

		if (op == TRIB_SUM || op == TRIB_AVG)
			result += x;
		else if (x != result && less == (op == TRIB_MIN))
			result = x;
	}
	if (op != TRIB_AVG)
		return result;
	/* The sum wraps in its type before it is divided. */
	uint64_t wrapped = 0;
	memcpy(&wrapped, &result, trib_type_size(type));
	wrapped = load(type, &wrapped, 0);
	return is_signed(type) ? (uint64_t)((int64_t)wrapped / (int64_t)ranks) : wrapped / ranks;
}

/* By value, -0 below +0, NaN above all else. */
static uint64_t float_extreme(trib_type type, trib_op op, const void *const *in, unsigned ranks,
                              size_t i)
{
	uint64_t result = get(type, in[0], i);

	for (unsigned r = 0; r < ranks; r++) {
		uint64_t x = get(type, in[r], i);
		long double a = value_of(type, x), b = value_of(type, result);
		bool less = a < b || (a == b && x & sign_of(type) && !(result & sign_of(type)));

		if (isnan(a))
			return infinity_of(type) | 1ull << (mantissa_of(type) - 1);
		if (x != result && less == (op == TRIB_MIN))
			result = x;
	}
	return result;
}

static void float_sum_block(trib_type type, bool average, const void *const *in, unsigned ranks,
                            size_t first, size_t n, uint8_t *out)
{
	size_t size = trib_type_size(type), wire = number_wire_size(type);
	uint8_t *sum = calloc(n, wire), *one = malloc(n * wire), *mask = calloc(n / 4 + 9, 1);
	uint16_t top = 0;
	bool any = false;

	assert(sum && one && mask);
	for (unsigned r = 0; r < ranks; r++) {
		bool special = false;
		const uint8_t *from = (const uint8_t *)in[r] + first * size;
		uint16_t klass = number_classify(type, from, n, &special);

		top = klass > top ? klass : top;
		any |= special;
		number_mask(type, from, n, mask, 0);
	}
	for (unsigned r = 0; r < ranks; r++) {
		number_encode(type, (const uint8_t *)in[r] + first * size, n, top, ranks, one);
		for (size_t i = 0; i < n; i++) {
			if (wire == 8)
				((uint64_t *)(void *)sum)[i] += ((uint64_t *)(void *)one)[i];
			else
				((uint32_t *)(void *)sum)[i] += ((uint32_t *)(void *)one)[i];
		}
	}
	number_decode(type, sum, n, top, ranks, average, out + first * size);
	if (any)
		number_unmask(type, mask, 0, n, out + first * size);
	free(sum);
	free(one);
	free(mask);
}

void reduce_expect(trib_type type, trib_op op, const void *const *in, unsigned ranks, size_t count,
                   size_t block, void *out)
{
	size_t size = trib_type_size(type);

	if (number_is_float(type) && (op == TRIB_SUM || op == TRIB_AVG)) {
		for (size_t first = 0; first < count; first += block)
			float_sum_block(type, op == TRIB_AVG, in, ranks, first,
			                count - first < block ? count - first : block, out);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t bits = number_is_float(type) ? float_extreme(type, op, in, ranks, i)
		                                      : integer_op(type, op, in, ranks, i);

		memcpy((uint8_t *)out + i * size, &bits, size);
	}
}

static bool element_in_bound(trib_type type, const void *const *in, unsigned ranks, size_t i,
                             int unit, uint64_t result)
{
	struct wide exact = { { 0 } };
	long double ieee = 0, difference;

	for (unsigned r = 0; r < ranks; r++) {
		uint64_t bits = get(type, in[r], i);

		ieee += value_of(type, bits);
		if (!is_special(type, bits))
			wide_add(&exact, value_of(type, bits));
	}
	if (isnan(ieee) || isinf(ieee)) /* specials: as IEEE addition has it */
		return isnan(ieee) ? isnan(value_of(type, result)) : value_of(type, result) == ieee;
	if (isinf(value_of(type, result))) /* beyond the type's range */
		return fabsl(ieee) >= ldexpl(1, bias_of(type) + 1) * 0.99L;
	wide_add(&exact, -value_of(type, result));
	difference = wide_magnitude(exact);
	return difference <= ldexpl((long double)ranks, unit) / 2 +
	                             ldexpl(0.5L, place_of(type, value_of(type, result)));
}

bool reduce_in_bound(trib_type type, const void *const *in, unsigned ranks, size_t count,
                     size_t block, const void *result)
{
	for (size_t first = 0; first < count; first += block) {
		size_t n = count - first < block ? count - first : block;
		uint16_t top = 0;

		for (unsigned r = 0; r < ranks; r++) {
			bool special;
			uint16_t klass = number_classify(
				type, (const uint8_t *)in[r] + first * size_of(type), n, &special);

			top = klass > top ? klass : top;
		}
		for (size_t i = first; i < first + n; i++)
			if (!element_in_bound(type, in, ranks, i,
			                      number_unit_exponent(type, top, ranks),
			                      get(type, result, i)))
				return false;
	}
	return true;
}
