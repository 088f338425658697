/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops for AVX2. Codes of more than 4 bits are multiplied as 16-bit integers: weights and
 * scales are two signed digits of 16 bits each, and VPMADDWD adds pairs of products to 32 bits.
 * few_bits_avx2.h has a faster way for the others.
 */
#include "glm/kernel/glm_loops.h"

#ifdef GLM_LOOPS_AVX2

#include <immintrin.h>
#include <string.h>

#define CODES_BYTES 32
#include "glm/kernel/codes_unpack.h"

#define INLINE static inline __attribute__((always_inline))

static bool usable(void)
{
	return __builtin_cpu_supports("avx2");
}

/* Float. A term is an i32: its upper and lower 16 bits are summed apart, so that a sum of 65536
 * terms fits in 32 bits. */
struct sum {
	__m256i high, low;
};

INLINE __m256i terms_round(__m256 product, __m256i *saturations)
{
	/* The second operand wins over NaN. */
	__m256 clamped = _mm256_max_ps(product, _mm256_set1_ps(-GLM_TERM_MAX));

	clamped = _mm256_min_ps(clamped, _mm256_set1_ps(GLM_TERM_MAX));
	*saturations = _mm256_sub_epi32(
		*saturations, _mm256_castps_si256(_mm256_cmp_ps(clamped, product, _CMP_NEQ_UQ)));
	return _mm256_cvtps_epi32(clamped);
}

INLINE void sum_add(struct sum *sum, __m256i terms)
{
	sum->high = _mm256_add_epi32(sum->high, _mm256_srai_epi32(terms, 16));
	sum->low = _mm256_add_epi32(sum->low, _mm256_and_si256(terms, _mm256_set1_epi32(0xffff)));
}

