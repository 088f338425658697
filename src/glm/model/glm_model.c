/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/model/glm_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

trib_status model_make(trib_glm_model **model, uint32_t vectors, uint32_t classes, uint32_t columns)
{
	trib_glm_model *made = calloc(1, sizeof(*made));

	*model = NULL;
	if (made) {
		made->vectors = vectors;
		made->classes = classes;
		made->columns = columns;
		made->labels = calloc(classes + 1, sizeof(*made->labels));
		made->bias = calloc(vectors, sizeof(*made->bias));
		made->x = calloc((size_t)vectors * columns + 1, sizeof(*made->x));
	}
	if (!made || !made->labels || !made->bias || !made->x) {
		trib_glm_model_free(made);
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a model of %u columns",
		                   columns);
	}
	*model = made;
	return TRIB_OK;
}

trib_status model_set_names(trib_glm_model *model, char *const *names)
{
	size_t bytes = 0, table = model->columns * sizeof(char *);
	char *text;

	if (!names)
		return TRIB_OK;
	for (uint32_t j = 0; j < model->columns; j++)
		bytes += strlen(names[j]) + 1;
	model->names = malloc(table + bytes + 1);
	if (!model->names)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for the names of %u columns",
		                   model->columns);
	text = (char *)model->names + table;
	for (uint32_t j = 0; j < model->columns; j++) {
		model->names[j] = text;
		text = stpcpy(text, names[j]) + 1;
	}
	return TRIB_OK;
}

void trib_glm_model_free(trib_glm_model *model)
{
	if (!model)
		return;
	free(model->labels);
	free(model->bias);
	free(model->x);
	free(model->names);
	free(model);
}

trib_status trib_glm_model_describe(const trib_glm_model *model, trib_glm_model_info *info)
{
	trib_glm_model_info all = {
		.struct_size = sizeof(all),
		.loss = loss_name(model->loss),
		.update = model->update,
		.columns = model->columns,
		.vectors = model->vectors,
		.classes = model->classes,
		.labels = model->labels,
		.bias = model->bias,
		.weights = model->x,
		.names = (const char *const *)model->names,
		.first_index = !model->from_zero,
		.bits = (int)model->bits,
		.batch = (int)model->batch,
		.epochs = (int)model->epochs,
		.rows = model->rows,
		.seed = model->seed,
		.rate = model->rate,
		.decay = model->decay,
		.l1 = model->l1,
		.l2 = model->l2,
		.train = model->train,
	};
	size_t size = info->struct_size;

	if (size < sizeof(info->struct_size))
		return status_fail(TRIB_ERR_ARGUMENT, "struct_size is not set");
	size = size < sizeof(all) ? size : sizeof(all);
	all.struct_size = size;
	memcpy(info, &all, size);
	return TRIB_OK;
}

void trib_glm_model_score(const trib_glm_model *model, const uint32_t *columns, const float *values,
                          size_t n, double *scores)
{
	for (uint32_t v = 0; v < model->vectors; v++) {
		const float *x = model->x + (size_t)v * model->columns;
		double sum = (double)model->bias[v];

		for (size_t i = 0; i < n; i++)
			if (columns[i] < model->columns)
				sum += (double)x[columns[i]] * (double)values[i];
		scores[v] = sum;
	}
}

double trib_glm_model_label(const trib_glm_model *model, const double *scores)
{
	uint32_t best = 0;

	if (!model->classes)
		return scores[0];
	if (model->vectors == 1)
		return (double)model->labels[scores[0] > 0];
	for (uint32_t v = 1; v < model->vectors; v++)
		if (scores[v] > scores[best])
			best = v;
	return (double)model->labels[best];
}

double trib_glm_probability(double score)
{
	return loss_probability(score);
}
