/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/model/model_file.h"

#include "glm/model/model_bytes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char magic[8] = "TRIBGLM\n";
#define VERSION 1u
#define CLASSES_MAX 1024u
#define COLUMNS_MAX (1u << 26)

enum { FLAG_FROM_ZERO = 1, FLAG_CSV = 2, FLAG_NAMES = 4, FLAGS_ALL = 7 };

static size_t names_bytes(const trib_glm_model *model)
{
	size_t bytes = 0;

	for (uint32_t j = 0; model->names && j < model->columns; j++)
		bytes += strlen(model->names[j]) + 1;
	return bytes;
}

trib_status trib_glm_model_write(const trib_glm_model *model, const char *path)
{
	struct bytes_writer out;
	trib_status status = bytes_create(&out, path);
	char update[16] = { 0 };

	if (status != TRIB_OK)
		return status;
	memcpy(update, model->update, strnlen(model->update, sizeof(update) - 1));
	bytes_put(&out, magic, sizeof(magic));
	bytes_put_u32(&out, VERSION);
	bytes_put_u32(&out, (uint32_t)model->loss);
	bytes_put_u32(&out, model->classes);
	bytes_put_u32(&out, model->vectors);
	bytes_put_u32(&out, model->columns);
	bytes_put_u32(&out, (model->from_zero ? FLAG_FROM_ZERO : 0) |
	                            (model->is_csv ? FLAG_CSV : 0) |
	                            (model->names ? FLAG_NAMES : 0));
	bytes_put(&out, update, sizeof(update));
	bytes_put_u32(&out, model->bits);
	bytes_put_u32(&out, model->batch);
	bytes_put_u32(&out, model->epochs);
	bytes_put_u32(&out, 0);
	bytes_put_u64(&out, model->rows);
	bytes_put_u64(&out, model->seed);
	bytes_put_f64(&out, model->rate);
	bytes_put_f64(&out, model->decay);
	bytes_put_f64(&out, model->l1);
	bytes_put_f64(&out, model->l2);
	bytes_put_f64(&out, model->train.loss);
	bytes_put_f64(&out, model->train.accuracy);
	bytes_put_u64(&out, names_bytes(model));
	bytes_put_floats(&out, model->labels, model->classes);
	bytes_put_floats(&out, model->bias, model->vectors);
	bytes_put_floats(&out, model->x, (size_t)model->vectors * model->columns);
	for (uint32_t j = 0; model->names && j < model->columns; j++)
		bytes_put(&out, model->names[j], strlen(model->names[j]) + 1);
	return bytes_commit(&out);
}

/* ---- reading ---- */

static trib_status damaged(const char *what)
{
	return status_fail(TRIB_ERR_ARGUMENT, "the model is damaged: %s", what);
}

static bool floats_are_finite(const float *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(values[i]))
			return false;
	return true;
}

/* The names are texts that end with 0, one a column, and nothing else. */
static trib_status names_parse(trib_glm_model *model, const uint8_t *bytes, uint64_t n)
{
	char **names = calloc((size_t)model->columns + 1, sizeof(*names));
	const char *at = (const char *)bytes, *end = at + n;
	trib_status status;

	if (!names)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for names");
	for (uint32_t j = 0; j < model->columns; j++) {
		const char *zero = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;

		if (!zero) {
			free(names);
			return damaged("a column has no name");
		}
		names[j] = (char *)(uintptr_t)at;
		at = zero + 1;
	}
	status = at == end ? model_set_names(model, names) : damaged("there are too many names");
	free(names);
	return status;
}

static trib_status shape_check(uint32_t loss, uint32_t classes, uint32_t vectors, uint32_t columns)
{
	if (loss >= GLM_LOSSES_N)
		return damaged("its loss is unknown");
	if (columns > COLUMNS_MAX || classes > CLASSES_MAX)
		return damaged("it is too large");
	if (vectors != (classes > 2 ? classes : 1) || classes == 1 ||
	    (classes == 0) != (loss == GLM_LOSS_LINEAR))
		return damaged("its loss and its classes do not go together");
	return TRIB_OK;
}

