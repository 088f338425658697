/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/data/glm_load.h"
#include "glm/data/matrix_room.h"
#include "glm/data/row_store.h"
#include "glm/text/row_reader.h"

#include <stdlib.h>
#include <string.h>

static uint32_t shard_rows(const struct glm_shard *shard, uint64_t rows)
{
	uint32_t workers = shard->workers ? shard->workers : 1;

	return (uint32_t)(rows / workers + (shard->rank < rows % workers));
}

/* The first pass had this row with another label, or did not have it. */
static trib_status changed(struct row_reader *reader)
{
	return row_reader_fail(reader, "the file has changed since it was read first");
}

static trib_status label_take(struct row_reader *reader, const struct glm_rules *rules,
                              const struct glm_labels *kinds, float label, float *target,
                              bool *good)
{
	bool classes = rules->task == GLM_TWO_CLASS || rules->task == GLM_MULTI_CLASS;

	*good = !classes || labels_find(kinds, label) < kinds->n;
	*target = *good ? labels_target(kinds, rules->task, label) : 0;
	if (*good)
		return TRIB_OK;
	return row_reader_reject(reader, "the label %.9g is not one of the %s", label,
	                         rules->labels ? "model" : "first two");
}

static trib_status rows_take(struct row_reader *reader, const struct glm_rules *rules,
                             const struct glm_stats *stats, const struct glm_shard *shard,
                             struct row_store *store, float *labels)
{
	const struct glm_labels *kinds = rules->labels ? rules->labels : &stats->labels;
	uint32_t workers = shard->workers ? shard->workers : 1;
	uint64_t rows = 0;
	struct glm_row *row;
	trib_status status;

	while ((status = row_reader_next(reader, &row)) == TRIB_OK && row) {
		bool good;
		float target;

		status = label_take(reader, rules, kinds, row->label, &target, &good);
		if (status != TRIB_OK)
			return status;
		if (!good)
			continue;
		if (rows == stats->rows)
			return changed(reader);
		if (rows++ % workers != shard->rank)
			continue;
		labels[store->rows] = target;
		if ((status = row_store_add(store, row->column, row->value, row->n)) != TRIB_OK)
			return row_reader_fail(reader, "%s", trib_last_error());
	}
	return status == TRIB_OK && rows != stats->rows ? changed(reader) : status;
}

/* Non-zero values of the shard: exact if it has all rows, and else the share of its rows. */
static uint64_t entries_guess(const struct glm_stats *stats, const struct glm_shard *shard)
{
	uint64_t entries = 0;
	uint32_t j;

	for (j = shard->first; j < shard->first + shard->count && j < stats->columns; j++)
		entries += stats->count[j];
	return shard->workers > 1 ? entries / shard->workers : entries;
}

trib_status glm_load(const struct glm_source *source, const struct glm_rules *rules,
                     const struct glm_stats *stats, const struct glm_shard *shard,
                     struct glm_matrix *matrix, float **labels, struct glm_problem *problem)
{
	struct glm_source as_found = *source;
	struct glm_rules as_scanned = *rules;
	uint32_t rows = shard_rows(shard, stats->rows);
	struct row_reader *reader;
	struct row_store store;
	trib_status status;

	*matrix = (struct glm_matrix){ 0 };
	*labels = NULL;
	as_found.format = stats->format;
	as_found.base = stats->base;
	/* The scan counted columns from index 0, so its limit was at a lower index. */
	if (source->base == GLM_BASE_AUTO && stats->base == GLM_BASE_ONE &&
	    stats->format == GLM_LIBSVM)
		as_scanned.columns_max =
			(rules->columns_max ? rules->columns_max : GLM_COLUMNS_MAX) - 1;
	*problem = (struct glm_problem){ 0 };
	if (stats->once)
		return status_fail(TRIB_ERR_CONFIG,
		                   "%s: it can be read only once, and has been read: write it to a "
		                   "file first",
		                   strcmp(source->path, "-") ? source->path : "standard input");
	if ((status = row_reader_open(&reader, &as_found, &as_scanned, problem)) != TRIB_OK)
		return status;
	*labels = malloc(((size_t)rows + 1) * sizeof(**labels));
	if (!*labels)
		status = row_reader_fail(reader, "no memory for %u labels", rows);
	else if ((status = row_store_begin(&store, matrix, shard, rows,
	                                   entries_guess(stats, shard))) != TRIB_OK)
		status = row_reader_fail(reader, "%s", trib_last_error());
	else {
		status = rows_take(reader, rules, stats, shard, &store, *labels);
		row_store_end(&store, status == TRIB_OK);
	}
	row_reader_close(reader);
	if (status != TRIB_OK) {
		matrix_free(matrix);
		free(*labels);
		*labels = NULL;
	}
	return status;
}
