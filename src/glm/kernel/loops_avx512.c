/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops for AVX-512 with VBMI, GFNI and VNNI (Ice Lake, Zen 4 and newer).
 *
 * Weaved rows: a byte permutation collects byte i of every plane in a 64-bit word, highest bit
 * first. GF2P8AFFINEQB then transposes the word as a matrix of bits, and byte k of the result is
 * the code of column 16*k + i. So two registers hold the codes of a group, ordered by i first, then
 * by k. Limbs have the same order.
 */
#include "glm/kernel/glm_loops.h"

#ifdef GLM_LOOPS_AVX512

#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

static bool usable(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni") &&
	       __builtin_cpu_supports("gfni");
}

/* Float. A term is an i32: its upper and lower 16 bits are summed apart, so that a sum of 65536
 * terms fits in 32 bits. */
struct sum {
	__m512i high, low;
};

INLINE __m512i terms_round(__m512 product, __m512i *saturations)
{
	const __m512 limit = _mm512_set1_ps(GLM_TERM_MAX);
	/* The second operand wins over NaN. */
	__m512 clamped = _mm512_max_ps(product, _mm512_set1_ps(-GLM_TERM_MAX));

	clamped = _mm512_min_ps(clamped, limit);
	*saturations = _mm512_mask_add_epi32(*saturations,
	                                     _mm512_cmp_ps_mask(clamped, product, _CMP_NEQ_UQ),
	                                     *saturations, _mm512_set1_epi32(1));
	return _mm512_cvtps_epi32(clamped);
}

INLINE void sum_add(struct sum *sum, __m512i terms)
{
	sum->high = _mm512_add_epi32(sum->high, _mm512_srai_epi32(terms, 16));
	sum->low = _mm512_add_epi32(sum->low, _mm512_and_si512(terms, _mm512_set1_epi32(0xffff)));
}

INLINE int64_t sum_signed(__m512i lanes)
{
	return _mm512_reduce_add_epi64(
		_mm512_add_epi64(_mm512_cvtepi32_epi64(_mm512_castsi512_si256(lanes)),
	                         _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(lanes, 1))));
}

INLINE int64_t sum_unsigned(__m512i lanes)
{
	return _mm512_reduce_add_epi64(
		_mm512_add_epi64(_mm512_cvtepu32_epi64(_mm512_castsi512_si256(lanes)),
	                         _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(lanes, 1))));
}

INLINE __mmask16 tail_mask(uint32_t left)
{
	return left >= 16 ? 0xffff : (__mmask16)((1u << left) - 1);
}

/* `columns` is at most 65536 * 16, as glm_kernel.c cuts them. */
INLINE uint64_t forward_rows(const float *const *rows, const uint32_t n, const uintptr_t *next,
                             const float *x, uint32_t columns, int64_t *activation)
{
	const __m512 unit = _mm512_set1_ps((float)(1 << GLM_ACTIVATION_BITS));
	__m512i saturations = _mm512_setzero_si512();
	struct sum sums[4];

	for (uint32_t k = 0; k < n; k++)
		sums[k].high = sums[k].low = _mm512_setzero_si512();
	for (uint32_t j = 0; j < columns; j += 16) {
		__mmask16 mask = tail_mask(columns - j);
		__m512 weight = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + j), unit);

#pragma GCC unroll 4
		for (uint32_t k = 0; k < n; k++) {
			__m512 product =
				_mm512_mul_ps(_mm512_maskz_loadu_ps(mask, rows[k] + j), weight);

			fetch(next[k] + (size_t)j * sizeof(float));
			sum_add(&sums[k], terms_round(product, &saturations));
		}
	}
	for (uint32_t k = 0; k < n; k++)
		activation[k] += sum_signed(sums[k].high) * 65536 + sum_unsigned(sums[k].low);
	return (uint64_t)sum_unsigned(saturations);
}

/* g += low + high * 65536, eight columns. */
INLINE void eight_add(int64_t *g, __mmask8 mask, __m256i high, __m256i low)
{
	__m512i sum = _mm512_add_epi64(_mm512_slli_epi64(_mm512_cvtepi32_epi64(high), 16),
	                               _mm512_cvtepi32_epi64(low));

	sum = _mm512_add_epi64(sum, _mm512_maskz_loadu_epi64(mask, g));
	_mm512_mask_storeu_epi64(g, mask, sum);
}