INLINE int64_t lanes_sum(__m256i quads)
{
	int64_t lanes[4];

	_mm256_storeu_si256((__m256i *)lanes, quads);
	return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

INLINE int64_t sum_signed(__m256i lanes)
{
	return lanes_sum(
		_mm256_add_epi64(_mm256_cvtepi32_epi64(_mm256_castsi256_si128(lanes)),
	                         _mm256_cvtepi32_epi64(_mm256_extracti128_si256(lanes, 1))));
}

INLINE int64_t sum_unsigned(__m256i lanes)
{
	return lanes_sum(
		_mm256_add_epi64(_mm256_cvtepu32_epi64(_mm256_castsi256_si128(lanes)),
	                         _mm256_cvtepu32_epi64(_mm256_extracti128_si256(lanes, 1))));
}

INLINE uint64_t forward_rows(const float *const *rows, const uint32_t n, const uintptr_t *next,
                             const float *x, uint32_t columns, int64_t *activation)
{
	const __m256 unit = _mm256_set1_ps((float)(1 << GLM_ACTIVATION_BITS));
	__m256i saturations = _mm256_setzero_si256();
	uint64_t more = 0;
	struct sum sums[4];
	uint32_t j = 0;

	for (uint32_t k = 0; k < n; k++)
		sums[k].high = sums[k].low = _mm256_setzero_si256();
	for (; j + 8 <= columns; j += 8) {
		__m256 weight = _mm256_mul_ps(_mm256_loadu_ps(x + j), unit);

#pragma GCC unroll 4
		for (uint32_t k = 0; k < n; k++) {
			fetch(next[k] + (size_t)j * sizeof(float));
			sum_add(&sums[k],
			        terms_round(_mm256_mul_ps(_mm256_loadu_ps(rows[k] + j), weight),
			                    &saturations));
		}
	}
	for (uint32_t k = 0; k < n; k++) {
		activation[k] += sum_signed(sums[k].high) * 65536 + sum_unsigned(sums[k].low);
		for (uint32_t i = j; i < columns; i++)
			activation[k] += term_round(rows[k][i] * forward_weight(x[i]), &more);
	}
	return more + (uint64_t)sum_unsigned(saturations);
}

/* g += low + high * 65536, four columns. */
INLINE void gradient_add(int64_t *g, __m128i high, __m128i low)
{
	__m256i sum = _mm256_add_epi64(_mm256_slli_epi64(_mm256_cvtepi32_epi64(high), 16),
	                               _mm256_cvtepi32_epi64(low));

	sum = _mm256_add_epi64(sum, _mm256_loadu_si256((const __m256i *)g));
	_mm256_storeu_si256((__m256i *)g, sum);
}

static uint64_t dense_backward(const float *const *rows, uint32_t n, const float *scale,
                               uint32_t columns, int64_t *g)
{
	__m256i saturations = _mm256_setzero_si256();
	float units[GLM_PASS];
	uint64_t more = 0;
	uint32_t j = 0;

	for (uint32_t k = 0; k < n; k++)
		units[k] = backward_scale(scale[k]);
	for (; j + 8 <= columns; j += 8) {
		struct sum sum = { _mm256_setzero_si256(), _mm256_setzero_si256() };

		for (uint32_t k = 0; k < n; k++) {
			__m256 product = _mm256_mul_ps(_mm256_loadu_ps(rows[k] + j),
			                               _mm256_set1_ps(units[k]));

			fetch((uintptr_t)(rows[k] + j) + GLM_AHEAD);
			sum_add(&sum, terms_round(product, &saturations));
		}
		gradient_add(g + j, _mm256_castsi256_si128(sum.high),
		             _mm256_castsi256_si128(sum.low));
		gradient_add(g + j + 4, _mm256_extracti128_si256(sum.high, 1),
		             _mm256_extracti128_si256(sum.low, 1));
	}
	for (; j < columns; j++)
		for (uint32_t k = 0; k < n; k++)
			g[j] += term_round(rows[k][j] * units[k], &more);
	return more + (uint64_t)sum_unsigned(saturations);
}

static uint64_t sparse_forward(const uint32_t *column, const float *value, uint64_t n,
                               const float *x, int64_t *activation)
{
	const __m256 unit = _mm256_set1_ps((float)(1 << GLM_ACTIVATION_BITS));
	__m256i saturations = _mm256_setzero_si256();
	uint64_t more = 0, i = 0;

	while (n - i >= 8) {
		uint64_t end = n - i < 1u << 16 ? i + (n - i) / 8 * 8 : i + (1u << 16);
		struct sum sum = { _mm256_setzero_si256(), _mm256_setzero_si256() };

		for (; i < end; i += 8) {
			__m256i places = _mm256_loadu_si256((const __m256i *)(column + i));
			__m256 weight = _mm256_i32gather_ps(x, places, sizeof(float));

			sum_add(&sum, terms_round(_mm256_mul_ps(_mm256_loadu_ps(value + i),
			                                        _mm256_mul_ps(weight, unit)),
			                          &saturations));
		}
		*activation += sum_signed(sum.high) * 65536 + sum_unsigned(sum.low);
	}
	for (; i < n; i++)
		*activation += term_round(value[i] * forward_weight(x[column[i]]), &more);
	return more + (uint64_t)sum_unsigned(saturations);
}

static uint64_t sparse_backward(const uint32_t *column, const float *value, uint64_t n, float scale,
                                int64_t *g)
{
	const float unit = backward_scale(scale);
	__m256i saturations = _mm256_setzero_si256();
	uint64_t more = 0, i = 0;

	for (; i + 8 <= n; i += 8) {
		int32_t terms[8];

		_mm256_storeu_si256(
			(__m256i *)terms,
			terms_round(_mm256_mul_ps(_mm256_loadu_ps(value + i), _mm256_set1_ps(unit)),
		                    &saturations));
		for (uint32_t e = 0; e < 8; e++)
			g[column[i + e]] += terms[e];
	}
	for (; i < n; i++)
		g[column[i]] += term_round(value[i] * unit, &more);
	return more + (uint64_t)sum_unsigned(saturations);
}

/* The signed digits of a value: low + high * 65536. */
INLINE int16_t digit_low(int32_t value)
{
	return (int16_t)(uint16_t)value;
}

INLINE int16_t digit_high(int32_t value)
{
	return (int16_t)((value - digit_low(value)) / 65536);
}

/* A group: 128 low digits, then 128 high digits. */
static void digits_fill(int8_t *to, const int32_t *u, uint32_t columns)
{
	for (uint32_t j = 0; j < columns; j += GLM_GROUP, to += (size_t)GLM_LIMBS * GLM_GROUP) {
		uint32_t now = columns - j < GLM_GROUP ? columns - j : GLM_GROUP;
		int16_t digits[2][GLM_GROUP] = { { 0 } };

		for (uint32_t i = 0; i < now; i++) {
			digits[0][i] = digit_low(u[j + i]);
			digits[1][i] = digit_high(u[j + i]);
		}
		memcpy(to, digits, sizeof(digits));
	}
}

INLINE codes_u8 planes_load(const uint8_t *first, const uint8_t *second)
{
	return (codes_u8)_mm256_inserti128_si256(
		_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)first)),
		_mm_loadu_si128((const __m128i *)second), 1);
}

