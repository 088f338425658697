/* SPDX-License-Identifier: Apache-2.0 */
/* Values of codes, and rows of a matrix as plain values: what tests compare. */
#ifndef TRIB_TESTS_GLM_VALUES_H
#define TRIB_TESTS_GLM_VALUES_H

#include "glm/data/matrix_room.h"
#include "glm/data/quantize.h"
#include "glm/kernel/weave.h"

#include <string.h>

static inline float quantize_value(uint8_t code, struct quantize_map map)
{
	return map.low + (float)code * map.step;
}

/*
 * Row `row` as one float a column. `low` and `step` are those of the quantization; NULL for floats.
 */
static inline void matrix_row_values(const struct glm_matrix *matrix, uint32_t row,
                                     const float *low, const float *step, float *values)
{
	uint32_t j;
	uint64_t i;

	if (matrix->layout == GLM_DENSE) {
		memcpy(values, matrix->dense + row * matrix->stride,
		       matrix->columns * sizeof(*values));
		return;
	}
	for (j = 0; j < matrix->columns; j++) {
		values[j] = matrix->bits ? low[j] : 0;
		if (matrix->layout == GLM_WEAVED)
			values[j] += step[j] *
			             (float)weave_code(matrix->weave + row * matrix->weave_stride,
			                               j, matrix->bits);
	}
	if (matrix->layout != GLM_SPARSE)
		return;
	for (i = matrix->start[row]; i < matrix->start[row + 1]; i++) {
		j = matrix->column[i];
		values[j] += matrix->bits ? step[j] * (float)matrix->code[i] : matrix->value[i];
	}
}

#endif