INLINE void gradient_add(int64_t *g, __mmask16 mask, __m512i high, __m512i low)
{
	eight_add(g, (__mmask8)mask, _mm512_castsi512_si256(high), _mm512_castsi512_si256(low));
	eight_add(g + 8, (__mmask8)(mask >> 8), _mm512_extracti64x4_epi64(high, 1),
	          _mm512_extracti64x4_epi64(low, 1));
}

static uint64_t dense_backward(const float *const *rows, uint32_t n, const float *scale,
                               uint32_t columns, int64_t *g)
{
	__m512i saturations = _mm512_setzero_si512();
	float units[GLM_PASS];

	for (uint32_t k = 0; k < n; k++)
		units[k] = backward_scale(scale[k]);
	for (uint32_t j = 0; j < columns; j += 16) {
		__mmask16 mask = tail_mask(columns - j);
		struct sum sum = { _mm512_setzero_si512(), _mm512_setzero_si512() };

		for (uint32_t k = 0; k < n; k++) {
			__m512 product = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, rows[k] + j),
			                               _mm512_set1_ps(units[k]));

			fetch((uintptr_t)(rows[k] + j) + GLM_AHEAD);
			sum_add(&sum, terms_round(product, &saturations));
		}
		gradient_add(g + j, mask, sum.high, sum.low);
	}
	return (uint64_t)sum_unsigned(saturations);
}

/* Rows are short: what is done once a row counts more here than what is done once a term. So terms
 * become 64 bits at once, and there is one sum to reduce. */
static uint64_t sparse_forward(const uint32_t *column, const float *value, uint64_t n,
                               const float *x, int64_t *activation)
{
	const __m512 unit = _mm512_set1_ps((float)(1 << GLM_ACTIVATION_BITS));
	const __m512 limit = _mm512_set1_ps(GLM_TERM_MAX), least = _mm512_set1_ps(-GLM_TERM_MAX);
	__m512i sum = _mm512_setzero_si512();
	uint64_t saturations = 0;

	for (uint64_t i = 0; i < n; i += 16) {
		__mmask16 mask = tail_mask(n - i < 16 ? (uint32_t)(n - i) : 16);
		__m512i places = _mm512_maskz_loadu_epi32(mask, column + i), terms;
		__m512 weight = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, places, x,
		                                         sizeof(float));
		__m512 product = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, value + i),
		                               _mm512_mul_ps(weight, unit));
		/* The second operand wins over NaN. */
		__m512 clamped = _mm512_min_ps(_mm512_max_ps(product, least), limit);

		saturations += (uint64_t)__builtin_popcount(
			_mm512_cmp_ps_mask(clamped, product, _CMP_NEQ_UQ));
		terms = _mm512_cvtps_epi32(clamped);
		sum = _mm512_add_epi64(sum, _mm512_cvtepi32_epi64(_mm512_castsi512_si256(terms)));
		sum = _mm512_add_epi64(sum,
		                       _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(terms, 1)));
	}
	*activation += _mm512_reduce_add_epi64(sum);
	return saturations;
}

static uint64_t sparse_backward(const uint32_t *column, const float *value, uint64_t n, float scale,
                                int64_t *g)
{
	const __m512 unit = _mm512_set1_ps(backward_scale(scale));
	__m512i saturations = _mm512_setzero_si512();

	for (uint64_t i = 0; i < n; i += 16) {
		uint32_t now = n - i < 16 ? (uint32_t)(n - i) : 16;
		int32_t terms[16];

		_mm512_storeu_si512(
			terms,
			terms_round(_mm512_mul_ps(_mm512_maskz_loadu_ps(tail_mask(now), value + i),
		                                  unit),
		                    &saturations));
		/* Columns of a row differ, but a row may be cut into several calls. */
		for (uint32_t e = 0; e < now; e++)
			g[column[i + e]] += terms[e];
	}
	return (uint64_t)sum_unsigned(saturations);
}

/* The planes of a group, `bits` * 16 bytes, as two words of half a group: words i = 0 to 7 and 8 to
 * 15, each with one byte a plane; the highest bit is in the lowest byte that is used. */
struct picker {
	__m512i half[2];           /* which byte of the planes stands where */
	__mmask64 used;            /* bytes of a word that hold a plane */
	__mmask64 load, load_more; /* bytes of the group in two registers */
	uint32_t bits;
};

