/* SPDX-License-Identifier: Apache-2.0 */
/* Files of models and checkpoints: they come back as they were, and damage is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "glm/model/model_bytes.h"
#include "glm/model/model_file.h"
#include "glm/train/checkpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/trib_glm_XXXXXX", path[64];

static int folder_make(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/model", folder);
	return 0;
}

static int folder_remove(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static trib_glm_model *model_example(bool names)
{
	static char *const words[] = { "age", "", "a column" };
	trib_glm_model *model;

	assert_int_equal(model_make(&model, 4, 4, 3), TRIB_OK);
	model->loss = GLM_LOSS_HINGE;
	strcpy(model->update, "sgd");
	for (uint32_t i = 0; i < 12; i++)
		model->x[i] = (float)i / 3 - 1;
	for (uint32_t i = 0; i < 4; i++) {
		model->bias[i] = -(float)i;
		model->labels[i] = (float)i * 2 - 3;
	}
	model->bits = 4;
	model->batch = 64;
	model->epochs = 10;
	model->rows = 1234567890123ull;
	model->seed = 7;
	model->rate = 0.125;
	model->l2 = 1e-4;
	model->from_zero = true;
	model->train = (trib_glm_score){ 0.5, (double)NAN };
	assert_int_equal(model_set_names(model, names ? words : NULL), TRIB_OK);
	return model;
}

static void test_round_trip(void **state)
{
	(void)state;
	for (int names = 0; names < 2; names++) {
		trib_glm_model *model = model_example(names), *read;
		trib_glm_model_info info = { .struct_size = sizeof(info) };

		assert_int_equal(trib_glm_model_write(model, path), TRIB_OK);
		assert_int_equal(trib_glm_model_read(path, &read), TRIB_OK);
		assert_int_equal(trib_glm_model_describe(read, &info), TRIB_OK);
		assert_string_equal(info.loss, "hinge");
		assert_string_equal(info.update, "sgd");
		assert_true(info.columns == 3 && info.vectors == 4 && info.classes == 4);
		assert_memory_equal(info.weights, model->x, 12 * sizeof(float));
		assert_memory_equal(info.bias, model->bias, 4 * sizeof(float));
		assert_memory_equal(info.labels, model->labels, 4 * sizeof(float));
		assert_true(info.rows == model->rows && info.seed == 7 && info.bits == 4);
		assert_true(info.rate == 0.125 && info.l2 == 1e-4 && info.first_index == 0);
		assert_true(isnan(info.train.accuracy) && info.train.loss == 0.5);
		assert_int_equal(info.names != NULL, names);
		if (names) {
			assert_string_equal(info.names[0], "age");
			assert_string_equal(info.names[2], "a column");
		}
		trib_glm_model_free(read);
		trib_glm_model_free(model);
	}
}

static void test_damage(void **state)
{
	trib_glm_model *model = model_example(true), *read;
	uint8_t *bytes;
	size_t n;

	(void)state;
	assert_int_equal(trib_glm_model_write(model, path), TRIB_OK);
	assert_int_equal(bytes_load(path, &bytes, &n), TRIB_OK);
	assert_int_equal(model_parse(bytes, n, &read), TRIB_OK);
	trib_glm_model_free(read);
	for (size_t i = 0; i < n; i++) {
		bytes[i] ^= 1u << i % 8;
		assert_int_not_equal(model_parse(bytes, n, &read), TRIB_OK);
		assert_null(read);
		bytes[i] ^= 1u << i % 8;
	}
	for (size_t i = 0; i < n; i++)
		assert_int_not_equal(model_parse(bytes, i, &read), TRIB_OK);
	free(bytes);
	trib_glm_model_free(model);
}

static void test_missing(void **state)
{
	trib_glm_model *model;

	(void)state;
	assert_int_equal(trib_glm_model_read("/nonexistent/m.bin", &model), TRIB_ERR_SYSTEM);
	assert_non_null(strstr(trib_last_error(), "/nonexistent/m.bin"));
	assert_int_not_equal(trib_glm_model_read("/", &model), TRIB_OK);
	assert_int_not_equal(trib_glm_model_read("/dev/null", &model), TRIB_OK);
}

static void test_scores(void **state)
{
	static const uint32_t columns[] = { 2, 0, 99 };
	static const float values[] = { 3, 6, 1000 };
	trib_glm_model *model = model_example(false);
	double scores[4];

	(void)state;
	trib_glm_model_score(model, columns, values, 3, scores);
	for (uint32_t v = 0; v < 4; v++)
		assert_true(
			fabs(scores[v] - ((double)model->bias[v] + 3 * (double)model->x[v * 3 + 2] +
		                          6 * (double)model->x[v * 3])) < 1e-9);
	assert_true(trib_glm_model_label(model, scores) == 3); /* the last vector is largest */
	trib_glm_model_free(model);
}

