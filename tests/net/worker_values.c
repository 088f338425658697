/* SPDX-License-Identifier: Apache-2.0 */
#include "worker_values.h"

#include <stdlib.h>

#define RIDGE 300 /* consecutive elements of similar magnitude */

static const struct {
	unsigned bits;
	bool is_signed;
	unsigned mantissa; /* 0: an integer */
} types[N_TYPES] = {
	[TRIB_I8] = { 8, true, 0 },    [TRIB_I32] = { 32, true, 0 },  [TRIB_I64] = { 64, true, 0 },
	[TRIB_U8] = { 8, false, 0 },   [TRIB_U32] = { 32, false, 0 }, [TRIB_U64] = { 64, false, 0 },
	[TRIB_F16] = { 16, true, 10 }, [TRIB_BF16] = { 16, true, 7 }, [TRIB_F32] = { 32, true, 23 },
	[TRIB_F64] = { 64, true, 52 },
};

static uint64_t load(const void *from, size_t i, unsigned bits)
{
	switch (bits) {
	case 8:
		return ((const uint8_t *)from)[i];
	case 16:
		return ((const uint16_t *)from)[i];
	case 32:
		return ((const uint32_t *)from)[i];
	default:
		return ((const uint64_t *)from)[i];
	}
}

static void store(void *to, size_t i, unsigned bits, uint64_t value)
{
	switch (bits) {
	case 8:
		((uint8_t *)to)[i] = (uint8_t)value;
		break;
	case 16:
		((uint16_t *)to)[i] = (uint16_t)value;
		break;
	case 32:
		((uint32_t *)to)[i] = (uint32_t)value;
		break;
	default:
		((uint64_t *)to)[i] = value;
	}
}

/* The bits of sign * n / 2^shift in a float of this type. n must fit the mantissa. */
static uint64_t float_bits(unsigned type, bool negative, uint64_t n, unsigned shift)
{
	unsigned mantissa = types[type].mantissa, exponent_bits = types[type].bits - 1 - mantissa;
	unsigned top;
	uint64_t bias = (1ull << (exponent_bits - 1)) - 1;

	if (!n)
		return 0; /* sums of zeros are +0 */
	top = 63 - (unsigned)__builtin_clzll(n);
	return (uint64_t)negative << (types[type].bits - 1) | (bias + top - shift) << mantissa |
	       (n << (mantissa - top) & ((1ull << mantissa) - 1));
}

static uint64_t exponents_of(unsigned type)
{
	return (1ull << (types[type].bits - 1 - types[type].mantissa)) - 1;
}

/* The highest exponent of RIDGE elements. */
static uint64_t ridge_exponent(unsigned type, uint64_t ridge)
{
	uint64_t exponents = exponents_of(type);

	return exponents / 4 + mix(ridge) % (exponents / 2);
}

/*
 * Magnitudes that change along the vector and between ranks, so that blocks differ; also a few
 * values of any size, NaN and infinities.
 */
static uint64_t float_wild(unsigned type, bool specials, uint64_t highest, uint64_t r)
{
	unsigned mantissa = types[type].mantissa, bits = types[type].bits;
	uint64_t exponents = exponents_of(type), exponent = highest - (r >> 12) % 4;

	if (specials && (r & 0xfff) == 0)
		return (exponents << mantissa) | (r >> 20 & 1) << (bits - 1) |
		       (r >> 21 & 1) << (mantissa - 1);
	if ((r & 0xfff) == 1)
		exponent = (r >> 12) % exponents;
	return (mix(r) & ((1ull << mantissa) - 1)) | exponent << mantissa |
	       (r >> 60 & 1) << (bits - 1);
}

static int small_whole(uint64_t r)
{
	return (int)(r % 9) - 4;
}

static uint64_t stream_of(const struct values *values, int rank, size_t part)
{
	return mix(mix(values->seed ^ (uint64_t)rank << 40) + part);
}

