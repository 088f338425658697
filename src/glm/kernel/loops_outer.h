/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside kernel only: what the files of loops have in common, made of the inner loops of the file
 * that includes this at its end. It defines before:
 *
 *   forward_rows   dense_forward of 4 rows, or of 1; the compiler knows which
 *   backward_all   weave_backward of a number of bits that the compiler knows (with CODES_BYTES)
 *
 * and what LOOPS_TABLE names.
 */
#ifndef TRIB_GLM_LOOPS_OUTER_H
#define TRIB_GLM_LOOPS_OUTER_H

#include "glm/kernel/glm_loops.h"

static uint64_t dense_forward(const float *const *rows, uint32_t n, const float *x,
                              uint32_t columns, int64_t *activation)
{
	uint64_t saturations = 0;
	uint32_t width = 4;

	for (uint32_t k = 0; k < n; k += width) {
		uintptr_t next[4];

		width = n - k >= 4 ? 4 : 1;
		rows_after((const void *const *)rows, n, k, width, columns * sizeof(float), next);
		if (width == 4)
			saturations += forward_rows(rows + k, 4, next, x, columns, activation + k);
		else
			saturations += forward_rows(rows + k, 1, next, x, columns, activation + k);
	}
	return saturations;
}

#ifdef CODES_BYTES
static void weave_backward(const uint8_t *const *rows, uint32_t n, uint32_t bits,
                           const int32_t *scale, uint32_t groups, int64_t *g)
{
#define WORK(b) backward_all(rows, n, b, scale, groups, g)
	CODES_FOR_BITS(bits, WORK)
#undef WORK
}
#endif

static uint64_t weights_round(const float *x, const float *step, uint32_t n, int32_t *u)
{
	return weights_round_loop(x, step, n, u);
}

#define LOOPS_TABLE(symbol, text)                   \
	const struct glm_loops symbol = {           \
		.name = (text),                     \
		.usable = usable,                   \
		.dense_forward = dense_forward,     \
		.dense_backward = dense_backward,   \
		.sparse_forward = sparse_forward,   \
		.sparse_backward = sparse_backward, \
		.weights_round = weights_round,     \
		.limbs = limbs,                     \
		.weave_forward = weave_forward,     \
		.weave_backward = weave_backward,   \
	}

#endif