static trib_status body_parse(struct bytes_reader *in, trib_glm_model *model, uint32_t flags,
                              uint64_t n_names)
{
	size_t n = (size_t)model->vectors * model->columns;
	const uint8_t *names;

	model->labels = bytes_get_floats(in, model->classes);
	model->bias = bytes_get_floats(in, model->vectors);
	model->x = bytes_get_floats(in, n);
	names = bytes_get(in, n_names);
	if (in->failed || in->at != in->end)
		return damaged("its length is wrong");
	if (!model->labels || !model->bias || !model->x)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a model of %u columns",
		                   model->columns);
	if (!floats_are_finite(model->labels, model->classes) ||
	    !floats_are_finite(model->bias, model->vectors) || !floats_are_finite(model->x, n))
		return damaged("a number in it is not finite");
	for (uint32_t c = 1; c < model->classes; c++)
		if (!(model->labels[c - 1] < model->labels[c]))
			return damaged("its labels are not in order");
	if (!(flags & FLAG_NAMES))
		return n_names ? damaged("it has names that it should not have") : TRIB_OK;
	return names_parse(model, names, n_names);
}

static trib_status head_parse(struct bytes_reader *in, trib_glm_model *model)
{
	uint32_t version = bytes_get_u32(in), loss = bytes_get_u32(in), flags;
	const uint8_t *update;
	uint64_t n_names;
	trib_status status;

	if (version != VERSION)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "the model has version %u, and this program knows version %u",
		                   version, VERSION);
	model->classes = bytes_get_u32(in);
	model->vectors = bytes_get_u32(in);
	model->columns = bytes_get_u32(in);
	flags = bytes_get_u32(in);
	update = bytes_get(in, sizeof(model->update));
	model->bits = bytes_get_u32(in);
	model->batch = bytes_get_u32(in);
	model->epochs = bytes_get_u32(in);
	bytes_get_u32(in);
	model->rows = bytes_get_u64(in);
	model->seed = bytes_get_u64(in);
	model->rate = bytes_get_f64(in);
	model->decay = bytes_get_f64(in);
	model->l1 = bytes_get_f64(in);
	model->l2 = bytes_get_f64(in);
	model->train.loss = bytes_get_f64(in);
	model->train.accuracy = bytes_get_f64(in);
	n_names = bytes_get_u64(in);
	if (in->failed || !update || update[sizeof(model->update) - 1])
		return damaged("its head is cut");
	memcpy(model->update, update, sizeof(model->update));
	if (flags & ~(uint32_t)FLAGS_ALL)
		return damaged("it has flags that this program does not know");
	model->loss = (enum glm_loss)loss;
	model->from_zero = flags & FLAG_FROM_ZERO;
	model->is_csv = flags & FLAG_CSV;
	status = shape_check(loss, model->classes, model->vectors, model->columns);
	return status == TRIB_OK ? body_parse(in, model, flags, n_names) : status;
}

trib_status model_parse(const uint8_t *bytes, size_t n, trib_glm_model **model)
{
	struct bytes_reader in;
	trib_status status = bytes_open(&in, "model of trib glm", magic, bytes, n);
	trib_glm_model *made;

	*model = NULL;
	if (status != TRIB_OK)
		return status;
	made = calloc(1, sizeof(*made));
	if (!made)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a model");
	status = head_parse(&in, made);
	if (status == TRIB_OK)
		*model = made;
	else
		trib_glm_model_free(made);
	return status;
}

trib_status trib_glm_model_read(const char *path, trib_glm_model **model)
{
	uint8_t *bytes;
	size_t n;
	trib_status status = bytes_load(path, &bytes, &n);

	*model = NULL;
	if (status == TRIB_OK) {
		status = model_parse(bytes, n, model);
		if (status != TRIB_OK)
			status_fail(status, "%s: %s", path, trib_last_error());
	}
	free(bytes);
	return status;
}
