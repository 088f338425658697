/* SPDX-License-Identifier: Apache-2.0 */
/* trib glm inspect: what a model is. */
#include "options/json_writer.h"
#include "cli/glm/glm_command.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct {
	uint64_t top;
	bool json;
} given = { .top = 10 };

static const struct option_row rows[] = {
	{ "top", 0, OPTION_COUNT, &given.top, "N", "show the N largest weights (default 10)",
	  "50" },
	{ "json", 0, OPTION_JSON, &given.json, "FILE", "print JSON, or write it to FILE", NULL },
	{ 0 },
};

static const struct options options = {
	"trib glm inspect [OPTION]... MODEL",
	"Says what a model is: its largest weights, how many weights are 0, and how it was "
	"trained.",
	"trib glm inspect m.bin --top 20",
	rows,
};

/* One weight. */
struct weight {
	uint32_t column;
	float value;
};

static int weight_compare(const void *a, const void *b)
{
	const struct weight *x = a, *y = b;
	float size_x = fabsf(x->value), size_y = fabsf(y->value);

	if (size_x != size_y)
		return size_x < size_y ? 1 : -1;
	return (x->column > y->column) - (x->column < y->column);
}

/* All weights of a vector, the largest first; the caller frees them. */
static struct weight *weights_sort(const trib_glm_model_info *info, uint32_t vector)
{
	struct weight *weights = calloc((size_t)info->columns + 1, sizeof(*weights));

	for (uint32_t j = 0; weights && j < info->columns; j++)
		weights[j] =
			(struct weight){ j, info->weights[(size_t)vector * info->columns + j] };
	if (weights)
		qsort(weights, info->columns, sizeof(*weights), weight_compare);
	return weights;
}

static uint32_t nonzeros_count(const trib_glm_model_info *info, uint32_t vector)
{
	const float *x = info->weights + (size_t)vector * info->columns;
	uint32_t n = 0;

	for (uint32_t j = 0; j < info->columns; j++)
		n += x[j] != 0;
	return n;
}

static double norm_of(const trib_glm_model_info *info, uint32_t vector)
{
	const float *x = info->weights + (size_t)vector * info->columns;
	double sum = 0;

	for (uint32_t j = 0; j < info->columns; j++)
		sum += (double)x[j] * (double)x[j];
	return sqrt(sum);
}

/* The label that a positive activation of the vector speaks for; NaN in a regression. */
static double vector_label(const trib_glm_model_info *info, uint32_t vector)
{
	if (!info->classes)
		return (double)NAN;
	return (double)info->labels[info->vectors == 1 ? 1 : vector];
}

static void column_name(const trib_glm_model_info *info, uint32_t column, char *out, size_t room)
{
	if (info->names)
		snprintf(out, room, "%s", info->names[column]);
	else
		snprintf(out, room, "%u", column + (uint32_t)info->first_index);
}

/* ---- text ---- */

static void vector_print(const trib_glm_model_info *info, uint32_t vector)
{
	struct weight *weights = weights_sort(info, vector);
	uint32_t n = nonzeros_count(info, vector);
	char name[256];

	if (!weights)
		return;
	printf("\n");
	if (info->classes)
		printf("for label %.9g: ", vector_label(info, vector));
	printf("bias %.6g; %u of %u weights are not 0 (%.2f %%); norm %.6g\n",
	       (double)info->bias[vector], n, info->columns,
	       info->columns ? 100.0 * n / info->columns : 0.0, norm_of(info, vector));
	printf("  %-24s %12s\n", "column", "weight");
	for (uint32_t i = 0; i < given.top && i < n; i++) {
		column_name(info, weights[i].column, name, sizeof(name));
		printf("  %-24s %12.6g\n", name, (double)weights[i].value);
	}
	free(weights);
}

