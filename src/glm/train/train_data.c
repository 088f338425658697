/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/train/train_data.h"

#include "base/status.h"
#include "glm/data/matrix_room.h"
#include "glm/data/quantize.h"
#include "glm/data/shard_plan.h"
#include "glm/model/glm_model.h"
#include "glm/train/train_plan.h"

#include <stdlib.h>
#include <string.h>

static enum glm_base base_read(int base)
{
	return base == -1 ? GLM_BASE_ZERO : base == -2 ? GLM_BASE_AUTO : GLM_BASE_ONE;
}

/* Labels must be of the kind that the loss needs. */
static trib_status synthetic_scan(struct train_files *files, const struct train_rule *rule)
{
	if ((rule->loss == GLM_LOSS_LINEAR) != !files->synthetic.classes)
		return status_fail(
			TRIB_ERR_CONFIG, "synthetic data for the loss %s need classes=%s",
			loss_name(rule->loss), rule->loss == GLM_LOSS_LINEAR ? "0" : "2 or more");
	return synthetic_stats(&files->synthetic, &files->stats);
}

trib_status files_scan(struct train_files *files, const char *path, const trib_glm_options *o,
                       const struct train_rule *rule)
{
	trib_status status;

	files->source = (struct glm_source){ .path = path,
		                             .base = base_read(o->base),
		                             .label = o->label,
		                             .missing = o->missing_zero ? GLM_MISSING_ZERO
		                                                        : GLM_MISSING_BAD };
	if (o->label && !strcmp(o->label, "none"))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "a training needs labels: \"none\" is for predictions");
	if (o->format && !model_format_find(o->format, &files->source.format))
		return status_fail(TRIB_ERR_ARGUMENT, "format must be libsvm or csv");
	if (name_is_synthetic(path)) {
		status = synthetic_parse(path, &files->synthetic);
		return status == TRIB_OK ? synthetic_scan(files, rule) : status;
	}
	files->rules = (struct glm_rules){ .skip = o->skip_bad_rows,
		                           .task = rule_task(o, rule),
		                           .twice = true,
		                           .quantized = rule->bits > 0 };
	status = glm_scan(&files->source, &files->rules, &files->stats, &files->problem);
	files->skipped = files->problem.skipped;
	/* From here on it is known where indices begin. */
	files->source.base = files->stats.base;
	return status;
}

/* All workers choose the same layout, from the shape of the whole data. */
static trib_status maps_plan(struct train_files *files, uint32_t bits)
{
	const struct glm_stats *stats = &files->stats;
	struct layout_shape shape = { .rows = stats->rows,
		                      .entries = stats->nonzeros,
		                      .columns = stats->columns,
		                      .bits = bits };

	if (bits) {
		files->low = calloc(stats->columns, sizeof(*files->low));
		files->step = calloc(stats->columns, sizeof(*files->step));
		if (!files->low || !files->step)
			return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u columns",
			                   stats->columns);
		if (files->synthetic.rows)
			synthetic_maps(stats->columns, bits, files->low, files->step);
		else
			quantize_plan(stats, 0, stats->columns, bits, files->low, files->step);
		shape.entries =
			quantize_entries(stats, 0, stats->columns, bits, files->low, files->step);
	}
	return layout_choose(&shape, 0, &files->layout);
}

/* Divides the values by the units of their columns, powers of two: that is exact. */
static void values_scale(struct glm_matrix *m, const float *inverse)
{
	if (m->layout == GLM_SPARSE && m->value)
		for (uint64_t i = 0; i < m->start[m->rows]; i++)
			m->value[i] *= inverse[m->column[i]];
	if (m->layout == GLM_DENSE)
		for (uint64_t r = 0; r < m->rows; r++)
			for (uint32_t j = 0; j < m->columns; j++)
				m->dense[r * m->stride + j] *= inverse[j];
}

