/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/kernel/kernel_choice.h"

#define RUN 4096u /* columns */

size_t kernel_limb_bytes(uint32_t columns)
{
	return (size_t)weave_groups(columns) * GLM_GROUP * GLM_LIMBS;
}

void kernel_prepare_limbs(const struct glm_matrix *matrix, const struct glm_weights *weights,
                          uint32_t from, uint32_t to)
{
	uint32_t first = weave_groups(from) * GLM_GROUP;
	uint32_t end = to == matrix->columns ? to : to / GLM_GROUP * GLM_GROUP;

	/* The loops take a group that is cut by the range column by column. */
	if (matrix->layout == GLM_WEAVED && first < end)
		kernel_loops()->limbs(weights->limbs + (size_t)first * GLM_LIMBS,
		                      weights->u + first, end - first, matrix->bits);
}

/* A short run, so that a counter of 32 bits will do: the compiler can use SIMD. */
static uint32_t weights_round(const float *restrict x, const float *restrict step, uint32_t n,
                              int32_t *restrict u)
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

uint64_t kernel_prepare(const struct glm_matrix *matrix, const float *step,
                        const struct glm_weights *weights, uint32_t from, uint32_t to)
{
	uint64_t saturations = 0;

	for (uint32_t j = from; j < to; j += RUN) {
		uint32_t n = to - j < RUN ? to - j : RUN;

		saturations += weights_round(weights->x + j, step + j, n, weights->u + j);
	}
	kernel_prepare_limbs(matrix, weights, from, to);
	return saturations;
}
