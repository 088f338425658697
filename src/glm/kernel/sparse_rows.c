/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/kernel/sparse_rows.h"

#include <stdlib.h>

/* The first entry at or after `column`. */
static uint64_t entry_find(const uint32_t *columns, uint64_t first, uint64_t end, uint32_t column)
{
	while (first < end) {
		uint64_t middle = first + (end - first) / 2;

		if (columns[middle] < column)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

struct sparse_run sparse_run_find(const struct glm_matrix *matrix, uint32_t row, uint32_t from,
                                  uint32_t to)
{
	struct sparse_run run = { matrix->start[row], matrix->start[row + 1] };

	if (to < matrix->columns)
		run.end = entry_find(matrix->column, run.first, run.end, to);
	if (from)
		run.first = entry_find(matrix->column, run.first, run.end, from);
	return run;
}

struct sparse_run sparse_run_of_part(const struct glm_matrix *matrix, uint32_t row,
                                     const struct glm_index *index, uint32_t part)
{
	const uint32_t *at = index->at + (uint64_t)row * (index->parts + 1) + part;

	return (struct sparse_run){ matrix->start[row] + at[0], matrix->start[row] + at[1] };
}

bool kernel_index_build(struct glm_index *index, const struct glm_matrix *matrix, uint32_t parts)
{
	uint32_t *at = NULL;

	index->parts = parts;
	index->at = NULL;
	if (matrix->layout != GLM_SPARSE)
		return true;
	at = malloc(((uint64_t)matrix->rows * (parts + 1) + 1) * sizeof(*at));
	if (!at)
		return false;
	index->at = at;
	for (uint32_t r = 0; r < matrix->rows; r++) {
		uint64_t first = matrix->start[r], entry = first;

		for (uint32_t t = 0; t <= parts; t++) {
			entry = entry_find(matrix->column, entry, matrix->start[r + 1],
			                   kernel_bound(matrix, t, parts));
			*at++ = (uint32_t)(entry - first);
		}
	}
	return true;
}

void kernel_index_free(struct glm_index *index)
{
	free(index->at);
	index->at = NULL;
}

void sparse_run_prefetch(const struct glm_matrix *matrix, struct sparse_run run)
{
	/* The first and the last entry: a row of a few dozen mostly has no more lines. */
	__builtin_prefetch(matrix->column + run.first);
	__builtin_prefetch(matrix->column + run.end);
	if (matrix->bits) {
		__builtin_prefetch(matrix->code + run.first);
	} else {
		__builtin_prefetch(matrix->value + run.first);
		__builtin_prefetch(matrix->value + run.end);
	}
}

/* Four sums, because an addition waits for the one before. */
static int64_t codes_forward(const uint32_t *column, const uint8_t *code, uint64_t n,
                             const int32_t *u)
{
	int64_t a = 0, b = 0, c = 0, d = 0;
	uint64_t i = 0;

	for (; i + 4 <= n; i += 4) {
		a += (int64_t)code[i] * u[column[i]];
		b += (int64_t)code[i + 1] * u[column[i + 1]];
		c += (int64_t)code[i + 2] * u[column[i + 2]];
		d += (int64_t)code[i + 3] * u[column[i + 3]];
	}
	for (; i < n; i++)
		a += (int64_t)code[i] * u[column[i]];
	return a + b + c + d;
}

uint64_t sparse_run_forward(const struct glm_loops *loops, const struct glm_matrix *matrix,
                            const struct glm_weights *weights, struct sparse_run run,
                            int64_t *activation)
{
	uint64_t n = run.end - run.first;

	if (!matrix->bits)
		return loops->sparse_forward(matrix->column + run.first, matrix->value + run.first,
		                             n, weights->x, activation);
	*activation +=
		codes_forward(matrix->column + run.first, matrix->code + run.first, n, weights->u);
	return 0;
}

uint64_t sparse_run_backward(const struct glm_loops *loops, const struct glm_matrix *matrix,
                             struct sparse_run run, float scale_f, int32_t scale_i, int64_t *g)
{
	if (!matrix->bits)
		return loops->sparse_backward(matrix->column + run.first, matrix->value + run.first,
		                              run.end - run.first, scale_f, g);
	for (uint64_t i = run.first; i < run.end; i++)
		g[matrix->column[i]] += (int64_t)matrix->code[i] * scale_i;
	return 0;
}