static trib_status columns_plan(const struct train_files *files, const struct exchange *x,
                                struct glm_shard *shard)
{
	uint32_t workers = (uint32_t)x->size, rank = (uint32_t)x->rank;
	bool sparse = files->layout == GLM_SPARSE;
	uint32_t *first = calloc((size_t)workers + 1, sizeof(*first));
	trib_status status;

	if (!first)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u workers", workers);
	status = shard_columns(sparse ? files->stats.count : NULL, files->stats.columns, workers,
	                       GLM_GROUP, first);
	if (status == TRIB_OK) {
		shard->first = first[rank];
		shard->count = first[rank + 1] - first[rank];
	}
	free(first);
	return status;
}

static struct row_share rows_share(const struct trainer *t, uint64_t rows)
{
	struct row_share share = { .rows = (uint32_t)rows, .batch = t->rule.batch, .size = 1 };

	if (t->rule.data_parallel) {
		share.rank = (uint32_t)t->exchange.rank;
		share.size = (uint32_t)t->exchange.size;
	}
	return share;
}

trib_status files_load(struct train_files *files, struct trainer *t)
{
	struct train_data *data = &t->data;
	struct glm_shard shard = { .count = files->stats.columns,
		                   .workers = 1,
		                   .bits = t->rule.bits };
	trib_status status = maps_plan(files, t->rule.bits);

	files->inverse = calloc((size_t)files->stats.columns + 1, sizeof(*files->inverse));
	if (status == TRIB_OK && !files->inverse)
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u columns",
		                     files->stats.columns);
	if (status != TRIB_OK)
		return status;
	inverses_fill(&t->rule, &files->stats, 0, files->stats.columns, files->inverse);
	data->share = rows_share(t, files->stats.rows);
	if (t->rule.data_parallel) {
		shard.rank = data->share.rank;
		shard.workers = data->share.size;
		status = shard_rows_check(files->stats.rows, shard.workers);
	} else {
		status = columns_plan(files, &t->exchange, &shard);
	}
	if (status != TRIB_OK)
		return status;
	shard.layout = files->layout;
	if (t->rule.bits) {
		shard.low = data->low = files->low + shard.first;
		shard.step = data->step = files->step + shard.first;
	}
	t->first_column = shard.first;
	if (files->synthetic.rows)
		return synthetic_fill(&files->synthetic, &shard, &data->matrix, &data->targets);
	status = glm_load(&files->source, &files->rules, &files->stats, &shard, &data->matrix,
	                  &data->targets, &files->problem);
	if (status == TRIB_OK)
		values_scale(&data->matrix, files->inverse + shard.first);
	return status;
}

trib_status files_load_test(struct train_files *files, const char *path, struct trainer *t)
{
	struct glm_shard shard = { .first = t->first_column,
		                   .count = t->data.matrix.columns,
		                   .workers = 1,
		                   .layout = GLM_SPARSE };
	struct glm_problem problem;
	trib_status status;

	files->test_source = files->source;
	files->test_source.path = path;
	files->test_rules = files->rules;
	files->test_rules.quantized = false;
	if (files->rules.task != GLM_REGRESSION)
		files->test_rules.labels = &files->stats.labels;
	status = glm_scan(&files->test_source, &files->test_rules, &files->test_stats, &problem);
	if (status != TRIB_OK)
		return status;
	files->has_test = true;
	files->skipped += problem.skipped;
	files->test.share = rows_share(t, files->test_stats.rows);
	shard.rank = files->test.share.rank;
	shard.workers = files->test.share.size;
	status = glm_load(&files->test_source, &files->test_rules, &files->test_stats, &shard,
	                  &files->test.matrix, &files->test.targets, &problem);
	if (status == TRIB_OK)
		values_scale(&files->test.matrix, files->inverse + t->first_column);
	return status;
}

void files_free(struct train_files *files, struct trainer *t)
{
	matrix_free(&t->data.matrix);
	free(t->data.targets);
	matrix_free(&files->test.matrix);
	free(files->test.targets);
	free(files->low);
	free(files->step);
	free(files->inverse);
	glm_stats_free(&files->stats);
	glm_stats_free(&files->test_stats);
}
