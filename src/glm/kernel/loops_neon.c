/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops for NEON. This file is compiled twice: with SDOT (GLM_LOOPS is glm_loops_neon_dot) and
 * for every aarch64. Weights are four signed bytes, scales are three.
 *
 * SDOT multiplies signed bytes. So codes of 8 bits are taken less 128, and 128 times the sum of the
 * weights, or of the scales, is added again.
 */
#include "glm/kernel/glm_loops.h"

#if defined(GLM_LOOPS_NEON) || defined(GLM_LOOPS_NEON_DOT)

#include <arm_neon.h>
#include <string.h>
#include <sys/auxv.h>

#define CODES_BYTES 16
#include "glm/kernel/codes_unpack.h"

#define INLINE static inline __attribute__((always_inline))

#ifdef GLM_LOOPS_NEON_DOT
#define GLM_LOOPS glm_loops_neon_dot
#define GLM_LOOPS_NAME "neon-dot"
#ifndef HWCAP_ASIMDDP
#define HWCAP_ASIMDDP (1 << 20)
#endif

static bool usable(void)
{
	return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
}

INLINE int32x4_t dot(int32x4_t sum, int8x16_t a, int8x16_t b)
{
	return vdotq_s32(sum, a, b);
}
#else
#define GLM_LOOPS glm_loops_neon
#define GLM_LOOPS_NAME "neon"

static bool usable(void)
{
	return true; /* every aarch64 has it */
}

INLINE int32x4_t dot(int32x4_t sum, int8x16_t a, int8x16_t b)
{
	int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)));
	int32x4_t high = vpaddlq_s16(vmull_high_s8(a, b));

	return vaddq_s32(sum, vpaddq_s32(low, high));
}
#endif

/* Float. `same` counts terms that were not clamped, downwards from 0. */
INLINE int32x4_t terms_round(float32x4_t product, uint32x4_t *same)
{
	/* Of a number and NaN, MAXNM takes the number. */
	float32x4_t clamped = vmaxnmq_f32(product, vdupq_n_f32(-GLM_TERM_MAX));

	clamped = vminnmq_f32(clamped, vdupq_n_f32(GLM_TERM_MAX));
	*same = vaddq_u32(*same, vceqq_f32(clamped, product));
	return vcvtnq_s32_f32(clamped);
}

struct sum {
	int64x2_t low, high;
};

INLINE void sum_add(struct sum *sum, int32x4_t terms)
{
	sum->low = vaddw_s32(sum->low, vget_low_s32(terms));
	sum->high = vaddw_high_s32(sum->high, terms);
}

/* How many of `terms` were clamped. */
INLINE uint64_t saturations_of(uint32x4_t same, uint64_t terms)
{
	return terms - vaddlvq_u32(vsubq_u32(vdupq_n_u32(0), same));
}

INLINE uint64_t forward_rows(const float *const *rows, const uint32_t n, const uintptr_t *next,
                             const float *x, uint32_t columns, int64_t *activation)
{
	const float32x4_t unit = vdupq_n_f32((float)(1 << GLM_ACTIVATION_BITS));
	uint32x4_t same = vdupq_n_u32(0);
	uint64_t more = 0;
	struct sum sums[4];
	uint32_t j = 0;

	for (uint32_t k = 0; k < n; k++)
		sums[k].low = sums[k].high = vdupq_n_s64(0);
	for (; j + 4 <= columns; j += 4) {
		float32x4_t weight;

		for (uint32_t k = 0; j % 16 == 0 && k < n; k++)
			fetch(next[k] + (size_t)j * sizeof(float));
		weight = vmulq_f32(vld1q_f32(x + j), unit);
#pragma GCC unroll 4
		for (uint32_t k = 0; k < n; k++)
			sum_add(&sums[k],
			        terms_round(vmulq_f32(vld1q_f32(rows[k] + j), weight), &same));
	}
	for (uint32_t k = 0; k < n; k++) {
		activation[k] += vaddvq_s64(vaddq_s64(sums[k].low, sums[k].high));
		for (uint32_t i = j; i < columns; i++)
			activation[k] += term_round(rows[k][i] * forward_weight(x[i]), &more);
	}
	return more + saturations_of(same, (uint64_t)j * n);
}

