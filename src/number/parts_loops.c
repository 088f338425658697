/* SPDX-License-Identifier: Apache-2.0 */
#include "number/parts_loops.h"

#include "number/fixed.h"
#include "number/narrow.h"
#include "number/parts_vector.h"

#include <limits.h>

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

#define CLASSIFY(integer, magnitude_bits)                                  \
	do {                                                               \
		typedef integer __attribute__((aligned(1))) loose;         \
		const loose *in = elements;                                \
                                                                           \
		for (size_t left = n, now; left; left -= now, in += now) { \
			integer top = 0;                                   \
                                                                           \
			now = left < N ? left : N;                         \
			for (size_t i = 0; i < now; i++) {                 \
				integer x = in[i] & (magnitude_bits);      \
                                                                           \
				top = x > top ? x : top;                   \
			}                                                  \
			*classes++ = (uint8_t)(top >> mantissa);           \
			largest = top > largest ? (int32_t)top : largest;  \
		}                                                          \
	} while (0)

#ifdef PARTS_VECTOR
/* Up to a vector of elements, and zeros behind them. */
ALWAYS_INLINE vector vector_load_some(const void *from, size_t bytes)
{
	uint16_t room[PARTS_VECTOR] = { 0 };

	memcpy(room, from, bytes);
	return vector_load(room);
}

ALWAYS_INLINE void vector_store_some(void *to, vector v, size_t bytes)
{
	uint16_t room[PARTS_VECTOR];

	vector_store(room, v);
	memcpy(to, room, bytes);
}

ALWAYS_INLINE int32_t largest16(const loose_u16 *in, size_t n)
{
	const vector magnitude_bits = vector_all(0x7fff);
	vector top = vector_all(0);
	size_t i = 0;

	for (; i + PARTS_VECTOR <= n; i += PARTS_VECTOR)
		top = vector_max(top, vector_and(vector_load(in + i), magnitude_bits));
	if (i < n)
		top = vector_max(top,
		                 vector_and(vector_load_some(in + i, (n - i) * 2), magnitude_bits));
	return vector_largest(top);
}

ALWAYS_INLINE int32_t classify16(const loose_u16 *in, size_t n, int mantissa, uint8_t *classes)
{
	int32_t largest = 0, top;

	for (; n >= N; n -= N, in += N) {
		top = largest16(in, N);
		*classes++ = (uint8_t)(top >> mantissa);
		largest = top > largest ? top : largest;
	}
	if (n) {
		top = largest16(in, n);
		*classes = (uint8_t)(top >> mantissa);
		largest = top > largest ? top : largest;
	}
	return largest;
}
#endif

