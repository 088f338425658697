/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce_reference.h"
#include "base/random_bits.h"

#include "number/format.h"
#include "number_reference.h"
#include "worker/dense/round.h"

#include <assert.h>
#include <stdlib.h>

static uint64_t scramble(uint64_t seed, uint64_t i)
{
	return bits_mix((seed + i) * RANDOM_STEP);
}

/*
 * A finite float with random bits. Exponents within a block are close, as those of gradients are.
 */
static uint64_t float_bits(trib_type type, uint64_t random, uint64_t seed, uint64_t i)
{
	int mantissa = mantissa_of(type);
	uint64_t highest = 2ull * (unsigned)bias_of(type);
	uint64_t spread = highest > 20 ? 8 : 4; /* fewer in a short type */
	uint64_t centre = scramble(seed ^ 77, i / 300) % (highest - spread - 4) + spread;
	uint64_t exponent = centre - (random >> 58) % spread;

	if ((random & 31) == 0)
		return random & sign_of(type); /* zeros of both signs */
	return (random & sign_of(type)) | exponent << mantissa |
	       (random >> 3 & ((1ull << mantissa) - 1));
}

static uint64_t special_bits(trib_type type, uint64_t random)
{
	uint64_t quiet = 1ull << (mantissa_of(type) - 1);

	if (type == TRIB_F8E4M3)
		return nan_of(type) | (random & sign_of(type));

	switch (random >> 40 & 3) {
	case 0:
		return infinity_of(type) | quiet | (random & 7 & (quiet - 1));
	case 1:
		return infinity_of(type) | sign_of(type);
	default:
		return infinity_of(type);
	}
}

