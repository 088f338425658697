/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/model/glm_model.h"

#include "glm/text/row_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct predict_sums {
	double loss;
	uint64_t correct;
};

/* The class of a label; `classes`: the model does not know it. */
static uint32_t class_find(const trib_glm_model *model, float label)
{
	uint32_t c = 0;

	while (c < model->classes && model->labels[c] != label)
		c++;
	return c;
}

/* False: the model does not know the label. */
static bool row_judge(const trib_glm_model *model, const trib_glm_prediction *p, float given,
                      struct predict_sums *sums)
{
	uint32_t class = class_find(model, given);

	if (isnan(given))
		return false;
	if (!model->classes) {
		sums->loss += loss_value(model->loss, p->scores[0], (double)given);
		return true;
	}
	if (class == model->classes)
		return false;
	sums->correct += p->label == p->given;
	for (uint32_t v = 0; v < model->vectors; v++)
		sums->loss += loss_value(model->loss, p->scores[v],
		                         class == (model->vectors == 1 ? 1 : v) ? 1 : -1);
	return true;
}

static trib_status rows_predict(const trib_glm_model *model, struct row_reader *reader,
                                const trib_glm_predict_options *options, double *scores,
                                trib_glm_predict_result *result)
{
	struct predict_sums sums = { 0 };
	struct glm_row *row;
	trib_status status;

	while ((status = row_reader_next(reader, &row)) == TRIB_OK && row) {
		trib_glm_prediction p = { .struct_size = sizeof(p),
			                  .row = result->rows++,
			                  .given = (double)row->label,
			                  .scores = scores,
			                  .n_scores = model->vectors };

		trib_glm_model_score(model, row->column, row->value, row->n, scores);
		p.label = trib_glm_model_label(model, scores);
		result->known += row_judge(model, &p, row->label, &sums);
		if (options->on_row)
			options->on_row(options->context, &p);
	}
	result->score.loss = result->known ? sums.loss / (double)result->known : (double)NAN;
	result->score.accuracy = result->known && model->classes
	                                 ? (double)sums.correct / (double)result->known
	                                 : (double)NAN;
	return status;
}

bool model_format_find(const char *name, enum glm_format *format)
{
	if (!strcmp(name, "auto"))
		*format = GLM_FORMAT_AUTO;
	else if (!strcmp(name, "libsvm") || !strcmp(name, "svmlight"))
		*format = GLM_LIBSVM;
	else if (!strcmp(name, "csv"))
		*format = GLM_CSV;
	else
		return false;
	return true;
}

trib_status trib_glm_predict(const trib_glm_model *model, const char *path,
                             const trib_glm_predict_options *options,
                             trib_glm_predict_result *result)
{
	trib_glm_predict_options all = TRIB_GLM_PREDICT_INIT;
	struct glm_source source = { .path = path,
		                     .base = model->from_zero ? GLM_BASE_ZERO : GLM_BASE_ONE };
	struct glm_rules rules = { 0 };
	struct glm_problem problem;
	trib_glm_predict_result out = { .struct_size = sizeof(out) };
	struct row_reader *reader;
	double *scores;
	trib_status status;

	if (options)
		memcpy(&all, options,
		       options->struct_size < sizeof(all) ? options->struct_size : sizeof(all));
	if (all.format && !model_format_find(all.format, &source.format))
		return status_fail(TRIB_ERR_ARGUMENT, "the format is libsvm or csv, not \"%s\"",
		                   all.format);
	source.label = all.label;
	source.missing = all.missing_zero ? GLM_MISSING_ZERO : GLM_MISSING_BAD;
	source.features = model->is_csv ? model->columns : 0;
	rules.skip = all.skip_bad_rows;
	scores = calloc(model->vectors, sizeof(*scores));
	if (!scores)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for scores");
	status = row_reader_open(&reader, &source, &rules, &problem);
	if (status == TRIB_OK) {
		status = rows_predict(model, reader, &all, scores, &out);
		out.skipped_rows = problem.skipped;
		row_reader_close(reader);
	}
	free(scores);
	if (result) {
		size_t size = result->struct_size < sizeof(out) ? result->struct_size : sizeof(out);

		out.struct_size = size;
		memcpy(result, &out, size);
	}
	return status;
}