static int32_t classify(trib_type type, const void *elements, size_t n, uint8_t *classes)
{
	const int mantissa = format_of(type).mantissa;
	const size_t size = trib_type_size(type);
	int32_t largest = 0;

	if (size == 4)
		CLASSIFY(loose_i32, 0x7fffffff);
	else if (size == 1)
		CLASSIFY(int8_t, 0x7f);
	else
#ifdef PARTS_VECTOR
		return classify16(elements, n, mantissa, classes);
#else
		CLASSIFY(loose_i16, 0x7fff);
#endif
	return largest;
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

ALWAYS_INLINE bool is_for_loops(struct parts_units units, uint8_t klass)
{
	return klass >= units.first && klass <= units.last;
}

#ifdef PARTS_VECTOR
/* Is there a vector loop? Its integers have more bits than a significand, so none reaches 2^bits.
 */
ALWAYS_INLINE bool has_vectors(trib_type type, unsigned per_word, int bits)
{
	return (type == TRIB_BF16 || (type == TRIB_F16 && VECTOR_F16)) && per_word == 4 &&
	       bits > format_of(type).mantissa;
}

/*
 * The bits of (2^23 + low) * 2^unit, where the low bits count units. A float of this size has steps
 * of one unit.
 */
ALWAYS_INLINE uint32_t steps_bits(int unit, uint32_t low)
{
	return ((uint32_t)(150 + unit) << 23) + low;
}

/*
 * The same as encode_block(), for four integers in a word. Each one is 2^15 too large until its
 * word is made. What is not below 2^(unit + bits) becomes the largest element below it: among
 * signed integers for a positive one, and among unsigned ones for a negative one.
 */
ALWAYS_INLINE void encode16(trib_type type, const loose_u16 *restrict in, size_t n, int unit,
                            int bits, loose_u16 *restrict out)
{
	const struct format format = format_of(type);
	const int most = ((unit + bits + format.bias) << format.mantissa) - 1;
	const vector highest = vector_all((uint16_t)most), halves = vector_all(0x8000);
	const vector lowest = vector_all((uint16_t)(most | 0x8000));
	const vector_f32 steps = vector_all_f32(f32_from(steps_bits(unit, 0x408000)));
	size_t i = 0;
	vector v;

	for (; i + PARTS_VECTOR <= n; i += PARTS_VECTOR) {
		v = vector_min(vector_min_signed(vector_load(in + i), highest), lowest);
		vector_store(out + i, vector_sub64(vector_encode(type, v, steps), halves));
	}
	if (i < n) {
		v = vector_load_some(in + i, (n - i) * 2);
		v = vector_min(vector_min_signed(v, highest), lowest);
		vector_store_some(out + i, vector_sub64(vector_encode(type, v, steps), halves),
		                  parts_bytes(4, n - i));
	}
}

ALWAYS_INLINE size_t encode_run16(trib_type type, int bits, struct parts_units units,
                                  const loose_u16 *in, size_t n, const uint8_t *classes,
                                  loose_u16 *out)
{
	size_t b = 0;

	for (; n >= N; n -= N, in += N, out += N, b++) {
		if (!is_for_loops(units, classes[b]))
			return b;
		encode16(type, in, N, parts_unit_of(units, classes[b]), bits, out);
	}
	if (n && is_for_loops(units, classes[b])) {
		encode16(type, in, n, parts_unit_of(units, classes[b]), bits, out);
		b++;
	}
	return b;
}
#endif

/* Loops do whole sub-blocks: the last one of a vector may be copied to here. */
struct whole_block {
	uint64_t elements[N / 2], words[N / 2];
};

ALWAYS_INLINE size_t encode_run(trib_type type, unsigned per_word, const struct parts *parts,
                                struct parts_units units, const void *elements, size_t n,
                                size_t first, const uint8_t *classes, void *words)
{
	const int bits = parts_bits(per_word, parts->workers), limit = (1 << bits) - 1;
	const size_t size = format_of(type).sign == 0x80 ? 1 : type == TRIB_F32 ? 4 : 2;
	const uint8_t *in = elements;
	uint8_t *out = words;
	size_t b = 0;

#ifdef PARTS_VECTOR
	if (has_vectors(type, per_word, bits))
		return encode_run16(type, bits, units, elements, n, classes, words);
#endif
	for (; b * N < n && is_for_loops(units, classes[b]); b++) {
		int unit = parts_unit_of(units, classes[b]);
		size_t left = n - b * N;
		struct whole_block last;
		uint8_t *to = left < N ? (uint8_t *)last.words : out;

		if (left < N) {
			memset(last.elements, 0, sizeof(last.elements));
			in = memcpy(last.elements, in, left * size);
		}
		if (per_word == 8 && parts->dither)
			encode_block(type, per_word, true, in, unit, limit,
			             parts_seed(parts, first + b), to);
		else
			encode_block(type, per_word, false, in, unit, limit, 0, to);
		if (left < N)
			memcpy(out, last.words, parts_bytes(per_word, left));
		in += N * size;
		out += N / per_word * 8;
	}
	return b;
}

static size_t encode(const struct parts *parts, const struct parts_units *units,
                     const void *elements, size_t n, size_t first, const uint8_t *classes,
                     void *words)
{
	if (parts->per_word == 4)
		return WITH_TYPE(parts->type, encode_run, 4, parts, *units, elements, n, first,
		                 classes, words);
	return WITH_TYPE(parts->type, encode_run, 8, parts, *units, elements, n, first, classes,
	                 words);
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
	uint64_t plain[N / 4] = { 0 };
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

#ifdef PARTS_VECTOR
/* The same. `unit` is that of the sum, or of the average if nothing `divides`. */
ALWAYS_INLINE void decode16(trib_type type, bool divides, const loose_u16 *restrict in, size_t n,
                            int unit, unsigned divisor, loose_u16 *restrict out)
{
	const vector above = vector_all((uint16_t)(steps_bits(unit, 0) >> 16));
	const vector_f32 base = vector_all_f32(f32_from(steps_bits(unit, 0x8000)));
	const vector_f32 workers = vector_all_f32((float)divisor);
	const vector halves = vector_all(0x8000);
	size_t i = 0;
	vector v;

	for (; i + PARTS_VECTOR <= n; i += PARTS_VECTOR) {
		v = vector_add64(vector_load(in + i), halves);
		vector_store(out + i, vector_decode(type, v, above, base, divides, workers));
	}
	if (i < n) {
		v = vector_add64(vector_load_some(in + i, parts_bytes(4, n - i)), halves);
		vector_store_some(out + i, vector_decode(type, v, above, base, divides, workers),
		                  (n - i) * 2);
	}
}

ALWAYS_INLINE size_t decode_run16(trib_type type, bool divides, struct parts_units units,
                                  const loose_u16 *in, size_t n, const uint8_t *classes,
                                  unsigned divisor, loose_u16 *out)
{
	const int less = divides ? 0 : ceil_log2(divisor);
	size_t b = 0;

	for (; n >= N; n -= N, in += N, out += N, b++) {
		if (!is_for_loops(units, classes[b]))
			return b;
		decode16(type, divides, in, N, parts_unit_of(units, classes[b]) - less, divisor,
		         out);
	}
	if (n && is_for_loops(units, classes[b])) {
		decode16(type, divides, in, n, parts_unit_of(units, classes[b]) - less, divisor,
		         out);
		b++;
	}
	return b;
}
#endif

ALWAYS_INLINE size_t decode_run(trib_type type, unsigned per_word, struct parts_units units,
                                const void *words, size_t n, const uint8_t *classes,
                                unsigned divisor, void *elements)
{
	const size_t size = format_of(type).sign == 0x80 ? 1 : type == TRIB_F32 ? 4 : 2;
	const uint8_t *in = words;
	uint8_t *out = elements;
	size_t b = 0;

#ifdef PARTS_VECTOR
	if (has_vectors(type, per_word, INT_MAX))
		return divisor & (divisor - 1) ? decode_run16(type, true, units, words, n, classes,
		                                              divisor, elements)
		                               : decode_run16(type, false, units, words, n, classes,
		                                              divisor, elements);
#endif
	for (; b * N < n && is_for_loops(units, classes[b]); b++) {
		size_t left = n - b * N;
		struct whole_block last;
		uint8_t *to = left < N ? (uint8_t *)last.elements : out;

		if (left < N) {
			memset(last.words, 0, sizeof(last.words));
			in = memcpy(last.words, in, parts_bytes(per_word, left));
		}
		decode_block(type, per_word, in, parts_unit_of(units, classes[b]), divisor, to);
		if (left < N)
			memcpy(out, last.elements, left * size);
		in += N / per_word * 8;
		out += N * size;
	}
	return b;
}

static size_t decode(const struct parts *parts, const struct parts_units *units, const void *words,
                     size_t n, const uint8_t *classes, unsigned divisor, void *elements)
{
	if (parts->per_word == 4)
		return WITH_TYPE(parts->type, decode_run, 4, *units, words, n, classes, divisor,
		                 elements);
	return WITH_TYPE(parts->type, decode_run, 8, *units, words, n, classes, divisor, elements);
}

const struct parts_loops PARTS_LOOPS = { classify, encode, decode };