static uint64_t dense_backward(const float *const *rows, uint32_t n, const float *scale,
                               uint32_t columns, int64_t *g)
{
	uint32x4_t same = vdupq_n_u32(0);
	float units[GLM_PASS];
	uint64_t more = 0;
	uint32_t j = 0;

	for (uint32_t k = 0; k < n; k++)
		units[k] = backward_scale(scale[k]);
	for (; j + 8 <= columns; j += 8) {
		struct sum first = { vld1q_s64(g + j), vld1q_s64(g + j + 2) };
		struct sum second = { vld1q_s64(g + j + 4), vld1q_s64(g + j + 6) };

		for (uint32_t k = 0; k < n; k++) {
			float32x4_t unit = vdupq_n_f32(units[k]);

			sum_add(&first,
			        terms_round(vmulq_f32(vld1q_f32(rows[k] + j), unit), &same));
			sum_add(&second,
			        terms_round(vmulq_f32(vld1q_f32(rows[k] + j + 4), unit), &same));
		}
		vst1q_s64(g + j, first.low);
		vst1q_s64(g + j + 2, first.high);
		vst1q_s64(g + j + 4, second.low);
		vst1q_s64(g + j + 6, second.high);
	}
	more = saturations_of(same, (uint64_t)j * n);
	for (; j < columns; j++)
		for (uint32_t k = 0; k < n; k++)
			g[j] += term_round(rows[k][j] * units[k], &more);
	return more;
}

/* There is no gather, so four weights are loaded one by one. */
static uint64_t sparse_forward(const uint32_t *column, const float *value, uint64_t n,
                               const float *x, int64_t *activation)
{
	const float32x4_t unit = vdupq_n_f32((float)(1 << GLM_ACTIVATION_BITS));
	struct sum sum = { vdupq_n_s64(0), vdupq_n_s64(0) };
	uint64_t more = 0, i = 0;

	while (n - i >= 4) {
		/* A lane of `same` counts up to 2^31. */
		uint64_t end = n - i < 1u << 30 ? i + (n - i) / 4 * 4 : i + (1u << 30);
		uint64_t terms = end - i;
		uint32x4_t same = vdupq_n_u32(0);

		for (; i < end; i += 4) {
			const float four[4] = { x[column[i]], x[column[i + 1]], x[column[i + 2]],
				                x[column[i + 3]] };

			sum_add(&sum, terms_round(vmulq_f32(vld1q_f32(value + i),
			                                    vmulq_f32(vld1q_f32(four), unit)),
			                          &same));
		}
		more += saturations_of(same, terms);
	}
	*activation += vaddvq_s64(vaddq_s64(sum.low, sum.high));
	for (; i < n; i++)
		*activation += term_round(value[i] * forward_weight(x[column[i]]), &more);
	return more;
}

static uint64_t sparse_backward(const uint32_t *column, const float *value, uint64_t n, float scale,
                                int64_t *g)
{
	const float unit = backward_scale(scale);
	uint64_t saturations = 0;

	for (uint64_t i = 0; i < n; i++)
		g[column[i]] += term_round(value[i] * unit, &saturations);
	return saturations;
}

/* A group: 128 lowest bytes, and so on. */
static void limbs(int8_t *to, const int32_t *u, uint32_t columns, uint32_t bits)
{
	(void)bits;
	for (uint32_t j = 0; j < columns; j += GLM_GROUP, to += (size_t)GLM_LIMBS * GLM_GROUP) {
		uint32_t now = columns - j < GLM_GROUP ? columns - j : GLM_GROUP;
		uint32_t digits[GLM_GROUP] = { 0 };

		for (uint32_t i = 0; i < now; i++)
			digits[i] = limbs_of(u[j + i]);
		for (uint32_t i = 0; i < GLM_GROUP; i += 16) {
			uint8x16x4_t bytes = vld4q_u8((const uint8_t *)(digits + i));

			for (uint32_t l = 0; l < GLM_LIMBS; l++)
				vst1q_u8((uint8_t *)to + (size_t)l * GLM_GROUP + i, bytes.val[l]);
		}
	}
}

