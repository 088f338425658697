/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/data/shard_plan.h"
#include "glm/data/matrix_room.h"

static const char *const layout_names[] = { "sparse", "dense", "weaved" };

const char *layout_name(enum glm_layout layout)
{
	return layout_names[layout];
}

/* Keeps at least one column for each worker before and after the border. */
static uint32_t border_fit(uint32_t border, uint32_t before, uint32_t worker, uint32_t workers,
                           uint32_t columns)
{
	if (border <= before)
		border = before + 1;
	if (border > columns - (workers - worker))
		border = columns - (workers - worker);
	return border;
}

static void columns_even(uint32_t columns, uint32_t workers, uint32_t align, uint32_t *first)
{
	uint32_t w;

	if (!align || columns / align < workers)
		align = 1;
	for (w = 1; w < workers; w++) {
		uint64_t border = (uint64_t)columns * w / workers;

		first[w] = border_fit((uint32_t)((border + align / 2) / align * align),
		                      first[w - 1], w, workers, columns);
	}
}

trib_status shard_columns(const uint32_t *count, uint32_t columns, uint32_t workers, uint32_t align,
                          uint32_t *first)
{
	uint64_t total = columns, done = 0;
	uint32_t j, w = 1;

	if (!workers)
		return status_fail(TRIB_ERR_ARGUMENT, "no workers to split the columns among");
	if (workers > columns)
		return status_fail(TRIB_ERR_CONFIG,
		                   "%u workers for %u columns: each worker needs a column of the "
		                   "model; use at most %u workers, or split by rows",
		                   workers, columns, columns);
	first[0] = 0;
	first[workers] = columns;
	if (!count) {
		columns_even(columns, workers, align, first);
		return TRIB_OK;
	}
	for (j = 0; j < columns; j++)
		total += count[j];
	/* A border stands where the cost up to it is nearest to its share. */
	for (j = 0; j < columns && w < workers; j++) {
		uint64_t cost = (uint64_t)count[j] + 1;

		for (; w < workers && done + cost / 2 >= total / workers * w; w++)
			first[w] = border_fit(j, first[w - 1], w, workers, columns);
		done += cost;
	}
	for (; w < workers; w++)
		first[w] = border_fit(columns, first[w - 1], w, workers, columns);
	return TRIB_OK;
}

trib_status shard_rows_check(uint64_t rows, uint32_t workers)
{
	if (workers <= rows)
		return TRIB_OK;
	return status_fail(TRIB_ERR_CONFIG,
	                   "%u workers for %llu rows: each worker needs a row; use at most %llu "
	                   "workers, or split by columns",
	                   workers, (unsigned long long)rows, (unsigned long long)rows);
}

static uint64_t shape_bytes(const struct layout_shape *shape, enum glm_layout layout)
{
	return matrix_bytes(layout, (uint32_t)shape->rows, shape->columns, shape->entries,
	                    shape->bits);
}

static trib_status too_large(uint64_t bytes, uint64_t memory, const char *layout)
{
	return status_fail(TRIB_ERR_NO_MEMORY,
	                   "the data of a worker take %llu MiB in the %s layout, and %llu MiB are "
	                   "there: use more workers or a lower precision",
	                   (unsigned long long)(bytes >> 20) + 1, layout,
	                   (unsigned long long)(memory >> 20));
}

trib_status layout_choose(const struct layout_shape *shape, uint64_t memory,
                          enum glm_layout *layout)
{
	enum glm_layout wide = shape->bits ? GLM_WEAVED : GLM_DENSE;
	uint64_t sparse_bytes = shape_bytes(shape, GLM_SPARSE), bytes = shape_bytes(shape, wide);
	double cells = (double)shape->rows * shape->columns;
	bool is_wide = shape->bits ? (double)bytes <= LAYOUT_WEAVED_RATIO * (double)sparse_bytes
	                           : (double)shape->entries >= LAYOUT_DENSE_SHARE * cells;

	if (memory && sparse_bytes > memory && bytes > memory)
		return sparse_bytes < bytes ? too_large(sparse_bytes, memory, "sparse")
		                            : too_large(bytes, memory, layout_name(wide));
	if (memory && (is_wide ? bytes : sparse_bytes) > memory)
		is_wide = !is_wide;
	*layout = is_wide ? wide : GLM_SPARSE;
	return TRIB_OK;
}