static void model_print(const trib_glm_model_info *info)
{
	printf("loss %s; %u columns; ", info->loss, info->columns);
	if (info->classes) {
		printf("labels");
		for (uint32_t i = 0; i < info->classes && i < 20; i++)
			printf(" %.9g", (double)info->labels[i]);
		printf(info->classes > 20 ? " ...\n" : "\n");
	} else {
		printf("regression\n");
	}
	printf("trained on %" PRIu64 " rows, %d epochs, batch %d, seed %" PRIu64 ", ", info->rows,
	       info->epochs, info->batch, info->seed);
	if (info->bits)
		printf("%d bits", info->bits);
	else
		printf("float");
	printf("; %s, rate %.6g, decay %.6g, l1 %.6g, l2 %.6g\n", info->update, info->rate,
	       info->decay, info->l1, info->l2);
	printf("on its training data: loss %.6f", info->train.loss);
	if (info->classes)
		printf(", accuracy %.2f %%", 100 * info->train.accuracy);
	printf("\n");
	for (uint32_t v = 0; v < info->vectors; v++)
		vector_print(info, v);
}

/* ---- JSON ---- */

static void vector_put(struct json_writer *json, const trib_glm_model_info *info, uint32_t vector)
{
	struct weight *weights = weights_sort(info, vector);
	uint32_t n = nonzeros_count(info, vector);
	char name[256];

	json_open_object(json, NULL);
	json_put_number(json, "label", "%.9g", vector_label(info, vector));
	json_put_number(json, "bias", "%.9g", (double)info->bias[vector]);
	json_put_count(json, "nonzeros", n);
	json_put_number(json, "norm", "%.9g", norm_of(info, vector));
	json_open_list(json, "top");
	for (uint32_t i = 0; weights && i < given.top && i < n; i++) {
		column_name(info, weights[i].column, name, sizeof(name));
		json_open_object(json, NULL);
		json_put_text(json, "column", name);
		json_put_number(json, "weight", "%.9g", (double)weights[i].value);
		json_close(json);
	}
	json_close(json);
	json_close(json);
	free(weights);
}

static trib_status model_put(const trib_glm_model_info *info)
{
	struct json_writer json;
	trib_status status = json_start(&json, "-");

	if (status != TRIB_OK)
		return status;
	json_put_text(&json, "loss", info->loss);
	json_put_text(&json, "update", info->update);
	json_put_count(&json, "columns", info->columns);
	json_put_count(&json, "classes", info->classes);
	json_put_count(&json, "rows", info->rows);
	json_put_count(&json, "epochs", (unsigned long long)info->epochs);
	json_put_count(&json, "batch", (unsigned long long)info->batch);
	json_put_count(&json, "bits", (unsigned long long)info->bits);
	json_put_count(&json, "seed", info->seed);
	json_put_number(&json, "rate", "%.9g", info->rate);
	json_put_number(&json, "decay", "%.9g", info->decay);
	json_put_number(&json, "l1", "%.9g", info->l1);
	json_put_number(&json, "l2", "%.9g", info->l2);
	json_put_number(&json, "train_loss", "%.9g", info->train.loss);
	json_put_number(&json, "train_accuracy", "%.9g", info->train.accuracy);
	json_open_list(&json, "vectors");
	for (uint32_t v = 0; v < info->vectors; v++)
		vector_put(&json, info, v);
	json_close(&json);
	return json_finish(&json, "-");
}

int glm_inspect_command(int argc, char **argv)
{
	trib_glm_model_info info = { .struct_size = sizeof(info) };
	trib_glm_model *model;
	const char *path;
	trib_status status;
	int code;

	if (!glm_options_parse(&options, argc, argv, &path, 1, &code))
		return code;
	status = trib_glm_model_read(path, &model);
	if (status == TRIB_OK)
		status = trib_glm_model_describe(model, &info);
	if (status == TRIB_OK && given.json)
		status = model_put(&info);
	else if (status == TRIB_OK)
		model_print(&info);
	if (status != TRIB_OK)
		fprintf(stderr, "trib glm inspect: %s\n", trib_last_error());
	trib_glm_model_free(model);
	return status == TRIB_OK ? 0 : 1;
}
