/* SPDX-License-Identifier: Apache-2.0 */
#include "number/parts_loops.h"

#include "number/fixed.h"
#include "number/narrow.h"

#ifndef PARTS_LOOPS
#define PARTS_LOOPS parts_loops_plain
#endif

#ifdef __F16C__
#include <immintrin.h>
#endif

#define N PARTS_BLOCK

typedef int16_t loose_i16 __attribute__((aligned(1), may_alias));
#ifdef __aarch64__
typedef __fp16 loose_f16 __attribute__((aligned(1), may_alias));
#endif

#define LARGEST(integer, magnitude_bits)                              \
	do {                                                          \
		typedef integer __attribute__((aligned(1))) loose;    \
		const loose *in = elements;                           \
                                                                      \
		for (size_t b = 0; b < blocks; b++, in += N) {        \
			integer top = 0;                              \
                                                                      \
			for (size_t i = 0; i < N; i++) {              \
				integer x = in[i] & (magnitude_bits); \
                                                                      \
				top = x > top ? x : top;              \
			}                                             \
			out[b] = (int32_t)(top & (magnitude_bits));   \
		}                                                     \
	} while (0)

static void largest(trib_type type, const void *elements, size_t blocks, int32_t *out)
{
	size_t size = trib_type_size(type);

	if (size == 4)
		LARGEST(loose_i32, 0x7fffffff);
	else if (size == 2)
		LARGEST(loose_i16, 0x7fff);
	else
		LARGEST(int8_t, 0x7f);
}

/* Half of each part's range. */
ALWAYS_INLINE uint64_t halves(unsigned per_word)
{
	return per_word == 4 ? 0x8000800080008000ull : 0x8080808080808080ull;
}

/* A sub-block as f32. */
ALWAYS_INLINE void block_widen(trib_type type, const void *restrict elements,
                               float *restrict values)
{
#ifdef __F16C__
	if (type == TRIB_F16) {
		for (size_t i = 0; i < N; i += 8)
			_mm256_storeu_ps(
				values + i,
				_mm256_cvtph_ps(_mm_loadu_si128(
					(const __m128i_u *)((const loose_u16 *)elements + i))));
		return;
	}
#elif defined(__aarch64__)
	if (type == TRIB_F16) {
		for (size_t i = 0; i < N; i++)
			values[i] = (float)((const loose_f16 *)elements)[i];
		return;
	}
#endif
	for (size_t i = 0; i < N; i++) {
		uint32_t bits = load32(type, elements, i);

		if (format_is_narrow(type))
			values[i] = narrow_value(type, bits, UINT32_MAX >> 1);
		else
			values[i] = f32_from(type == TRIB_BF16 ? bits << 16 : bits);
	}
}

/* f32 values to a sub-block of the type. */
ALWAYS_INLINE void block_narrow(trib_type type, const float *restrict values,
                                void *restrict elements)
{
#ifdef __F16C__
	if (type == TRIB_F16) {
		for (size_t i = 0; i < N; i += 8)
			_mm_storeu_si128((__m128i_u *)((loose_u16 *)elements + i),
			                 _mm256_cvtps_ph(_mm256_loadu_ps(values + i),
			                                 _MM_FROUND_TO_NEAREST_INT));
		return;
	}
#elif defined(__aarch64__)
	if (type == TRIB_F16) {
		for (size_t i = 0; i < N; i++)
			((loose_f16 *)elements)[i] = (__fp16)values[i];
		return;
	}
#endif
	for (size_t i = 0; i < N; i++)
		store32(type, elements, i, narrow_from(type, values[i]));
}

/* Within -most and most. NaN becomes the largest. */
ALWAYS_INLINE float limited(float value, float most)
{
	value = value < most ? value : most;
	return value > -most ? value : -most;
}

/* floorf() of a small number, which not every compiler makes for SIMD units. */
ALWAYS_INLINE float rounded_down(float value)
{
	const float steps = 1.5f * 0x1p23f;
	float nearest = value + steps - steps;

	return nearest - (nearest > value ? 1.0f : 0.0f);
}

/*
 * A float near 1.5 * 2^23 units has steps of one unit: adding that rounds, and leaves the integer
 * in the low bits.
 */
ALWAYS_INLINE void encode_block(trib_type type, unsigned per_word, bool by_chance,
                                const void *restrict elements, int unit, int limit, uint32_t seed,
                                void *restrict words)
{
	const float scale = f32_power(by_chance ? -unit : 0);
	const float most = (float)limit * f32_power(by_chance ? 0 : unit);
	const float steps = 1.5f * f32_power(by_chance ? 23 : 23 + unit);
	loose_u64 *sums = words;
	float values[N];

	block_widen(type, elements, values);
	for (size_t i = 0; i < N; i++) {
		float value = limited(values[i] * scale, most);

		if (by_chance)
			value = rounded_down(value + fixed_chance(seed, (uint32_t)i));
		if (per_word == 4)
			((loose_u16 *)words)[i] = (uint16_t)f32_bits(value + steps);
		else
			((uint8_t *)words)[i] = (uint8_t)f32_bits(value + steps);
	}
	for (size_t i = 0; i < N / per_word; i++)
		sums[i] = (sums[i] ^ halves(per_word)) - halves(per_word);
}

