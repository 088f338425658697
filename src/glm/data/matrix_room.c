/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/data/matrix_room.h"
#include "glm/kernel/weave.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Rows of floats begin on cache lines. */
#define LINE 64u
#define LINE_FLOATS (LINE / 4u)

static uint64_t dense_stride(uint32_t columns)
{
	return ((uint64_t)columns + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
}

uint64_t matrix_bytes(enum glm_layout layout, uint32_t rows, uint32_t columns, uint64_t entries,
                      uint32_t bits)
{
	switch (layout) {
	case GLM_DENSE:
		return dense_stride(columns) * sizeof(float) * rows;
	case GLM_WEAVED:
		return weave_row_bytes(columns, bits) * rows;
	default:
		return ((uint64_t)rows + 1) * sizeof(uint64_t) +
		       entries * (sizeof(uint32_t) + (bits ? 1 : sizeof(float)));
	}
}

static trib_status no_room(uint64_t bytes)
{
	return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %llu MiB of data of this worker",
	                   (unsigned long long)(bytes >> 20) + 1);
}

/* Aligned to cache lines, and 0. */
static void *zeros_make(uint64_t bytes)
{
	uint64_t whole = (bytes / LINE + 1) * LINE;
	void *made = whole == (size_t)whole ? aligned_alloc(LINE, (size_t)whole) : NULL;

	if (made)
		memset(made, 0, (size_t)whole);
	return made;
}

trib_status matrix_make(struct glm_matrix *matrix, enum glm_layout layout, uint32_t rows,
                        uint32_t columns, uint64_t entries, uint32_t bits)
{
	uint64_t bytes = matrix_bytes(layout, rows, columns, entries, bits);
	bool fits = true;

	*matrix = (struct glm_matrix){
		.layout = layout, .rows = rows, .columns = columns, .bits = bits
	};
	if (bits > GLM_BITS_MAX || (layout == GLM_WEAVED && !bits) || (layout == GLM_DENSE && bits))
		return status_fail(
			TRIB_ERR_ARGUMENT,
			"a weaved matrix has 1 to %u bits, a dense one floats; not %u bits",
			GLM_BITS_MAX, bits);
	if (layout == GLM_DENSE) {
		matrix->stride = dense_stride(columns);
		fits = (matrix->dense = zeros_make(bytes)) != NULL;
	} else if (layout == GLM_WEAVED) {
		matrix->weave_stride = weave_row_bytes(columns, bits);
		fits = (matrix->weave = zeros_make(bytes)) != NULL;
	} else {
		matrix->start = calloc((size_t)rows + 1, sizeof(*matrix->start));
		fits = matrix->start && matrix_entries_resize(matrix, entries) == TRIB_OK;
	}
	if (fits)
		return TRIB_OK;
	matrix_free(matrix);
	return no_room(bytes);
}

static bool array_resize(void **array, uint64_t n, size_t each)
{
	/* An empty array has room too, so that a pointer is never NULL for lack of entries. */
	uint64_t bytes = (n ? n : 1) * each;
	void *made = bytes == (size_t)bytes ? realloc(*array, (size_t)bytes) : NULL;

	if (made)
		*array = made;
	return made != NULL;
}

trib_status matrix_entries_resize(struct glm_matrix *matrix, uint64_t entries)
{
	void *column = matrix->column, *value = matrix->value, *code = matrix->code;
	bool fits = array_resize(&column, entries, sizeof(*matrix->column)) &&
	            (matrix->bits ? array_resize(&code, entries, sizeof(*matrix->code))
	                          : array_resize(&value, entries, sizeof(*matrix->value)));

	matrix->column = column;
	matrix->value = value;
	matrix->code = code;
	return fits ? TRIB_OK : no_room(entries * 8);
}

void matrix_free(struct glm_matrix *matrix)
{
	free(matrix->start);
	free(matrix->column);
	free(matrix->value);
	free(matrix->code);
	free(matrix->dense);
	free(matrix->weave);
	*matrix = (struct glm_matrix){ 0 };
}
