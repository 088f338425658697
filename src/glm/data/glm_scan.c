/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/data/column_spread.h"
#include "glm/data/glm_load.h"
#include "glm/text/row_reader.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_LEAST 1024u
#define DIGEST_FACTOR 0x9fb21c651e98df25ull /* as of model_bytes */

static bool array_grow(void *array, uint32_t from, uint32_t to, size_t each)
{
	void **at = array;
	char *made = realloc(*at, to * each);

	if (!made)
		return false;
	memset(made + from * each, 0, (to - from) * each);
	*at = made;
	return true;
}

/* Room for at least `columns` columns. */
static bool columns_grow(struct glm_stats *stats, uint32_t *room, uint32_t columns, bool quantized)
{
	uint32_t more = *room ? *room : COLUMNS_LEAST;

	while (more < columns)
		more += more / 2;
	if (!array_grow(&stats->min, *room, more, sizeof(*stats->min)) ||
	    !array_grow(&stats->max, *room, more, sizeof(*stats->max)) ||
	    !array_grow(&stats->count, *room, more, sizeof(*stats->count)) ||
	    (quantized && !array_grow(&stats->spread, *room, more, sizeof(*stats->spread))))
		return false;
	*room = more;
	return true;
}

/* Every step is a bijection of the digest. */
static uint64_t digest_add(uint64_t digest, uint32_t index, float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	digest = (digest ^ ((uint64_t)index << 32 | bits)) * DIGEST_FACTOR;
	return digest << 29 | digest >> 35;
}

/* Indices are those of the file: a base that was found gives the digest of one that was given. */
static void row_digest(struct glm_stats *stats, const struct glm_row *row)
{
	uint32_t first = stats->format == GLM_LIBSVM && stats->base == GLM_BASE_ONE;
	uint64_t digest = digest_add(stats->digest, row->n, row->label + 0.0f);

	for (uint32_t i = 0; i < row->n; i++)
		digest = digest_add(digest, row->column[i] + first, row->value[i]);
	stats->digest = digest;
}

static void row_count(struct glm_stats *stats, const struct glm_row *row)
{
	uint32_t i;

	row_digest(stats, row);
	for (i = 0; i < row->n; i++) {
		uint32_t column = row->column[i];
		float value = row->value[i];
		bool first = !stats->count[column]++;

		if (first || value < stats->min[column])
			stats->min[column] = value;
		if (first || value > stats->max[column])
			stats->max[column] = value;
		if (stats->spread)
			spread_add(&stats->spread[column], value, first);
	}
	stats->nonzeros += row->n;
	stats->rows++;
}

/* *good: the row's label fits the task. An error: it does not, and bad rows are not skipped. */
static trib_status label_count(struct glm_stats *stats, const struct glm_rules *rules,
                               struct row_reader *reader, float label, bool *good)
{
	struct glm_labels *labels = &stats->labels;
	bool classes = rules->task == GLM_TWO_CLASS || rules->task == GLM_MULTI_CLASS;

	*good = false;
	if (classes && rules->labels && labels_find(rules->labels, label) == rules->labels->n)
		return row_reader_reject(reader, "the label %.9g is not one of the model", label);
	if (rules->task == GLM_TWO_CLASS && labels->n == 2 && labels_find(labels, label) == 2)
		return row_reader_reject(reader,
		                         "the label %.9g is a third one, after %.9g and %.9g, and "
		                         "the task has two classes (--classes sets more)",
		                         label, labels->value[0], labels->value[1]);
	if (!labels_add(labels, label) && classes)
		return row_reader_fail(reader,
		                       "more than %u different labels are no classes: is this a "
		                       "regression?",
		                       GLM_LABELS_MAX);
	if (!stats->rows || label < stats->label_min)
		stats->label_min = label;
	if (!stats->rows || label > stats->label_max)
		stats->label_max = label;
	*good = true;
	return TRIB_OK;
}

static trib_status rows_count(struct row_reader *reader, const struct glm_rules *rules,
                              struct glm_stats *stats, bool *has_zero)
{
	uint32_t room = 0;
	struct glm_row *row;
	trib_status status;

	stats->columns = row_reader_columns(reader);
	if (!columns_grow(stats, &room, stats->columns, rules->quantized))
		return row_reader_fail(reader, "no memory for %u columns", stats->columns);
	while ((status = row_reader_next(reader, &row)) == TRIB_OK && row) {
		uint32_t columns = row->columns;
		bool good;

		if ((status = label_count(stats, rules, reader, row->label, &good)) != TRIB_OK)
			return status;
		if (!good)
			continue;
		if (columns > room && !columns_grow(stats, &room, columns, rules->quantized))
			return row_reader_fail(reader, "no memory for %u columns", columns);
		if (stats->rows == UINT32_MAX)
			return row_reader_fail(reader, "more than %u rows", UINT32_MAX);
		stats->columns = columns > stats->columns ? columns : stats->columns;
		*has_zero |= row->has_zero;
		row_count(stats, row);
	}
	return status;
}

/* Columns were counted from index 0, and the file begins with 1. */
static void columns_shift(struct glm_stats *stats)
{
	if (!stats->columns)
		return;
	stats->columns--;
	memmove(stats->min, stats->min + 1, stats->columns * sizeof(*stats->min));
	memmove(stats->max, stats->max + 1, stats->columns * sizeof(*stats->max));
	memmove(stats->count, stats->count + 1, stats->columns * sizeof(*stats->count));
	if (stats->spread)
		memmove(stats->spread, stats->spread + 1, stats->columns * sizeof(*stats->spread));
}

/* What is wrong with a file whose rows are all good. */
static trib_status stats_check(const struct glm_stats *stats, const struct glm_rules *rules,
                               struct row_reader *reader)
{
	if (!stats->rows)
		return row_reader_fail(reader, "there are no rows in it");
	if (!stats->columns && !rules->labels)
		return row_reader_fail(reader, "there are no features in it");
	if (rules->task == GLM_TWO_CLASS && !rules->labels && stats->labels.n < 2)
		return row_reader_fail(reader,
		                       "all rows have the label %.9g, and the task has two "
		                       "classes",
		                       stats->labels.value[0]);
	return TRIB_OK;
}

trib_status glm_scan(const struct glm_source *source, const struct glm_rules *rules,
                     struct glm_stats *stats, struct glm_problem *problem)
{
	struct row_reader *reader;
	bool has_zero = false;
	trib_status status;

	*stats = (struct glm_stats){ .base = source->base };
	if ((status = row_reader_open(&reader, source, rules, problem)) != TRIB_OK)
		return status;
	stats->format = row_reader_format(reader);
	stats->once = row_reader_is_once(reader);
	status = rows_count(reader, rules, stats, &has_zero);
	if (stats->base == GLM_BASE_AUTO) {
		stats->base = has_zero ? GLM_BASE_ZERO : GLM_BASE_ONE;
		if (!has_zero && stats->format == GLM_LIBSVM)
			columns_shift(stats);
	}
	if (status == TRIB_OK)
		status = stats_check(stats, rules, reader);
	if (status == TRIB_OK)
		status = row_reader_names(reader, &stats->names);
	row_reader_close(reader);
	return status;
}

void glm_stats_free(struct glm_stats *stats)
{
	free(stats->min);
	free(stats->max);
	free(stats->count);
	free(stats->spread);
	free(stats->names);
	*stats = (struct glm_stats){ 0 };
}
