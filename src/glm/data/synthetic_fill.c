/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/data/matrix_room.h"
#include "glm/data/row_store.h"
#include "glm/data/synthetic.h"
#include "glm/kernel/weave.h"

#include <stdlib.h>

#define VALUE_BITS 16 /* of synthetic_dense */

void synthetic_maps(uint32_t count, uint32_t bits, float *low, float *step)
{
	uint32_t j;

	for (j = 0; j < count; j++) {
		low[j] = 0;
		step[j] = 1.0f / (float)((1u << bits) - 1);
	}
}

/* What the rows of a shard are made in. */
struct fill {
	const struct synthetic *synthetic;
	const struct glm_shard *shard;
	struct row_store store;
	uint32_t *column;
	float *value;
	uint32_t *dense;
	uint8_t *codes;
};

static void dense_fill(struct fill *fill, uint32_t row, struct glm_matrix *matrix)
{
	const struct glm_shard *shard = fill->shard;
	uint32_t levels = (1u << shard->bits) - 1, j;
	uint64_t at = fill->store.rows;

	synthetic_dense(fill->synthetic, row, shard->first, shard->count, fill->dense);
	if (matrix->layout == GLM_DENSE) {
		for (j = 0; j < shard->count; j++)
			matrix->dense[at * matrix->stride + j] = (float)fill->dense[j] * 0x1p-16f;
	} else {
		for (j = 0; j < shard->count; j++)
			fill->codes[j] =
				(uint8_t)((fill->dense[j] * levels + (1u << (VALUE_BITS - 1))) >>
			                  VALUE_BITS);
		weave_row(matrix->weave + at * matrix->weave_stride, fill->codes, shard->count,
		          shard->bits);
	}
	fill->store.rows++;
}

static trib_status row_fill(struct fill *fill, uint32_t row, struct glm_matrix *matrix,
                            float *label)
{
	const struct synthetic *synthetic = fill->synthetic;
	trib_status status = TRIB_OK;
	uint32_t n = 0;

	if (synthetic->density == 1 && matrix->layout != GLM_SPARSE) {
		dense_fill(fill, row, matrix);
	} else {
		n = synthetic_row(synthetic, row, fill->column, fill->value);
		status = row_store_add(&fill->store, fill->column, fill->value, n);
	}
	*label = synthetic_label(synthetic, row, fill->column, fill->value, n);
	/* Classes count from 0. */
	*label -= synthetic->classes > 2;
	return status;
}

static trib_status rows_fill(struct fill *fill, struct glm_matrix *matrix, float *labels)
{
	uint32_t workers = fill->shard->workers ? fill->shard->workers : 1;
	uint64_t row;
	trib_status status = TRIB_OK;

	for (row = fill->shard->rank; row < fill->synthetic->rows && status == TRIB_OK;
	     row += workers)
		status = row_fill(fill, (uint32_t)row, matrix, labels + row / workers);
	return status;
}

trib_status synthetic_fill(const struct synthetic *synthetic, const struct glm_shard *shard,
                           struct glm_matrix *matrix, float **labels)
{
	uint32_t workers = shard->workers ? shard->workers : 1;
	uint32_t rows = synthetic->rows / workers + (shard->rank < synthetic->rows % workers);
	uint32_t entries = synthetic_entries(synthetic);
	double guess = (double)entries * rows * shard->count / synthetic->columns;
	struct fill fill = { .synthetic = synthetic, .shard = shard };
	trib_status status;

	*matrix = (struct glm_matrix){ 0 };
	*labels = malloc(((size_t)rows + 1) * sizeof(**labels));
	fill.column = malloc(entries * sizeof(*fill.column));
	fill.value = malloc(entries * sizeof(*fill.value));
	fill.dense = malloc(((size_t)shard->count + 1) * sizeof(*fill.dense));
	fill.codes = malloc((size_t)shard->count + 1);
	status = synthetic_check(synthetic);
	if (status == TRIB_OK &&
	    (!*labels || !fill.column || !fill.value || !fill.dense || !fill.codes))
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for a synthetic row");
	if (status == TRIB_OK)
		status = row_store_begin(&fill.store, matrix, shard, rows,
		                         (uint64_t)guess + entries);
	if (status == TRIB_OK) {
		status = rows_fill(&fill, matrix, *labels);
		row_store_end(&fill.store, status == TRIB_OK);
	}
	free(fill.column);
	free(fill.value);
	free(fill.dense);
	free(fill.codes);
	if (status != TRIB_OK) {
		matrix_free(matrix);
		free(*labels);
		*labels = NULL;
	}
	return status;
}