static struct picker picker_make(uint32_t bits)
{
	struct picker picker = { .used = 0, .bits = bits };
	uint8_t places[2][64];

	for (uint32_t h = 0; h < 2; h++) {
		for (uint32_t i = 0; i < 64; i++) {
			uint32_t word = i / 8, plane = i % 8 - (8 - bits);

			places[h][i] = 0;
			if (i % 8 < 8 - bits)
				continue;
			places[h][i] = (uint8_t)(plane * GLM_PLANE + h * 8 + word);
			picker.used |= 1ull << i;
		}
		picker.half[h] = _mm512_loadu_si512(places[h]);
	}
	picker.load = bits >= 4 ? ~0ull : (1ull << bits * 16) - 1;
	picker.load_more = bits <= 4 ? 0 : bits == 8 ? ~0ull : (1ull << (bits - 4) * 16) - 1;
	return picker;
}

/* Half a group: 64 codes. `wide`: more than four bits. */
INLINE __m512i codes_of(const struct picker *picker, const bool wide, const uint8_t *group,
                        const uint32_t half)
{
	const __m512i unit = _mm512_set1_epi64((int64_t)0x8040201008040201ull);
	__m512i planes = _mm512_maskz_loadu_epi8(picker->load, group), words;

	if (wide) {
		__m512i more = _mm512_maskz_loadu_epi8(picker->load_more, group + 64);

		words = _mm512_maskz_permutex2var_epi8(picker->used, planes, picker->half[half],
		                                       more);
	} else {
		words = _mm512_maskz_permutexvar_epi8(picker->used, picker->half[half], planes);
	}
	return _mm512_gf2p8affine_epi64_epi8(unit, words, 0);
}

/* A group: 128 lowest bytes in the order of codes, and so on. */
INLINE void group_limbs(int8_t *to, const int32_t *u, uint32_t columns)
{
	/* The four bytes of 16 weights: each kind together. */
	const __m512i kinds = _mm512_setr_epi32(0x0c080400, 0x1c181410, 0x2c282420, 0x3c383430,
	                                        0x0d090501, 0x1d191511, 0x2d292521, 0x3d393531,
	                                        0x0e0a0602, 0x1e1a1612, 0x2e2a2622, 0x3e3a3632,
	                                        0x0f0b0703, 0x1f1b1713, 0x2f2b2723, 0x3f3b3733);
	/* Byte 8*w + k comes from column 16*k + w; the second half has w from 8 on. */
	const __m512i order =
		_mm512_add_epi8(_mm512_set1_epi64(0x7060504030201000),
	                        _mm512_mullo_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
	                                           _mm512_set1_epi64(0x0101010101010101)));
	const __m512i carry = _mm512_set1_epi32(0x808080);
	uint8_t bytes[GLM_LIMBS][GLM_GROUP];

#pragma GCC unroll 8
	for (uint32_t k = 0; k < 8; k++) {
		uint32_t left = columns > 16 * k ? columns - 16 * k : 0;
		__m512i weights = _mm512_maskz_loadu_epi32(tail_mask(left), u + (size_t)16 * k);
		__m512i digits = _mm512_xor_si512(_mm512_add_epi32(weights, carry), carry);

		digits = _mm512_permutexvar_epi8(kinds, digits);
		_mm_storeu_si128((__m128i *)&bytes[0][16 * k], _mm512_castsi512_si128(digits));
		_mm_storeu_si128((__m128i *)&bytes[1][16 * k],
		                 _mm512_extracti32x4_epi32(digits, 1));
		_mm_storeu_si128((__m128i *)&bytes[2][16 * k],
		                 _mm512_extracti32x4_epi32(digits, 2));
		_mm_storeu_si128((__m128i *)&bytes[3][16 * k],
		                 _mm512_extracti32x4_epi32(digits, 3));
	}
	for (uint32_t l = 0; l < GLM_LIMBS; l++, to += GLM_GROUP) {
		__m512i first = _mm512_loadu_si512(bytes[l]),
			second = _mm512_loadu_si512(bytes[l] + 64);

		_mm512_storeu_si512(to, _mm512_permutex2var_epi8(first, order, second));
		_mm512_storeu_si512(
			to + 64,
			_mm512_permutex2var_epi8(first, _mm512_add_epi8(order, _mm512_set1_epi8(8)),
		                                 second));
	}
}

