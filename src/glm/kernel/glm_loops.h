/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside kernel only: the loops of one instruction set. kernel_choice.c takes the best that the
 * processor has. All give the same bits; test_glm_kernel.c compares them.
 *
 * A call is for at most GLM_PASS rows, each with a pointer to the first feature of the range.
 */
#ifndef TRIB_GLM_LOOPS_H
#define TRIB_GLM_LOOPS_H

#include "glm/kernel/glm_kernel.h"

#include <math.h>

#define GLM_PASS 16u /* rows of a call, at most */
#define GLM_LIMBS 4u /* bytes of a weight */

struct glm_loops {
	const char *name;
	bool (*usable)(void);
	/* Float. `x` and `scale` are as the user gave them. Return saturations. */
	uint64_t (*dense_forward)(const float *const *rows, uint32_t n, const float *x,
	                          uint32_t columns, int64_t *activation);
	uint64_t (*dense_backward)(const float *const *rows, uint32_t n, const float *scale,
	                           uint32_t columns, int64_t *g);
	uint64_t (*sparse_forward)(const uint32_t *column, const float *value, uint64_t n,
	                           const float *x, int64_t *activation);
	uint64_t (*sparse_backward)(const uint32_t *column, const float *value, uint64_t n,
	                            float scale, int64_t *g);
	/* u = round(x * step * 2^GLM_ACTIVATION_BITS). Returns saturations. */
	uint64_t (*weights_round)(const float *x, const float *step, uint32_t n, int32_t *u);
	/* Whole groups. `limbs` writes GLM_LIMBS * GLM_GROUP bytes a group, from `columns` weights
	 * and zeros after them. `limbs` and `u` belong to the first group. */
	void (*limbs)(int8_t *limbs, const int32_t *u, uint32_t columns, uint32_t bits);
	void (*weave_forward)(const uint8_t *const *rows, uint32_t n, uint32_t bits,
	                      const int8_t *limbs, const int32_t *u, uint32_t columns,
	                      int64_t *activation);
	/* |scale| <= GLM_SCALE_MAX; g has room for whole groups. */
	void (*weave_backward)(const uint8_t *const *rows, uint32_t n, uint32_t bits,
	                       const int32_t *scale, uint32_t groups, int64_t *g);
};

extern const struct glm_loops glm_loops_plain;
#if defined(__x86_64__)
extern const struct glm_loops glm_loops_avx2, glm_loops_avx512;
#elif defined(__aarch64__)
extern const struct glm_loops glm_loops_neon, glm_loops_neon_dot;
#endif

#define GLM_AHEAD 256u /* bytes of a row that backward loops fetch ahead */

/* The processor may fetch this address, which may be behind the data. */
static inline void fetch(uintptr_t address)
{
	__builtin_prefetch((const void *)address);
}

/* Where a pass reads when it has done `width` rows from `first` on over a block: in its next rows,
 * or behind the block in its first ones. Rows begin at random places, which no processor foresees.
 */
static inline void rows_after(const void *const *rows, uint32_t n, uint32_t first, uint32_t width,
                              size_t block_bytes, uintptr_t *next)
{
	for (uint32_t i = 0; i < width; i++) {
		uint32_t row = first + width + i;

		next[i] = row < n ? (uintptr_t)rows[row] : (uintptr_t)rows[row % n] + block_bytes;
	}
}

/* One term of a float sum. */
static inline int32_t term_round(float product, uint64_t *saturations)
{
	float clamped = product > -GLM_TERM_MAX ? product : -GLM_TERM_MAX;

	clamped = clamped < GLM_TERM_MAX ? clamped : GLM_TERM_MAX;
	*saturations += !(clamped == product);
	return (int32_t)rintf(clamped);
}

/* Each set of loops compiles this for its processor. */
static inline uint64_t weights_round_loop(const float *restrict x, const float *restrict step,
                                          uint32_t n, int32_t *restrict u)
{
	const float limit = (float)GLM_WEIGHT_MAX;
	uint32_t saturations = 0;

	for (uint32_t j = 0; j < n; j++) {
		float exact = x[j] * step[j] * (float)(1 << GLM_ACTIVATION_BITS);
		float clamped = exact > -limit ? exact : -limit;

		clamped = clamped < limit ? clamped : limit;
		saturations += !(clamped == exact);
		u[j] = (int32_t)rintf(clamped);
	}
	return saturations;
}

static inline float forward_weight(float x)
{
	return x * (float)(1 << GLM_ACTIVATION_BITS);
}

static inline float backward_scale(float scale)
{
	return scale * (float)(1 << GLM_GRADIENT_BITS);
}

/* Four signed bytes whose sum, each times 256 to its place, is the value: |value| must not exceed
 * 0x7f7f7f7f. */
static inline uint32_t limbs_of(int32_t value)
{
	return ((uint32_t)value + 0x808080u) ^ 0x808080u;
}

#endif