/*
 * The same for bf16, four in a word, and two in each 32-bit lane: the upper one is an f32 as it is,
 * but for the bits of the lower one. No lane changes its width, which SIMD units like best.
 */
ALWAYS_INLINE void encode_pairs(const void *restrict elements, int unit, int limit,
                                void *restrict words)
{
	const float most = (float)limit * f32_power(unit), steps = 1.5f * f32_power(23 + unit);
	const loose_u32 *restrict in = elements;
	loose_u32 *out = words;
	loose_u64 *sums = words;

	for (size_t i = 0; i < N / 2; i++) {
		float low = limited(f32_from(in[i] << 16), most) + steps;
		float high = limited(f32_from(in[i] & 0xffff0000), most) + steps;

		out[i] = (f32_bits(low) & 0xffff) | f32_bits(high) << 16;
	}
	for (size_t i = 0; i < N / 4; i++)
		sums[i] = (sums[i] ^ halves(4)) - halves(4);
}

ALWAYS_INLINE void encode_run(trib_type type, unsigned per_word, const struct parts *parts,
                              const void *elements, size_t first, size_t blocks, const int *units,
                              void *words)
{
	const int limit = (1 << parts_bits(per_word, parts->workers)) - 1;
	const size_t bytes = N * trib_type_size(type);
	const uint8_t *in = elements;
	uint8_t *out = words;

	for (size_t b = 0; b < blocks; b++) {
		if (type == TRIB_BF16 && per_word == 4)
			encode_pairs(in, units[b], limit, out);
		else if (per_word == 8 && parts->dither)
			encode_block(type, per_word, true, in, units[b], limit,
			             parts_seed(parts, first + b), out);
		else
			encode_block(type, per_word, false, in, units[b], limit, 0, out);
		in += bytes;
		out += N / per_word * 8;
	}
}

static void encode(const struct parts *parts, const void *elements, size_t first, size_t blocks,
                   const int *units, void *words)
{
	if (parts->per_word == 4)
		WITH_TYPE(parts->type, encode_run, 4, parts, elements, first, blocks, units, words);
	else
		WITH_TYPE(parts->type, encode_run, 8, parts, elements, first, blocks, units, words);
}

/*
 * A sum has at most 15 bits, so the float is exact, and so is its product with a power of two.
 * The quotient by the workers is rounded to 24 bits and then to the type. That is as good as once:
 * it is either halfway between two numbers of the type, exactly, or further from there than 2^-24
 * of itself.
 */
ALWAYS_INLINE void decode_block(trib_type type, unsigned per_word, const void *restrict words,
                                int unit, unsigned divisor, void *restrict elements)
{
	const float scale = f32_power(unit), workers = (float)divisor;
	const loose_u64 *restrict sums = words;
	uint64_t plain[N / 4];
	float values[N];

	for (size_t i = 0; i < N / per_word; i++)
		plain[i] = (sums[i] + halves(per_word)) ^ halves(per_word);
	for (size_t i = 0; i < N; i++)
		values[i] =
			per_word == 4 ? ((const loose_i16 *)plain)[i] : ((const int8_t *)plain)[i];
	for (size_t i = 0; divisor != 1 && i < N; i++)
		values[i] /= workers;
	for (size_t i = 0; i < N; i++)
		values[i] *= scale;
	block_narrow(type, values, elements);
}

/* The same for bf16, as in encode_pairs(). */
ALWAYS_INLINE void decode_pairs(const void *restrict words, int unit, unsigned divisor,
                                void *restrict elements)
{
	const float scale = f32_power(unit), workers = (float)divisor;
	const loose_u64 *restrict sums = words;
	loose_u32 *restrict out = elements;
	uint64_t plain[N / 4];
	const loose_i32 *pairs = (const loose_i32 *)plain;

	for (size_t i = 0; i < N / 4; i++)
		plain[i] = (sums[i] + halves(4)) ^ halves(4);
	for (size_t i = 0; i < N / 2; i++) {
		float low = (float)((int32_t)((uint32_t)pairs[i] << 16) >> 16);
		float high = (float)(pairs[i] >> 16);

		if (divisor != 1) {
			low /= workers;
			high /= workers;
		}
		out[i] = narrow_from(TRIB_BF16, low * scale) | narrow_from(TRIB_BF16, high * scale)
		                                                       << 16;
	}
}

ALWAYS_INLINE void decode_run(trib_type type, unsigned per_word, const void *words, size_t blocks,
                              const int *units, unsigned divisor, void *elements)
{
	const size_t bytes = N * trib_type_size(type);
	const uint8_t *in = words;
	uint8_t *out = elements;

	for (size_t b = 0; b < blocks; b++) {
		if (type == TRIB_BF16 && per_word == 4)
			decode_pairs(in, units[b], divisor, out);
		else
			decode_block(type, per_word, in, units[b], divisor, out);
		in += N / per_word * 8;
		out += bytes;
	}
}

static void decode(const struct parts *parts, const void *words, size_t blocks, const int *units,
                   unsigned divisor, void *elements)
{
	if (parts->per_word == 4)
		WITH_TYPE(parts->type, decode_run, 4, words, blocks, units, divisor, elements);
	else
		WITH_TYPE(parts->type, decode_run, 8, words, blocks, units, divisor, elements);
}

const struct parts_loops PARTS_LOOPS = { largest, encode, decode };
