/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside loops_avx2.c only: codes of up to 4 bits. Weights and scales are signed bytes, and
 * VPMADDUBSW adds two products to 16 bits. A product is at most 15 * 128, so eight of these sums
 * fit:
 *
 *   forward    a group is eight blocks of 16 columns; its sum then goes to 32 bits
 *   backward   a pass is eight pairs of rows; its sum goes to 32 bits once
 *
 * The higher bytes of weights and scales are often all 0. They are left out then.
 */
#ifndef TRIB_GLM_FEW_BITS_AVX2_H
#define TRIB_GLM_FEW_BITS_AVX2_H

#define FEW_BITS 4u

/* ---- weights ---- */

/* Eight weights: their lowest bytes, and so on, each kind to its place in a group. */
INLINE void eight_limbs(int8_t *to, __m256i weights)
{
	const __m256i kinds =
		_mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12,
	                         1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
	const __m256i halves = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	const __m256i carry = _mm256_set1_epi32(0x808080);
	__m256i digits = _mm256_xor_si256(_mm256_add_epi32(weights, carry), carry);
	int64_t words[GLM_LIMBS];

	digits = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(digits, kinds), halves);
	_mm256_storeu_si256((__m256i *)words, digits);
	for (uint32_t l = 0; l < GLM_LIMBS; l++)
		memcpy(to + (size_t)l * GLM_GROUP, &words[l], sizeof(words[l]));
}

/* A group: 128 lowest bytes, and so on. */
static void few_bits_limbs(int8_t *to, const int32_t *u, uint32_t columns)
{
	for (uint32_t j = 0; j < columns; j += GLM_GROUP, to += (size_t)GLM_LIMBS * GLM_GROUP) {
		uint32_t now = columns - j < GLM_GROUP ? columns - j : GLM_GROUP;
		int32_t last[GLM_GROUP] = { 0 };
		const int32_t *from = u + j;

		if (now < GLM_GROUP) {
			memcpy(last, from, now * sizeof(*last));
			from = last;
		}
		for (uint32_t i = 0; i < GLM_GROUP; i += 8)
			eight_limbs(to + i, _mm256_loadu_si256((const __m256i *)(from + i)));
	}
}

/* Bytes of weights that are not all 0, at least 2. */
static uint32_t limbs_used(const int8_t *weights, uint32_t groups)
{
	__m256i third = _mm256_setzero_si256(), fourth = third;

	for (uint32_t b = 0; b < groups; b++, weights += (size_t)GLM_LIMBS * GLM_GROUP)
		for (uint32_t i = 0; i < GLM_GROUP; i += 32) {
			const int8_t *at = weights + 2 * (size_t)GLM_GROUP + i;

			third = _mm256_or_si256(third, _mm256_loadu_si256((const __m256i *)at));
			fourth = _mm256_or_si256(
				fourth, _mm256_loadu_si256((const __m256i *)(at + GLM_GROUP)));
		}
	if (!_mm256_testz_si256(fourth, fourth))
		return 4;
	return _mm256_testz_si256(third, third) ? 2 : 3;
}

/* ---- forward ---- */

/* Two rows, each in its half of the vectors; weights of `used` bytes. */
INLINE void few_bits_two(const uint8_t *first, const uint8_t *second, const uintptr_t next[2],
                         const uint32_t bits, const int8_t *weights, const uint32_t used,
                         uint32_t groups, int64_t *of_first, int64_t *of_second)
{
	const size_t step = (size_t)bits * GLM_PLANE;
	const __m256i ones = _mm256_set1_epi16(1);
	__m256i sums[GLM_LIMBS];

	for (uint32_t l = 0; l < used; l++)
		sums[l] = _mm256_setzero_si256();
	for (uint32_t b = 0; b < groups; b++, weights += (size_t)GLM_LIMBS * GLM_GROUP) {
		__m256i group[GLM_LIMBS];
		codes_u8 codes[8];

		fetch(next[0] + b * step);
		fetch(next[1] + b * step);
		codes_load(first + b * step, second + b * step, bits, codes);
#pragma GCC unroll 8
		for (uint32_t k = 0; k < 8; k++)
#pragma GCC unroll 4
			for (uint32_t l = 0; l < used; l++) {
				__m256i limb = weights_load(weights + (size_t)l * GLM_GROUP +
				                            (size_t)k * 16);
				__m256i product = _mm256_maddubs_epi16((__m256i)codes[k], limb);

				group[l] = k ? _mm256_add_epi16(group[l], product) : product;
			}
#pragma GCC unroll 4
		for (uint32_t l = 0; l < used; l++)
			sums[l] = _mm256_add_epi32(sums[l], _mm256_madd_epi16(group[l], ones));
	}
	for (uint32_t l = 0; l < used; l++)
		two_widen(sums[l], of_first, of_second, 1ll << 8 * l);
}

