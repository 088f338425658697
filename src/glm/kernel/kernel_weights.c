/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/kernel/kernel_choice.h"

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

uint64_t kernel_prepare(const struct glm_matrix *matrix, const float *step,
                        const struct glm_weights *weights, uint32_t from, uint32_t to)
{
	const float limit = (float)GLM_WEIGHT_MAX;
	uint64_t saturations = 0;

	for (uint32_t j = from; j < to; j++) {
		float u = weights->x[j] * step[j] * (float)(1 << GLM_ACTIVATION_BITS);
		float clamped = u > -limit ? u : -limit;

		clamped = clamped < limit ? clamped : limit;
		saturations += !(clamped == u);
		weights->u[j] = (int32_t)rintf(clamped);
	}
	kernel_prepare_limbs(matrix, weights, from, to);
	return saturations;
}
