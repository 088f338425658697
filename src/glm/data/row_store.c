/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/data/row_store.h"
#include "glm/data/matrix_room.h"
#include "glm/data/quantize.h"
#include "glm/kernel/weave.h"

#include <stdlib.h>
#include <string.h>

static struct quantize_map map_of(const struct glm_shard *shard, uint32_t j)
{
	return (struct quantize_map){ shard->low[j], shard->step[j] };
}

/* The codes of absent features. */
static trib_status zeros_prepare(struct row_store *store)
{
	const struct glm_shard *shard = store->shard;
	uint32_t j;

	if (!shard->bits)
		return TRIB_OK;
	store->zero = malloc((size_t)shard->count + 1);
	store->codes = malloc((size_t)shard->count + 1);
	store->offset = malloc(((size_t)shard->count + 1) * sizeof(*store->offset));
	if (!store->zero || !store->codes || !store->offset)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for the codes of %u columns",
		                   shard->count);
	for (j = 0; j < shard->count; j++) {
		store->zero[j] = quantize_code(0, map_of(shard, j), shard->bits);
		if (store->zero[j])
			store->offset[store->n_offset++] = j;
	}
	return TRIB_OK;
}

trib_status row_store_begin(struct row_store *store, struct glm_matrix *matrix,
                            const struct glm_shard *shard, uint32_t rows, uint64_t entries)
{
	trib_status status;

	*store = (struct row_store){ .matrix = matrix, .shard = shard, .room = entries };
	status = matrix_make(matrix, shard->layout, rows, shard->count, entries, shard->bits);
	if (status == TRIB_OK)
		status = zeros_prepare(store);
	if (status != TRIB_OK)
		row_store_end(store, false);
	return status;
}

static trib_status room_make(struct row_store *store, uint64_t entries)
{
	trib_status status;

	if (entries <= store->room)
		return TRIB_OK;
	entries += entries / 4;
	status = matrix_entries_resize(store->matrix, entries);
	if (status == TRIB_OK)
		store->room = entries;
	return status;
}

static void floats_add(struct row_store *store, const uint32_t *column, const float *value,
                       uint32_t n)
{
	uint32_t first = store->shard->first, i;
	uint32_t *to = store->matrix->column + store->entries;

	for (i = 0; i < n; i++)
		to[i] = column[i] - first;
	memcpy(store->matrix->value + store->entries, value, n * sizeof(*value));
	store->entries += n;
}

static void code_put(struct row_store *store, uint32_t column, uint8_t code)
{
	store->matrix->column[store->entries] = column;
	store->matrix->code[store->entries] = code;
	store->entries += code != 0;
}

/* Entries with code 0 are left out. Columns where 0 has another code always have an entry. */
static void codes_add(struct row_store *store, const uint32_t *column, const float *value,
                      uint32_t n)
{
	const struct glm_shard *shard = store->shard;
	uint32_t i, o = 0;

	for (i = 0; i < n; i++) {
		uint32_t j = column[i] - shard->first;

		for (; o < store->n_offset && store->offset[o] < j; o++)
			code_put(store, store->offset[o], store->zero[store->offset[o]]);
		o += o < store->n_offset && store->offset[o] == j;
		code_put(store, j, quantize_code(value[i], map_of(shard, j), shard->bits));
	}
	for (; o < store->n_offset; o++)
		code_put(store, store->offset[o], store->zero[store->offset[o]]);
}

static void weave_add(struct row_store *store, const uint32_t *column, const float *value,
                      uint32_t n)
{
	const struct glm_shard *shard = store->shard;
	struct glm_matrix *matrix = store->matrix;
	uint32_t i;

	memcpy(store->codes, store->zero, shard->count);
	for (i = 0; i < n; i++) {
		uint32_t j = column[i] - shard->first;

		store->codes[j] = quantize_code(value[i], map_of(shard, j), shard->bits);
	}
	weave_row(matrix->weave + store->rows * matrix->weave_stride, store->codes, shard->count,
	          shard->bits);
}

static void dense_add(struct row_store *store, const uint32_t *column, const float *value,
                      uint32_t n)
{
	float *row = store->matrix->dense + store->rows * store->matrix->stride;
	uint32_t i;

	for (i = 0; i < n; i++)
		row[column[i] - store->shard->first] = value[i];
}

/* The number of columns below `limit`. */
static uint32_t columns_below(const uint32_t *column, uint32_t n, uint64_t limit)
{
	uint32_t from = 0;

	while (from < n) {
		uint32_t middle = from + (n - from) / 2;

		if (column[middle] < limit)
			from = middle + 1;
		else
			n = middle;
	}
	return from;
}

trib_status row_store_add(struct row_store *store, const uint32_t *column, const float *value,
                          uint32_t n)
{
	const struct glm_shard *shard = store->shard;
	struct glm_matrix *matrix = store->matrix;
	uint32_t from = columns_below(column, n, shard->first);
	trib_status status;

	n = columns_below(column, n, (uint64_t)shard->first + shard->count) - from;
	column += from;
	value += from;
	if (matrix->layout == GLM_DENSE) {
		dense_add(store, column, value, n);
	} else if (matrix->layout == GLM_WEAVED) {
		weave_add(store, column, value, n);
	} else {
		/* One more, because codes of 0 are written and not kept. */
		status = room_make(store, store->entries + n + store->n_offset + 1);
		if (status != TRIB_OK)
			return status;
		if (matrix->bits)
			codes_add(store, column, value, n);
		else
			floats_add(store, column, value, n);
		matrix->start[store->rows + 1] = store->entries;
	}
	store->rows++;
	return TRIB_OK;
}

void row_store_end(struct row_store *store, bool done)
{
	free(store->zero);
	free(store->codes);
	free(store->offset);
	/* A smaller block that cannot be had leaves the larger one. */
	if (done && store->matrix->layout == GLM_SPARSE && store->entries < store->room)
		(void)matrix_entries_resize(store->matrix, store->entries);
	*store = (struct row_store){ 0 };
}