/* The codes of two groups, or of a group of two rows: one in each half of a vector. */
INLINE void codes_load(const uint8_t *first, const uint8_t *second, const uint32_t bits,
                       codes_u8 out[8])
{
	codes_u8 planes[8];

	for (uint32_t p = 0; p < bits; p++)
		planes[p] =
			planes_load(first + (size_t)p * GLM_PLANE, second + (size_t)p * GLM_PLANE);
	codes_unpack(planes, bits, out);
}

#define FLUSH 7u /* groups: 16 additions each of up to 2^24 - 2^16 fit in 31 bits */

INLINE __m256i weights_load(const int8_t *digits)
{
	return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)digits));
}

INLINE void two_widen(__m256i sum, int64_t *first, int64_t *second, int64_t unit)
{
	int32_t lanes[8];

	_mm256_storeu_si256((__m256i *)lanes, sum);
	for (uint32_t i = 0; i < 4; i++) {
		*first += lanes[i] * unit;
		*second += lanes[4 + i] * unit;
	}
}

#include "glm/kernel/few_bits_avx2.h"

static void limbs(int8_t *to, const int32_t *u, uint32_t columns, uint32_t bits)
{
	if (bits <= FEW_BITS)
		few_bits_limbs(to, u, columns);
	else
		digits_fill(to, u, columns);
}

/* Two rows, each in its half of the vectors. */
INLINE void forward_two(const uint8_t *first, const uint8_t *second, uintptr_t next[2],
                        const uint32_t bits, const int8_t *weights, uint32_t groups,
                        int64_t *of_first, int64_t *of_second)
{
	const __m256i zero = _mm256_setzero_si256();
	const size_t step = (size_t)bits * GLM_PLANE, high = 2u * GLM_GROUP;

	while (groups) {
		__m256i sum[2] = { zero, zero };
		uint32_t run = groups < FLUSH ? groups : FLUSH;

		groups -= run;
		for (; run; run--, first += step, second += step) {
			codes_u8 codes[8];

			for (uint32_t k = 0; k < 2; k++, next[k - 1] += step) {
				fetch(next[k]);
				fetch(next[k] + 64);
			}
			codes_load(first, second, bits, codes);
#pragma GCC unroll 8
			for (uint32_t k = 0; k < 8; k++) {
				__m256i low_half = _mm256_unpacklo_epi8((__m256i)codes[k], zero);
				__m256i high_half = _mm256_unpackhi_epi8((__m256i)codes[k], zero);
				const int8_t *at = weights + (size_t)k * 32;

#pragma GCC unroll 2
				for (uint32_t d = 0; d < 2; d++, at += high) {
					__m256i a = _mm256_madd_epi16(low_half, weights_load(at));
					__m256i b =
						_mm256_madd_epi16(high_half, weights_load(at + 16));

					sum[d] = _mm256_add_epi32(sum[d], _mm256_add_epi32(a, b));
				}
			}
			weights += (size_t)GLM_LIMBS * GLM_GROUP;
		}
		two_widen(sum[0], of_first, of_second, 1);
		two_widen(sum[1], of_first, of_second, 65536);
	}
}

INLINE void forward_all(const uint8_t *const *rows, uint32_t n, const uint32_t bits,
                        const int8_t *weights, uint32_t groups, int64_t *activation)
{
	const size_t bytes = (size_t)groups * bits * GLM_PLANE;

	if (bits <= FEW_BITS) {
		few_bits_forward(rows, n, bits, weights, groups, activation);
		return;
	}
	for (uint32_t k = 0; k < n; k += 2) {
		bool two = k + 1 < n;
		int64_t unused = 0;
		uintptr_t next[2];

		rows_after((const void *const *)rows, n, k, 2, bytes, next);
		forward_two(rows[k], rows[two ? k + 1 : k], next, bits, weights, groups,
		            &activation[k], two ? &activation[k + 1] : &unused);
	}
}