INLINE void codes_load(const uint8_t *group, const uint32_t bits, codes_u8 out[8])
{
	codes_u8 planes[8];

	for (uint32_t p = 0; p < bits; p++)
		planes[p] = (codes_u8)vld1q_u8(group + (size_t)p * GLM_PLANE);
	codes_unpack(planes, bits, out);
	for (uint32_t k = 0; bits == 8 && k < 8; k++)
		out[k] ^= 0x80;
}

/* n is 2 or 1. */
INLINE void forward_groups(const uint8_t *const *rows, const uint32_t n, const uintptr_t *next,
                           const uint32_t bits, const int8_t *weights, uint32_t groups,
                           int64_t *activation)
{
	const size_t step = (size_t)bits * GLM_PLANE;
	int32x4_t sums[2][GLM_LIMBS];

	for (uint32_t k = 0; k < n; k++)
		for (uint32_t l = 0; l < GLM_LIMBS; l++)
			sums[k][l] = vdupq_n_s32(0);
	for (uint32_t b = 0; b < groups; b++, weights += (size_t)GLM_LIMBS * GLM_GROUP) {
		codes_u8 codes[2][8];

		for (uint32_t k = 0; k < n; k++) {
			fetch(next[k] + b * step);
			if (bits > 4)
				fetch(next[k] + b * step + 64);
			codes_load(rows[k] + b * step, bits, codes[k]);
		}
#pragma GCC unroll 8
		for (uint32_t i = 0; i < 8; i++) {
#pragma GCC unroll 4
			for (uint32_t l = 0; l < GLM_LIMBS; l++) {
				int8x16_t limb =
					vld1q_s8(weights + (size_t)l * GLM_GROUP + (size_t)i * 16);

#pragma GCC unroll 2
				for (uint32_t k = 0; k < n; k++)
					sums[k][l] = dot(sums[k][l], (int8x16_t)codes[k][i], limb);
			}
		}
	}
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t l = 0; l < GLM_LIMBS; l++)
			activation[k] += vaddlvq_s32(sums[k][l]) * (1ll << 8 * l);
}

INLINE void forward_all(const uint8_t *const *rows, uint32_t n, const uint32_t bits,
                        const int8_t *weights, uint32_t groups, int64_t *activation)
{
	const size_t bytes = (size_t)groups * bits * GLM_PLANE;

	for (uint32_t k = 0; k < n; k += 2) {
		uintptr_t next[2];

		rows_after((const void *const *)rows, n, k, 2, bytes, next);
		if (k + 1 < n)
			forward_groups(rows + k, 2, next, bits, weights, groups, activation + k);
		else
			forward_groups(rows + k, 1, next, bits, weights, groups, activation + k);
	}
}

static void weave_forward(const uint8_t *const *rows, uint32_t n, uint32_t bits,
                          const int8_t *weights, const int32_t *u, uint32_t columns,
                          int64_t *activation)
{
	int64_t lacking = 0;

	for (uint32_t j = 0; bits == 8 && j < columns; j++)
		lacking += u[j];
	for (uint32_t k = 0; k < n; k++)
		activation[k] += lacking * 128;
#define WORK(b) forward_all(rows, n, b, weights, weave_groups(columns), activation)
	CODES_FOR_BITS(bits, WORK)
#undef WORK
}

/* Four rows of scales a word, for each limb. Rows that lack have the scale 0. */
struct scales {
	uint32_t limb[3][GLM_PASS / 4];
	int64_t lacking; /* that codes of 8 bits less 128 leave out */
};

static struct scales scales_make(const int32_t *scale, uint32_t n, uint32_t bits)
{
	struct scales scales;

