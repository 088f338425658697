/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/kernel/glm_kernel.h"

#include "glm/kernel/kernel_choice.h"
#include "glm/kernel/sparse_rows.h"

#include <string.h>

#define BLOCK 4096u /* columns: their weights or gradients stay in the L1 cache for all rows */
#define AHEAD 4u    /* sparse rows whose first entries are fetched ahead */

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t kernel_bound(const struct glm_matrix *matrix, uint32_t part, uint32_t parts)
{
	uint32_t unit = matrix->layout == GLM_SPARSE ? 1 : GLM_GROUP;
	uint64_t units = matrix->columns / unit + (matrix->columns % unit != 0);

	return (uint32_t)(part == parts ? matrix->columns : units * part / parts * unit);
}

/* Columns of weaved rows: some of a group, whole groups, and some of a group. */
struct cut {
	uint32_t first, end; /* whole groups; first == end: none */
};

static struct cut cut_at_groups(const struct glm_matrix *matrix, uint32_t from, uint32_t to)
{
	uint32_t first = weave_groups(from) * GLM_GROUP;
	uint32_t end = to == matrix->columns ? to : to / GLM_GROUP * GLM_GROUP;

	return first < end ? (struct cut){ first, end } : (struct cut){ to, to };
}

static const uint8_t *weave_at(const struct glm_matrix *matrix, uint32_t row, uint32_t column)
{
	return matrix->weave + row * matrix->weave_stride +
	       (uint64_t)(column / GLM_GROUP) * matrix->bits * GLM_PLANE;
}

static void codes_forward_slowly(const struct glm_matrix *matrix, const int32_t *u,
                                 const uint32_t *rows, uint32_t n, uint32_t from, uint32_t to,
                                 int64_t *activation)
{
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t j = from; j < to; j++)
			activation[k] +=
				(int64_t)weave_code(weave_at(matrix, rows[k], 0), j, matrix->bits) *
				u[j];
}

static void codes_backward_slowly(const struct glm_matrix *matrix, const uint32_t *rows, uint32_t n,
                                  const int32_t *scale, uint32_t from, uint32_t to, int64_t *g)
{
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t j = from; j < to; j++)
			g[j] += (int64_t)weave_code(weave_at(matrix, rows[k], 0), j, matrix->bits) *
			        scale[k];
}

static void weave_forward(const struct glm_matrix *matrix, const struct glm_weights *weights,
                          const uint32_t *rows, uint32_t n, uint32_t from, uint32_t to,
                          int64_t *activation)
{
	const struct glm_loops *loops = kernel_loops();
	const struct cut cut = cut_at_groups(matrix, from, to);
	const uint8_t *at[GLM_PASS];

	codes_forward_slowly(matrix, weights->u, rows, n, from, cut.first, activation);
	codes_forward_slowly(matrix, weights->u, rows, n, cut.end, to, activation);
	for (uint32_t j = cut.first; j < cut.end; j += BLOCK) {
		for (uint32_t k = 0; k < n; k += GLM_PASS) {
			uint32_t now = least(n - k, GLM_PASS);

			for (uint32_t i = 0; i < now; i++)
				at[i] = weave_at(matrix, rows[k + i], j);
			loops->weave_forward(at, now, matrix->bits,
			                     weights->limbs + (size_t)j * GLM_LIMBS, weights->u + j,
			                     least(cut.end - j, BLOCK), activation + k);
		}
	}
}

static bool scales_fit(const int32_t *scale, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (scale[k] > GLM_SCALE_MAX || scale[k] < -GLM_SCALE_MAX)
			return false;
	return true;
}

/* The last columns of a row that do not fill a group: g ends with them. */
static void weave_backward_end(const struct glm_loops *loops, const uint8_t *const *at, uint32_t n,
                               uint32_t bits, const int32_t *scale, uint32_t columns, int64_t *g)
{
	int64_t group[GLM_GROUP] = { 0 };

	loops->weave_backward(at, n, bits, scale, 1, group);
	for (uint32_t i = 0; i < columns; i++)
		g[i] += group[i];
}

static void weave_backward(const struct glm_matrix *matrix, const uint32_t *rows, uint32_t n,
                           const int32_t *scale, uint32_t from, uint32_t to, int64_t *g)
{
	const struct glm_loops *loops = kernel_loops();
	const struct cut cut = cut_at_groups(matrix, from, to);
	const uint8_t *at[GLM_PASS];

	codes_backward_slowly(matrix, rows, n, scale, from, cut.first, g);
	codes_backward_slowly(matrix, rows, n, scale, cut.end, to, g);
	if (!scales_fit(scale, n))
		loops = &glm_loops_plain;
	for (uint32_t j = cut.first; j < cut.end; j += BLOCK) {
		uint32_t columns = least(cut.end - j, BLOCK), groups = columns / GLM_GROUP;

		for (uint32_t k = 0; k < n; k += GLM_PASS) {
			uint32_t now = least(n - k, GLM_PASS);

			for (uint32_t i = 0; i < now; i++)
				at[i] = weave_at(matrix, rows[k + i], j);
			loops->weave_backward(at, now, matrix->bits, scale + k, groups, g + j);
			if (columns % GLM_GROUP) {
				for (uint32_t i = 0; i < now; i++)
					at[i] += (uint64_t)groups * matrix->bits * GLM_PLANE;
				weave_backward_end(loops, at, now, matrix->bits, scale + k,
				                   columns % GLM_GROUP, g + j + groups * GLM_GROUP);
			}
		}
	}
}