static void weave_forward(const uint8_t *const *rows, uint32_t n, uint32_t bits,
                          const int8_t *weights, const int32_t *u, uint32_t columns,
                          int64_t *activation)
{
	(void)u;
#define WORK(b) forward_all(rows, n, b, weights, weave_groups(columns), activation)
	CODES_FOR_BITS(bits, WORK)
#undef WORK
}

/* Digits of the scales of two rows, as one 32-bit word. */
struct scales {
	int32_t low[GLM_PASS / 2], high[GLM_PASS / 2];
};

INLINE int32_t pair_of(int16_t first, int16_t second)
{
	return (int32_t)((uint32_t)(uint16_t)first | (uint32_t)(uint16_t)second << 16);
}

static struct scales scales_make(const int32_t *scale, uint32_t n)
{
	struct scales scales;

	memset(&scales, 0, sizeof(scales));
	for (uint32_t k = 0; k < n; k += 2) {
		int32_t second = k + 1 < n ? scale[k + 1] : 0;

		scales.low[k / 2] = pair_of(digit_low(scale[k]), digit_low(second));
		scales.high[k / 2] = pair_of(digit_high(scale[k]), digit_high(second));
	}
	return scales;
}

/* A block of 16 columns of two groups. `to_second` is NULL if there is one group only. */
INLINE void block_backward(codes_u8 (*codes)[8], uint32_t k, uint32_t pairs,
                           const struct scales *scales, int64_t *to_first, int64_t *to_second)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i low[4] = { zero, zero, zero, zero }, high[4] = { zero, zero, zero, zero };

	for (uint32_t p = 0; p < pairs; p++) {
		__m256i a = (__m256i)codes[(size_t)p * 2][k],
			b = (__m256i)codes[(size_t)p * 2 + 1][k];
		__m256i first = _mm256_unpacklo_epi8(a, b), second = _mm256_unpackhi_epi8(a, b);
		__m256i four[4] = { _mm256_unpacklo_epi8(first, zero),
			            _mm256_unpackhi_epi8(first, zero),
			            _mm256_unpacklo_epi8(second, zero),
			            _mm256_unpackhi_epi8(second, zero) };
		__m256i of_low = _mm256_set1_epi32(scales->low[p]);
		__m256i of_high = _mm256_set1_epi32(scales->high[p]);

#pragma GCC unroll 4
		for (uint32_t q = 0; q < 4; q++) {
			low[q] = _mm256_add_epi32(low[q], _mm256_madd_epi16(four[q], of_low));
			high[q] = _mm256_add_epi32(high[q], _mm256_madd_epi16(four[q], of_high));
		}
	}
#pragma GCC unroll 4
	for (uint32_t q = 0; q < 4; q++) {
		gradient_add(to_first + (size_t)q * 4, _mm256_castsi256_si128(high[q]),
		             _mm256_castsi256_si128(low[q]));
		if (to_second)
			gradient_add(to_second + (size_t)q * 4,
			             _mm256_extracti128_si256(high[q], 1),
			             _mm256_extracti128_si256(low[q], 1));
	}
}

INLINE void backward_all(const uint8_t *const *rows, uint32_t n, const uint32_t bits,
                         const int32_t *scale, uint32_t groups, int64_t *g)
{
	struct scales scales;
	const size_t step = (size_t)bits * GLM_PLANE;
	codes_u8 codes[GLM_PASS][8];

	if (bits <= FEW_BITS) {
		few_bits_backward(rows, n, bits, scale, groups, g);
		return;
	}
	scales = scales_make(scale, n);
	memset(codes, 0, sizeof(codes));
	for (uint32_t b = 0; b < groups; b += 2, g += (size_t)2 * GLM_GROUP) {
		bool two = b + 1 < groups;

		for (uint32_t k = 0; k < n; k++) {
			for (size_t line = 0; line < 2 * step; line += 64)
				fetch((uintptr_t)rows[k] + b * step + GLM_AHEAD + line);
			codes_load(rows[k] + b * step, rows[k] + (two ? b + 1 : b) * step, bits,
			           codes[k]);
		}
		for (uint32_t k = 0; k < 8; k++)
			block_backward(codes, k, (n + 1) / 2, &scales, g + (size_t)k * 16,
			               two ? g + GLM_GROUP + (size_t)k * 16 : NULL);
	}
}

#include "glm/kernel/loops_outer.h"
LOOPS_TABLE(glm_loops_avx2, "avx2");

#endif