void values_draw(const struct values *values, int rank, size_t part, void *out)
{
	unsigned type = values->type, bits = types[type].bits;
	uint64_t stream = stream_of(values, rank, part), highest = 0;
	bool specials = values->op == TRIB_SUM || values->op == TRIB_AVG;

	for (size_t i = 0; i < values->count; i++) {
		uint64_t r = mix(stream + i);

		if (!types[type].mantissa) {
			store(out, i, bits, r);
		} else if (values->wild) {
			if (i % RIDGE == 0)
				highest = ridge_exponent(type, values->seed + i / RIDGE +
				                                       (uint64_t)rank / 2);
			store(out, i, bits, float_wild(type, specials, highest, r));
		} else {
			int whole = small_whole(r);

			store(out, i, bits, float_bits(type, whole < 0, (uint64_t)abs(whole), 0));
		}
	}
}

bool values_exact(const struct values *values)
{
	if (!types[values->type].mantissa || values->op == TRIB_MIN || values->op == TRIB_MAX)
		return true;
	/* For an average, the quotient must be exact too. */
	return !values->wild &&
	       (values->op != TRIB_AVG || (values->ranks & (values->ranks - 1)) == 0);
}

/* Maps a value to an integer with the same order, for MIN and MAX. */
static int64_t key_of(unsigned type, uint64_t value)
{
	unsigned unused = 64 - types[type].bits;
	int64_t key = (int64_t)(value << unused) >> unused;

	if (types[type].mantissa)
		return key < 0 ? (int64_t)((uint64_t)key ^ INT64_MAX) : key;
	return types[type].is_signed ? key : (int64_t)(value ^ 1ull << 63);
}

/* Sums the whole numbers that values_draw makes floats of. */
static void floats_reduce(const struct values *values, size_t part, void *out)
{
	unsigned shift = 0;
	int16_t *sums = calloc(values->count + 1, sizeof(*sums));

	if (!sums)
		exit(2);
	for (int rank = 0; rank < values->ranks; rank++) {
		uint64_t stream = stream_of(values, rank, part);

		for (size_t i = 0; i < values->count; i++)
			sums[i] = (int16_t)(sums[i] + small_whole(mix(stream + i)));
	}
	if (values->op == TRIB_AVG)
		shift = (unsigned)__builtin_ctz((unsigned)values->ranks);
	for (size_t i = 0; i < values->count; i++)
		store(out, i, types[values->type].bits,
		      float_bits(values->type, sums[i] < 0, (uint64_t)abs(sums[i]), shift));
	free(sums);
}

static uint64_t integer_sum(const struct values *values, void *const *inputs, size_t i)
{
	unsigned bits = types[values->type].bits, unused = 64 - bits;
	uint64_t sum = 0;

	for (int rank = 0; rank < values->ranks; rank++)
		sum += load(inputs[rank], i, bits);
	if (values->op != TRIB_AVG)
		return sum;
	if (types[values->type].is_signed)
		return (uint64_t)(((int64_t)(sum << unused) >> unused) / values->ranks);
	return (sum << unused >> unused) / (unsigned)values->ranks;
}

static uint64_t extreme(const struct values *values, void *const *inputs, size_t i)
{
	unsigned bits = types[values->type].bits;
	uint64_t best = load(inputs[0], i, bits);

	for (int rank = 1; rank < values->ranks; rank++) {
		uint64_t next = load(inputs[rank], i, bits);
		int64_t a = key_of(values->type, next), b = key_of(values->type, best);

		if (values->op == TRIB_MIN ? a < b : a > b)
			best = next;
	}
	return best;
}

void values_reduce(const struct values *values, size_t part, void *out)
{
	unsigned bits = types[values->type].bits;
	bool is_extreme = values->op == TRIB_MIN || values->op == TRIB_MAX;
	void **inputs;

	if (types[values->type].mantissa && !is_extreme) {
		floats_reduce(values, part, out);
		return;
	}
	inputs = calloc((size_t)values->ranks, sizeof(*inputs));
	for (int rank = 0; inputs && rank < values->ranks; rank++) {
		inputs[rank] = malloc(values->count * 8 + 1);
		if (!inputs[rank])
			exit(2);
		values_draw(values, rank, part, inputs[rank]);
	}
	for (size_t i = 0; inputs && i < values->count; i++) {
		if (is_extreme)
			store(out, i, bits, extreme(values, inputs, i));
		else
			store(out, i, bits, integer_sum(values, inputs, i));
	}
	for (int rank = 0; inputs && rank < values->ranks; rank++)
		free(inputs[rank]);
	free(inputs);
}
