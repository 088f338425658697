/* SPDX-License-Identifier: Apache-2.0 */
/* The loops without SIMD: the definition of the others, and the fallback. */
#include "glm/kernel/glm_loops.h"

static bool usable(void)
{
	return true;
}

static uint64_t dense_forward(const float *const *rows, uint32_t n, const float *x,
                              uint32_t columns, int64_t *activation)
{
	uint64_t saturations = 0;

	for (uint32_t k = 0; k < n; k++)
		for (uint32_t j = 0; j < columns; j++)
			activation[k] +=
				term_round(rows[k][j] * forward_weight(x[j]), &saturations);
	return saturations;
}

static uint64_t dense_backward(const float *const *rows, uint32_t n, const float *scale,
                               uint32_t columns, int64_t *g)
{
	uint64_t saturations = 0;

	for (uint32_t k = 0; k < n; k++)
		for (uint32_t j = 0; j < columns; j++)
			g[j] += term_round(rows[k][j] * backward_scale(scale[k]), &saturations);
	return saturations;
}

static uint64_t sparse_forward(const uint32_t *column, const float *value, uint64_t n,
                               const float *x, int64_t *activation)
{
	uint64_t saturations = 0;

	for (uint64_t i = 0; i < n; i++)
		*activation += term_round(value[i] * forward_weight(x[column[i]]), &saturations);
	return saturations;
}

static uint64_t sparse_backward(const uint32_t *column, const float *value, uint64_t n, float scale,
                                int64_t *g)
{
	uint64_t saturations = 0;

	for (uint64_t i = 0; i < n; i++)
		g[column[i]] += term_round(value[i] * backward_scale(scale), &saturations);
	return saturations;
}

static void no_limbs(int8_t *limbs, const int32_t *u, uint32_t columns, uint32_t bits)
{
	(void)limbs;
	(void)u;
	(void)columns;
	(void)bits;
}

static void weave_forward(const uint8_t *const *rows, uint32_t n, uint32_t bits,
                          const int8_t *limbs, const int32_t *u, uint32_t columns,
                          int64_t *activation)
{
	(void)limbs;
	for (uint32_t k = 0; k < n; k++) {
		const uint8_t *from = rows[k];

		for (uint32_t j = 0; j < columns; j += GLM_GROUP, from += bits * GLM_PLANE) {
			uint32_t now = columns - j < GLM_GROUP ? columns - j : GLM_GROUP;
			uint8_t codes[GLM_GROUP];

			unweave_row(codes, from, now, bits);
			for (uint32_t i = 0; i < now; i++)
				activation[k] += (int64_t)codes[i] * u[j + i];
		}
	}
}

static void weave_backward(const uint8_t *const *rows, uint32_t n, uint32_t bits,
                           const int32_t *scale, uint32_t groups, int64_t *g)
{
	for (uint32_t k = 0; k < n; k++) {
		for (uint32_t b = 0; b < groups; b++) {
			uint8_t codes[GLM_GROUP];

			unweave_row(codes, rows[k] + (uint64_t)b * bits * GLM_PLANE, GLM_GROUP,
			            bits);
			for (uint32_t i = 0; i < GLM_GROUP; i++)
				g[b * GLM_GROUP + i] += (int64_t)codes[i] * scale[k];
		}
	}
}

static uint64_t weights_round(const float *x, const float *step, uint32_t n, int32_t *u)
{
	return weights_round_loop(x, step, n, u);
}

const struct glm_loops glm_loops_plain = {
	.name = "plain",
	.usable = usable,
	.dense_forward = dense_forward,
	.dense_backward = dense_backward,
	.sparse_forward = sparse_forward,
	.sparse_backward = sparse_backward,
	.weights_round = weights_round,
	.limbs = no_limbs,
	.weave_forward = weave_forward,
	.weave_backward = weave_backward,
};