INLINE void few_bits_forward(const uint8_t *const *rows, uint32_t n, const uint32_t bits,
                             const int8_t *weights, uint32_t groups, int64_t *activation)
{
	const size_t bytes = (size_t)groups * bits * GLM_PLANE;
	const uint32_t used = limbs_used(weights, groups);

	for (uint32_t k = 0; k < n; k += 2) {
		bool two = k + 1 < n;
		const uint8_t *second = rows[two ? k + 1 : k];
		int64_t unused = 0, *to = two ? &activation[k + 1] : &unused;
		uintptr_t next[2];

		rows_after((const void *const *)rows, n, k, 2, bytes, next);
		if (used == 2)
			few_bits_two(rows[k], second, next, bits, weights, 2, groups,
			             &activation[k], to);
		else if (used == 3)
			few_bits_two(rows[k], second, next, bits, weights, 3, groups,
			             &activation[k], to);
		else
			few_bits_two(rows[k], second, next, bits, weights, 4, groups,
			             &activation[k], to);
	}
}

/* ---- backward ---- */

#define PAIRS (GLM_PASS / 2)

/* Bytes of the scales of a pair of rows, twice a word. A row that lacks has the scale 0. */
struct scale_bytes {
	uint32_t limb[3][PAIRS];
	uint32_t used; /* 2, or 3 */
};

static struct scale_bytes scale_bytes_make(const int32_t *scale, uint32_t n)
{
	struct scale_bytes scales;
	uint32_t third = 0;

	memset(&scales, 0, sizeof(scales));
	for (uint32_t k = 0; k < n; k++) {
		uint32_t limbs = limbs_of(scale[k]);

		for (uint32_t l = 0; l < 3; l++)
			scales.limb[l][k / 2] |= (limbs >> 8 * l & 0xff) * 0x10001u << 8 * (k % 2);
		third |= limbs >> 16 & 0xff;
	}
	scales.used = third ? 3 : 2;
	return scales;
}

/* Codes of two rows side by side, of two groups: out[0][k] has columns 0 to 7 of block k, and
 * out[1][k] has columns 8 to 15. */
INLINE void codes_pair(const uint8_t *row, const uint8_t *other, size_t first, size_t second,
                       const uint32_t bits, codes_u8 out[2][8])
{
	codes_u8 low[8], high[8];

	for (uint32_t p = 0; p < bits; p++) {
		size_t at = (size_t)p * GLM_PLANE;
		__m256i a = (__m256i)planes_load(row + first + at, row + second + at);
		__m256i b = (__m256i)planes_load(other + first + at, other + second + at);

		low[p] = (codes_u8)_mm256_unpacklo_epi8(a, b);
		high[p] = (codes_u8)_mm256_unpackhi_epi8(a, b);
	}
	codes_unpack(low, bits, out[0]);
	codes_unpack(high, bits, out[1]);
}

/* g += eight columns of a group, as 32-bit sums: four and four. */
INLINE void eight_to_gradient(int64_t *g, __m128i four, __m128i more)
{
	__m256i *to = (__m256i *)g;

	_mm256_storeu_si256(to,
	                    _mm256_add_epi64(_mm256_loadu_si256(to), _mm256_cvtepi32_epi64(four)));
	_mm256_storeu_si256(
		to + 1, _mm256_add_epi64(_mm256_loadu_si256(to + 1), _mm256_cvtepi32_epi64(more)));
}