static void limbs(int8_t *to, const int32_t *u, uint32_t columns, uint32_t bits)
{
	(void)bits;
	for (uint32_t j = 0; j < columns; j += GLM_GROUP, to += (size_t)GLM_LIMBS * GLM_GROUP)
		group_limbs(to, u + j, columns - j);
}

/* n is 4 or 1. Each limb's sum of 4096 columns is below 2^31. */
INLINE void forward_groups(const struct picker *picker, const bool wide, const uint8_t *const *rows,
                           const uint32_t n, const uintptr_t *next, const int8_t *weights,
                           uint32_t groups, int64_t *activation)
{
	const size_t step = (size_t)picker->bits * GLM_PLANE;
	__m512i sums[4][4];

	for (uint32_t k = 0; k < n; k++)
		for (uint32_t l = 0; l < 4; l++)
			sums[k][l] = _mm512_setzero_si512();
	for (uint32_t b = 0; b < groups; b++, weights += (size_t)GLM_LIMBS * GLM_GROUP) {
		for (uint32_t k = 0; k < n; k++) {
			fetch(next[k] + b * step);
			if (wide)
				fetch(next[k] + b * step + 64);
		}
#pragma GCC unroll 2
		for (uint32_t half = 0; half < 2; half++) {
			__m512i codes[4];

#pragma GCC unroll 4
			for (uint32_t k = 0; k < n; k++)
				codes[k] = codes_of(picker, wide, rows[k] + b * step, half);
#pragma GCC unroll 4
			for (uint32_t l = 0; l < 4; l++) {
				__m512i limb =
					_mm512_loadu_si512(weights + l * GLM_GROUP + half * 64);

#pragma GCC unroll 4
				for (uint32_t k = 0; k < n; k++)
					sums[k][l] =
						_mm512_dpbusd_epi32(sums[k][l], codes[k], limb);
			}
		}
	}
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t l = 0; l < 4; l++)
			activation[k] += sum_signed(sums[k][l]) * (1ll << 8 * l);
}

INLINE void forward_pass(const struct picker *picker, const bool wide, const uint8_t *const *rows,
                         uint32_t n, const int8_t *weights, uint32_t groups, int64_t *activation)
{
	const size_t bytes = (size_t)groups * picker->bits * GLM_PLANE;
	uint32_t k = 0, width = 4;

	for (; k < n; k += width) {
		uintptr_t next[4];

		width = n - k >= 4 ? 4 : 1;
		rows_after((const void *const *)rows, n, k, width, bytes, next);
		if (width == 4)
			forward_groups(picker, wide, rows + k, 4, next, weights, groups,
			               activation + k);
		else
			forward_groups(picker, wide, rows + k, 1, next, weights, groups,
			               activation + k);
	}
}

static void weave_forward(const uint8_t *const *rows, uint32_t n, uint32_t bits,
                          const int8_t *weights, const int32_t *u, uint32_t columns,
                          int64_t *activation)
{
	struct picker picker = picker_make(bits);

	(void)u;
	if (bits > 4)
		forward_pass(&picker, true, rows, n, weights, weave_groups(columns), activation);
	else
		forward_pass(&picker, false, rows, n, weights, weave_groups(columns), activation);
}

/* Sums of both halves of a group, in the order that unpacking four rows leaves: sums[half][v] has
 * v = 2 * (i is odd) + (k >= 4), and each 128 bits have one i and four k. The results are those
 * four k (the upper ones if `upper_k`), each with the 16 columns 16*k + i in order. */
INLINE void sums_order(__m512i sums[2][4], const uint32_t upper_k, __m512i out[4])
{
	const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
	const __m512i odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);

	for (uint32_t pair = 0; pair < 2; pair++) {
		__m512i first =
			pair ? _mm512_unpackhi_epi32(sums[0][upper_k], sums[0][2 + upper_k])
			     : _mm512_unpacklo_epi32(sums[0][upper_k], sums[0][2 + upper_k]);
		__m512i second =
			pair ? _mm512_unpackhi_epi32(sums[1][upper_k], sums[1][2 + upper_k])
			     : _mm512_unpacklo_epi32(sums[1][upper_k], sums[1][2 + upper_k]);

		out[pair * 2] = _mm512_permutex2var_epi64(first, even, second);
		out[pair * 2 + 1] = _mm512_permutex2var_epi64(first, odd, second);
	}
}