void reduce_fill(trib_type type, enum reduce_values values, uint64_t seed, void *out, size_t count)
{
	size_t size = trib_type_size(type);
	uint64_t one_of = values == REDUCE_RARE ? 9973 : 97;

	for (size_t i = 0; i < count; i++) {
		uint64_t random = scramble(seed, i), bits = random;

		if (number_is_float(type))
			bits = values != REDUCE_FINITE && (random >> 20) % one_of == 0
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

/* Compares by value. -0 is below +0, and NaN is above everything. */
static uint64_t float_extreme(trib_type type, trib_op op, const void *const *in, unsigned ranks,
                              size_t i)
{
	uint64_t result = get(type, in[0], i);

	for (unsigned r = 0; r < ranks; r++) {
		uint64_t x = get(type, in[r], i);
		long double a = value_of(type, x), b = value_of(type, result);
		bool less = a < b || (a == b && x & sign_of(type) && !(result & sign_of(type)));

		if (isnan(a))
			return type == TRIB_F8E4M3
			               ? nan_of(type)
			               : infinity_of(type) | 1ull << (mantissa_of(type) - 1);
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

/* The same with a class for each sub-block. */
static void parts_sum_block(const struct parts *parts, bool average, const void *const *in,
                            size_t first, size_t n, uint8_t *out)
{
	size_t size = trib_type_size(parts->type), words = parts_bytes(parts->per_word, n) / 8;
	uint64_t *sum = calloc(words, 8), *one = malloc(words * 8);
	uint8_t *top = calloc(parts_classes(n), 1), *own = malloc(parts_classes(n));
	uint8_t *mask = calloc(n / 4 + 9, 1);

	assert(sum && one && top && own && mask);
	for (unsigned r = 0; r < parts->workers; r++) {
		const uint8_t *from = (const uint8_t *)in[r] + first * size;

		parts_classify(parts->type, from, n, own);
		for (size_t i = 0; i < parts_classes(n); i++)
			top[i] = own[i] > top[i] ? own[i] : top[i];
		number_mask(parts->type, from, n, mask, 0);
	}
	for (unsigned r = 0; r < parts->workers; r++) {
		parts_encode(parts, (const uint8_t *)in[r] + first * size, n, top, one);
		for (size_t i = 0; i < words; i++)
			sum[i] += one[i];
	}
	parts_decode(parts, sum, n, top, average, out + first * size);
	number_unmask(parts->type, mask, 0, n, out + first * size);
	free(sum);
	free(one);
	free(top);
	free(own);
	free(mask);
}

void reduce_expect(trib_type type, trib_op op, const void *const *in, unsigned ranks, size_t count,
                   unsigned payload, unsigned bits, void *out)
{
	struct round_spec spec = { .type = type,
		                   .op = op,
		                   .small = round_is_small(count * trib_type_size(type))
		                                    ? (uint8_t)ranks
		                                    : 0 };
	size_t size = trib_type_size(type), block;

	spec.per_word = round_per_word(type, count, ranks, bits);
	block = round_spec_block(&spec, payload);
	if (number_is_float(type) && (op == TRIB_SUM || op == TRIB_AVG)) {
		struct parts parts = { type, spec.per_word, ranks, 0 };

		for (size_t first = 0; first < count; first += block) {
			size_t n = count - first < block ? count - first : block;

			if (spec.per_word)
				parts_sum_block(&parts, op == TRIB_AVG, in, first, n, out);
			else
				float_sum_block(type, op == TRIB_AVG, in, ranks, first, n, out);
		}
		return;
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t element = number_is_float(type) ? float_extreme(type, op, in, ranks, i)
		                                         : integer_op(type, op, in, ranks, i);

		memcpy((uint8_t *)out + i * size, &element, size);
	}
}

static void lost_of_block(const struct parts *parts, const void *const *in, size_t first, size_t n,
                          float *lost, float *sizes)
{
	uint64_t *words = malloc(parts_bytes(parts->per_word, n));
	uint8_t *top = calloc(parts_classes(n), 1), *own = malloc(parts_classes(n));
	float *one = malloc(n * sizeof(*one));

	assert(words && top && own && one);
	for (unsigned r = 0; r < parts->workers; r++) {
		parts_classify(TRIB_F32, (const float *)in[r] + first, n, own);
		for (size_t i = 0; i < parts_classes(n); i++)
			top[i] = own[i] > top[i] ? own[i] : top[i];
	}
	for (unsigned r = 0; r < parts->workers; r++) {
		parts_encode(parts, (const float *)in[r] + first, n, top, words);
		parts_residual(parts, (const float *)in[r] + first, n, top, words, one);
		for (size_t i = 0; i < n; i++) {
			lost[first + i] += one[i];
			sizes[first + i] += fabsf(one[i]);
		}
	}
	free(words);
	free(top);
	free(own);
	free(one);
}

void reduce_lost(const void *const *in, unsigned ranks, size_t count, unsigned payload,
                 unsigned bits, float *lost, float *sizes)
{
	struct round_spec spec = { .type = TRIB_F32, .op = TRIB_SUM };
	struct parts parts = { TRIB_F32, round_per_word(TRIB_F32, count, ranks, bits), ranks, 0 };
	size_t block;

	memset(lost, 0, count * sizeof(*lost));
	memset(sizes, 0, count * sizeof(*sizes));
	spec.per_word = (uint8_t)parts.per_word;
	block = round_spec_block(&spec, payload);
	for (size_t first = 0; parts.per_word && first < count; first += block)
		lost_of_block(&parts, in, first, count - first < block ? count - first : block,
		              lost, sizes);
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
	if (isnan(ieee) || isinf(ieee)) /* NaN and infinities: as in IEEE addition */
		return isnan(ieee) ? isnan(value_of(type, result)) : value_of(type, result) == ieee;
	if (!isfinite(value_of(type, result))) /* beyond the type's range */
		return fabsl(ieee) >= value_of(type, infinity_of(type) - 1) * 0.99L;
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
			if (!element_in_bound(type, in, ranks, i, unit_exponent(type, top, ranks),
			                      get(type, result, i)))
				return false;
	}
	return true;
}

/* With 8 bits, each rank's element is off by less than a unit. */
static bool chance_in_bound(trib_type type, trib_op op, const void *const *in, unsigned ranks,
                            size_t i, int unit, long double result)
{
	long double sum = 0, share = op == TRIB_AVG ? ranks : 1;

	for (unsigned r = 0; r < ranks; r++)
		sum += value_of(type, get(type, in[r], i));
	if (!isfinite(sum)) /* NaN and infinities: as in IEEE addition */
		return is_same(sum, result);
	sum /= share;
	if (!isfinite(result))
		return !isfinite(round_to(type, sum + copysignl(ldexpl(ranks, unit), sum)));
	return fabsl(result - sum) <=
	       ldexpl((long double)ranks, unit) / share + ldexpl(0.5001L, place_of(type, result));
}

bool reduce_is_by_chance(trib_type type, trib_op op, size_t count, unsigned ranks, unsigned bits)
{
	return (op == TRIB_SUM || op == TRIB_AVG) &&
	       round_is_by_chance(type, round_per_word(type, count, ranks, bits));
}

bool reduce_chance_in_bound(trib_type type, trib_op op, const void *const *in, unsigned ranks,
                            size_t count, unsigned payload, unsigned bits, const void *result)
{
	struct round_spec spec = { .type = type, .op = op };
	struct parts parts = { type, round_per_word(type, count, ranks, bits), ranks, 0 };
	size_t block, n;

	spec.per_word = (uint8_t)parts.per_word;
	block = round_spec_block(&spec, payload);
	for (size_t first = 0; first < count; first += n) {
		size_t left = block - first % block;
		uint8_t top = 0;
		int unit;

		n = left < PARTS_BLOCK ? left : PARTS_BLOCK;
		n = count - first < n ? count - first : n;
		for (unsigned r = 0; r < ranks; r++) {
			uint8_t own;

			parts_classify(type, (const uint8_t *)in[r] + first * size_of(type), n,
			               &own);
			top = own > top ? own : top;
		}
		unit = parts_unit_exponent(&parts, top);
		for (size_t i = first; i < first + n; i++)
			if (!chance_in_bound(type, op, in, ranks, i, unit,
			                     value_of(type, get(type, result, i))))
				return false;
	}
	return true;
}