static void checkpoint_example(struct checkpoint *state)
{
	*state = (struct checkpoint){ .fingerprint = 99, .classes = 2, .columns = 5, .epochs = 3 };
	state->history = calloc(4, sizeof(*state->history));
	state->x = calloc(10, sizeof(float));
	state->h = calloc(10, sizeof(float));
	state->bias = calloc(4, sizeof(float));
	for (uint32_t i = 0; i < 10; i++) {
		state->x[i] = (float)i;
		state->h[i] = -(float)i;
	}
	state->history[2].train_loss = 0.25;
	state->history[2].saturated = 17;
	state->bias[3] = 8;
}

static void test_checkpoint(void **state)
{
	struct checkpoint out, in;
	uint8_t *bytes;
	size_t n;

	(void)state;
	checkpoint_example(&out);
	assert_int_equal(checkpoint_write(&out, path), TRIB_OK);
	assert_int_equal(checkpoint_read(path, &in), TRIB_OK);
	assert_true(in.fingerprint == 99 && in.classes == 2 && in.columns == 5 && in.epochs == 3);
	assert_memory_equal(in.x, out.x, 10 * sizeof(float));
	assert_memory_equal(in.h, out.h, 10 * sizeof(float));
	assert_true(in.history[2].train_loss == 0.25 && in.history[2].saturated == 17);
	assert_true(in.bias[3] == 8);
	checkpoint_free(&in);
	assert_int_equal(bytes_load(path, &bytes, &n), TRIB_OK);
	for (size_t i = 0; i < n; i++) {
		bytes[i] ^= 0x10;
		assert_int_not_equal(checkpoint_parse(bytes, n, &in), TRIB_OK);
		checkpoint_free(&in);
		bytes[i] ^= 0x10;
		assert_int_not_equal(checkpoint_parse(bytes, i, &in), TRIB_OK);
		checkpoint_free(&in);
	}
	free(bytes);
	checkpoint_free(&out);
}

/* A file that cannot be written leaves nothing behind, and the old file stays. */
static void test_no_room(void **state)
{
	trib_glm_model *model = model_example(false), *read;

	(void)state;
	assert_int_equal(trib_glm_model_write(model, path), TRIB_OK);
	assert_int_not_equal(trib_glm_model_write(model, "/nonexistent/m.bin"), TRIB_OK);
	assert_int_equal(trib_glm_model_read(path, &read), TRIB_OK);
	trib_glm_model_free(read);
	trib_glm_model_free(model);
}

/* A device or a pipe is not replaced by a file; a link to one stays, too. */
static void test_no_file(void **state)
{
	trib_glm_model *model = model_example(false);
	char link[sizeof(path) + 8];
	struct stat about;

	(void)state;
	snprintf(link, sizeof(link), "%s.link", path);
	assert_int_equal(symlink("/dev/null", link), 0);
	assert_int_equal(bytes_try(link), TRIB_OK);
	assert_int_equal(trib_glm_model_write(model, link), TRIB_OK);
	assert_int_equal(lstat(link, &about), 0);
	assert_true(S_ISLNK(about.st_mode));
	unlink(link);
	assert_int_not_equal(bytes_try("/nonexistent/m.bin"), TRIB_OK);
	assert_int_not_equal(bytes_try("/tmp"), TRIB_OK);
	trib_glm_model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damage),
		cmocka_unit_test(test_missing),    cmocka_unit_test(test_scores),
		cmocka_unit_test(test_checkpoint), cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_no_file),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
