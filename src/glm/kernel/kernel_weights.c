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
	uint64_t saturations = 0;

	if (from >= to)
		return 0;
	saturations = kernel_loops()->weights_round(weights->x + from, step + from, to - from,
	                                            weights->u + from);
	kernel_prepare_limbs(matrix, weights, from, to);
	return saturations;
}