/* Backward with scales, else forward with weights: each block of columns over all rows. */
struct dense_work {
	const float *x;
	int64_t *activation;
	const float *scale;
	int64_t *g;
};

static uint64_t dense_run(const struct glm_matrix *matrix, const uint32_t *rows, uint32_t n,
                          uint32_t from, uint32_t to, const struct dense_work *work)
{
	const struct glm_loops *loops = kernel_loops();
	const float *at[GLM_PASS];
	uint64_t saturations = 0;

	for (uint32_t j = from; j < to; j += least(to - j, BLOCK)) {
		uint32_t columns = least(to - j, BLOCK);

		for (uint32_t k = 0; k < n; k += GLM_PASS) {
			uint32_t now = least(n - k, GLM_PASS);

			for (uint32_t i = 0; i < now; i++)
				at[i] = matrix->dense + rows[k + i] * matrix->stride + j;
			if (work->scale)
				saturations += loops->dense_backward(at, now, work->scale + k,
				                                     columns, work->g + j);
			else
				saturations += loops->dense_forward(at, now, work->x + j, columns,
				                                    work->activation + k);
		}
	}
	return saturations;
}

static void prefetch_row(const struct glm_matrix *matrix, uint32_t row)
{
	sparse_run_prefetch(matrix,
	                    (struct sparse_run){ matrix->start[row], matrix->start[row + 1] });
}

uint64_t kernel_forward(const struct glm_matrix *matrix, const struct glm_weights *weights,
                        const uint32_t *rows, uint32_t n, uint32_t from, uint32_t to,
                        int64_t *activation)
{
	uint64_t saturations = 0;

	if (from >= to)
		return 0;
	if (matrix->layout == GLM_DENSE)
		return dense_run(matrix, rows, n, from, to,
		                 &(struct dense_work){ .x = weights->x, .activation = activation });
	if (matrix->layout == GLM_WEAVED) {
		weave_forward(matrix, weights, rows, n, from, to, activation);
		return 0;
	}
	for (uint32_t k = 0; k < n; k++) {
		if (k + AHEAD < n)
			prefetch_row(matrix, rows[k + AHEAD]);
		saturations += sparse_run_forward(kernel_loops(), matrix, weights,
		                                  sparse_run_find(matrix, rows[k], from, to),
		                                  activation + k);
	}
	return saturations;
}

uint64_t kernel_backward(const struct glm_matrix *matrix, const uint32_t *rows, uint32_t n,
                         const float *scale_f, const int32_t *scale_i, uint32_t from, uint32_t to,
                         int64_t *g)
{
	uint64_t saturations = 0;

	if (from >= to)
		return 0;
	if (matrix->layout == GLM_DENSE)
		return dense_run(matrix, rows, n, from, to,
		                 &(struct dense_work){ .scale = scale_f, .g = g });
	if (matrix->layout == GLM_WEAVED) {
		weave_backward(matrix, rows, n, scale_i, from, to, g);
		return 0;
	}
	for (uint32_t k = 0; k < n; k++) {
		if (k + AHEAD < n)
			prefetch_row(matrix, rows[k + AHEAD]);
		saturations += sparse_run_backward(
			kernel_loops(), matrix, sparse_run_find(matrix, rows[k], from, to),
			matrix->bits ? 0 : scale_f[k], matrix->bits ? scale_i[k] : 0, g);
	}
	return saturations;
}

uint64_t kernel_forward_part(const struct glm_matrix *matrix, const struct glm_weights *weights,
                             const uint32_t *rows, uint32_t n, const struct glm_index *index,
                             uint32_t part, int64_t *activation)
{
	uint64_t saturations = 0;

	if (matrix->layout != GLM_SPARSE)
		return kernel_forward(matrix, weights, rows, n,
		                      kernel_bound(matrix, part, index->parts),
		                      kernel_bound(matrix, part + 1, index->parts), activation);
	for (uint32_t k = 0; k < n; k++) {
		if (k + AHEAD < n)
			sparse_run_prefetch(
				matrix, sparse_run_of_part(matrix, rows[k + AHEAD], index, part));
		saturations += sparse_run_forward(kernel_loops(), matrix, weights,
		                                  sparse_run_of_part(matrix, rows[k], index, part),
		                                  activation + k);
	}
	return saturations;
}

uint64_t kernel_backward_part(const struct glm_matrix *matrix, const uint32_t *rows, uint32_t n,
                              const float *scale_f, const int32_t *scale_i,
                              const struct glm_index *index, uint32_t part, int64_t *g)
{
	uint64_t saturations = 0;

	if (matrix->layout != GLM_SPARSE)
		return kernel_backward(matrix, rows, n, scale_f, scale_i,
		                       kernel_bound(matrix, part, index->parts),
		                       kernel_bound(matrix, part + 1, index->parts), g);
	for (uint32_t k = 0; k < n; k++) {
		if (k + AHEAD < n)
			sparse_run_prefetch(
				matrix, sparse_run_of_part(matrix, rows[k + AHEAD], index, part));
		saturations += sparse_run_backward(
			kernel_loops(), matrix, sparse_run_of_part(matrix, rows[k], index, part),
			matrix->bits ? 0 : scale_f[k], matrix->bits ? scale_i[k] : 0, g);
	}
	return saturations;
}