/* Sums of a pass, in 16 bits for each byte of the scales: their sum fits in 32 bits, since it is at
 * most 16 * 15 * GLM_SCALE_MAX. */
INLINE void sums_to_gradient(const __m256i *sums, const uint32_t used, int64_t *g, int64_t *second)
{
	const __m256i zero = _mm256_setzero_si256(), units = _mm256_set1_epi32(0x1000001);
	__m256i four = _mm256_madd_epi16(_mm256_unpacklo_epi16(sums[0], sums[1]), units);
	__m256i more = _mm256_madd_epi16(_mm256_unpackhi_epi16(sums[0], sums[1]), units);

	if (used > 2) {
		four = _mm256_add_epi32(four, _mm256_unpacklo_epi16(zero, sums[2]));
		more = _mm256_add_epi32(more, _mm256_unpackhi_epi16(zero, sums[2]));
	}
	eight_to_gradient(g, _mm256_castsi256_si128(four), _mm256_castsi256_si128(more));
	if (second)
		eight_to_gradient(second, _mm256_extracti128_si256(four, 1),
		                  _mm256_extracti128_si256(more, 1));
}

/* A block of 16 columns of two groups. `second` is NULL if there is one group only. */
INLINE void few_bits_block(codes_u8 (*codes)[2][8], uint32_t k, uint32_t pairs,
                           const struct scale_bytes *scales, const uint32_t used, int64_t *g,
                           int64_t *second)
{
	__m256i sums[2][3];

	for (uint32_t l = 0; l < used; l++)
		sums[0][l] = sums[1][l] = _mm256_setzero_si256();
	for (uint32_t p = 0; p < pairs; p++) {
		__m256i low = (__m256i)codes[p][0][k], high = (__m256i)codes[p][1][k];

#pragma GCC unroll 3
		for (uint32_t l = 0; l < used; l++) {
			__m256i limb = _mm256_set1_epi32((int32_t)scales->limb[l][p]);

			sums[0][l] = _mm256_add_epi16(sums[0][l], _mm256_maddubs_epi16(low, limb));
			sums[1][l] = _mm256_add_epi16(sums[1][l], _mm256_maddubs_epi16(high, limb));
		}
	}
	sums_to_gradient(sums[0], used, g, second);
	sums_to_gradient(sums[1], used, g + 8, second ? second + 8 : NULL);
}

INLINE void few_bits_backward(const uint8_t *const *rows, uint32_t n, const uint32_t bits,
                              const int32_t *scale, uint32_t groups, int64_t *g)
{
	const struct scale_bytes scales = scale_bytes_make(scale, n);
	const size_t step = (size_t)bits * GLM_PLANE;
	const uint32_t pairs = (n + 1) / 2;
	codes_u8 codes[PAIRS][2][8];

	for (uint32_t b = 0; b < groups; b += 2, g += (size_t)2 * GLM_GROUP) {
		bool two = b + 1 < groups;
		int64_t *second = two ? g + GLM_GROUP : NULL;

		for (uint32_t k = 0; k < n; k++)
			for (size_t line = 0; line < 2 * step; line += 64)
				fetch((uintptr_t)rows[k] + b * step + GLM_AHEAD + line);
		for (uint32_t p = 0; p < pairs; p++)
			codes_pair(rows[2 * p], rows[2 * p + 1 < n ? 2 * p + 1 : 2 * p], b * step,
			           (two ? b + 1 : b) * step, bits, codes[p]);
		for (uint32_t k = 0; k < 8; k++) {
			int64_t *other = second ? second + (size_t)k * 16 : NULL;

			if (scales.used == 2)
				few_bits_block(codes, k, pairs, &scales, 2, g + (size_t)k * 16,
				               other);
			else
				few_bits_block(codes, k, pairs, &scales, 3, g + (size_t)k * 16,
				               other);
		}
	}
}

#endif