/* Four rows of scales a word, for each limb. Rows that lack have the scale 0. */
struct scales {
	uint32_t limb[3][GLM_PASS / 4];
};

static struct scales scales_make(const int32_t *scale, uint32_t n)
{
	struct scales scales;

	memset(&scales, 0, sizeof(scales));
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t l = 0; l < 3; l++)
			scales.limb[l][k / 4] |= (limbs_of(scale[k]) >> 8 * l & 0xff)
			                         << 8 * (k % 4);
	return scales;
}

INLINE void backward_group(const struct picker *picker, const bool wide, const uint8_t *const *rows,
                           uint32_t quads, const struct scales *scales, size_t at, int64_t *g)
{
	__m512i low[2][4], top[2][4]; /* half, v: the two lower limbs, the highest limb */

#pragma GCC unroll 2
	for (uint32_t half = 0; half < 2; half++) {
		__m512i sums[3][4];

		for (uint32_t l = 0; l < 3; l++)
			for (uint32_t v = 0; v < 4; v++)
				sums[l][v] = _mm512_setzero_si512();
		for (uint32_t q = 0; q < quads; q++) {
			const uint8_t *const *r = rows + (size_t)q * 4;
			__m512i a = codes_of(picker, wide, r[0] + at, half);
			__m512i b = codes_of(picker, wide, r[1] + at, half);
			__m512i c = codes_of(picker, wide, r[2] + at, half);
			__m512i d = codes_of(picker, wide, r[3] + at, half);
			__m512i ab = _mm512_unpacklo_epi8(a, b), cd = _mm512_unpacklo_epi8(c, d);
			__m512i ab_odd = _mm512_unpackhi_epi8(a, b),
				cd_odd = _mm512_unpackhi_epi8(c, d);
			__m512i four[4] = { _mm512_unpacklo_epi16(ab, cd),
				            _mm512_unpackhi_epi16(ab, cd),
				            _mm512_unpacklo_epi16(ab_odd, cd_odd),
				            _mm512_unpackhi_epi16(ab_odd, cd_odd) };

#pragma GCC unroll 3
			for (uint32_t l = 0; l < 3; l++) {
				__m512i limb = _mm512_set1_epi32((int32_t)scales->limb[l][q]);

#pragma GCC unroll 4
				for (uint32_t v = 0; v < 4; v++)
					sums[l][v] = _mm512_dpbusd_epi32(sums[l][v], four[v], limb);
			}
		}
#pragma GCC unroll 4
		for (uint32_t v = 0; v < 4; v++) {
			low[half][v] =
				_mm512_add_epi32(sums[0][v], _mm512_slli_epi32(sums[1][v], 8));
			top[half][v] = sums[2][v];
		}
	}
#pragma GCC unroll 2
	for (uint32_t upper = 0; upper < 2; upper++) {
		__m512i lows[4], tops[4];

		sums_order(low, upper, lows);
		sums_order(top, upper, tops);
#pragma GCC unroll 4
		for (uint32_t k = 0; k < 4; k++)
			gradient_add(g + (size_t)(upper * 4 + k) * 16, 0xffff, tops[k], lows[k]);
	}
}

static void weave_backward(const uint8_t *const *rows, uint32_t n, uint32_t bits,
                           const int32_t *scale, uint32_t groups, int64_t *g)
{
	const struct picker picker = picker_make(bits);
	const struct scales scales = scales_make(scale, n);
	const size_t step = (size_t)bits * GLM_PLANE;
	const uint32_t quads = (n + 3) / 4;
	const uint8_t *all[GLM_PASS];

	for (uint32_t k = 0; k < quads * 4; k++)
		all[k] = rows[k < n ? k : 0];
	for (uint32_t b = 0; b < groups; b++, g += GLM_GROUP) {
		for (uint32_t k = 0; k < n; k++) {
			fetch((uintptr_t)rows[k] + b * step + GLM_AHEAD);
			if (bits > 4)
				fetch((uintptr_t)rows[k] + b * step + GLM_AHEAD + 64);
		}
		if (bits > 4)
			backward_group(&picker, true, all, quads, &scales, b * step, g);
		else
			backward_group(&picker, false, all, quads, &scales, b * step, g);
	}
}

#include "glm/kernel/loops_outer.h"
LOOPS_TABLE(glm_loops_avx512, "avx512");

#endif