	memset(&scales, 0, sizeof(scales));
	for (uint32_t k = 0; k < n; k++) {
		for (uint32_t l = 0; l < 3; l++)
			scales.limb[l][k / 4] |= (limbs_of(scale[k]) >> 8 * l & 0xff)
			                         << 8 * (k % 4);
		scales.lacking += bits == 8 ? (int64_t)scale[k] * 128 : 0;
	}
	return scales;
}

/* A block of 16 columns. */
INLINE void block_backward(codes_u8 (*codes)[8], uint32_t k, uint32_t quads,
                           const struct scales *scales, int64_t *g)
{
	const int64x2_t lacking = vdupq_n_s64(scales->lacking);
	int32x4_t sums[3][4];

	for (uint32_t l = 0; l < 3; l++)
		for (uint32_t v = 0; v < 4; v++)
			sums[l][v] = vdupq_n_s32(0);
	for (uint32_t q = 0; q < quads; q++) {
		codes_u8(*four)[8] = codes + (size_t)q * 4;
		uint8x16x2_t ab = vzipq_u8((uint8x16_t)four[0][k], (uint8x16_t)four[1][k]);
		uint8x16x2_t cd = vzipq_u8((uint8x16_t)four[2][k], (uint8x16_t)four[3][k]);
		uint16x8x2_t first =
			vzipq_u16(vreinterpretq_u16_u8(ab.val[0]), vreinterpretq_u16_u8(cd.val[0]));
		uint16x8x2_t second =
			vzipq_u16(vreinterpretq_u16_u8(ab.val[1]), vreinterpretq_u16_u8(cd.val[1]));
		int8x16_t all[4] = { vreinterpretq_s8_u16(first.val[0]),
			             vreinterpretq_s8_u16(first.val[1]),
			             vreinterpretq_s8_u16(second.val[0]),
			             vreinterpretq_s8_u16(second.val[1]) };

#pragma GCC unroll 3
		for (uint32_t l = 0; l < 3; l++) {
			int8x16_t limb = vreinterpretq_s8_u32(vdupq_n_u32(scales->limb[l][q]));

#pragma GCC unroll 4
			for (uint32_t v = 0; v < 4; v++)
				sums[l][v] = dot(sums[l][v], all[v], limb);
		}
	}
#pragma GCC unroll 4
	for (uint32_t v = 0; v < 4; v++, g += 4) {
		int32x4_t low = vaddq_s32(sums[0][v], vshlq_n_s32(sums[1][v], 8));
		struct sum sum = { vaddq_s64(vld1q_s64(g), lacking),
			           vaddq_s64(vld1q_s64(g + 2), lacking) };

		sum_add(&sum, low);
		sum.low = vaddq_s64(sum.low, vshll_n_s32(vget_low_s32(sums[2][v]), 16));
		sum.high = vaddq_s64(sum.high, vshll_high_n_s32(sums[2][v], 16));
		vst1q_s64(g, sum.low);
		vst1q_s64(g + 2, sum.high);
	}
}

INLINE void backward_all(const uint8_t *const *rows, uint32_t n, const uint32_t bits,
                         const int32_t *scale, uint32_t groups, int64_t *g)
{
	const struct scales scales = scales_make(scale, n, bits);
	const size_t step = (size_t)bits * GLM_PLANE;
	codes_u8 codes[GLM_PASS][8];

	memset(codes, 0, sizeof(codes));
	for (uint32_t b = 0; b < groups; b++, g += GLM_GROUP) {
		for (uint32_t k = 0; k < n; k++) {
			for (size_t line = 0; line < step; line += 64)
				fetch((uintptr_t)rows[k] + b * step + GLM_AHEAD + line);
			codes_load(rows[k] + b * step, bits, codes[k]);
		}
		for (uint32_t k = 0; k < 8; k++)
			block_backward(codes, k, (n + 3) / 4, &scales, g + (size_t)k * 16);
	}
}

#include "glm/kernel/loops_outer.h"
LOOPS_TABLE(GLM_LOOPS, GLM_LOOPS_NAME);

#endif
