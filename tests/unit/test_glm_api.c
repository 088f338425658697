/* SPDX-License-Identifier: Apache-2.0 */
/* <tributary/glm.h> as a program uses it: options, defaults, errors, predictions, resume. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <tributary/glm.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/trib_glm_XXXXXX";

static const char *in_folder(const char *name)
{
	static char paths[4][96];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(*paths), "%s/%s", folder, name);
	return path;
}

static const char *file_make(const char *name, const char *text)
{
	const char *path = in_folder(name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	return path;
}

/* Rows whose label follows from column 1 alone; column 3 is large, column 2 is noise. */
static const char *rows_make(const char *name, const char *negative, const char *positive)
{
	static char text[65536];
	size_t n = 0;

	for (unsigned i = 0; i < 400; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s 1:%g 2:%g 3:%g\n",
		                      i % 2 ? positive : negative, i % 2 ? 0.75 : -0.5,
		                      i * 37 % 100 / 100.0 + 0.01, 3000.0 + i * 13 % 50);
	return file_make(name, text);
}

static int folder_make(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

struct seen {
	trib_glm_setup setup;
	trib_glm_epoch epochs[64];
	unsigned n;
};

static void setup_see(void *context, const trib_glm_setup *setup)
{
	((struct seen *)context)->setup = *setup;
}

static void epoch_see(void *context, const trib_glm_epoch *epoch)
{
	struct seen *seen = context;

	if (seen->n < 64)
		seen->epochs[seen->n++] = *epoch;
}

static trib_glm_options options_make(struct seen *seen)
{
	trib_glm_options options = TRIB_GLM_OPTIONS_INIT;

	memset(seen, 0, sizeof(*seen));
	options.on_setup = setup_see;
	options.on_epoch = epoch_see;
	options.context = seen;
	options.batch = 16;
	return options;
}

static void test_two_classes(void **state)
{
	static const char *const losses[] = { "logistic", "hinge", "squared-hinge" };
	const char *path = rows_make("rows.svm", "0", "1");
	static struct seen seen;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		trib_glm_options options = options_make(&seen);
		trib_glm_model_info info = { .struct_size = sizeof(info) };
		trib_glm_predict_result result = { .struct_size = sizeof(result) };
		trib_glm_model *model;

		options.loss = losses[i % 3];
		options.update = i < 3 ? "adagrad" : "sgd";
		options.test = path;
		assert_int_equal(trib_glm_train(NULL, path, &options, &model), TRIB_OK);
		assert_int_equal(seen.n, 10);
		assert_true(seen.setup.rows == 400 && seen.setup.columns == 3 &&
		            seen.setup.classes == 2);
		assert_true(seen.setup.l2 == 1.0 / 400);
		assert_true(seen.epochs[9].train.loss < seen.epochs[0].train.loss);
		assert_true(seen.epochs[9].test.accuracy == 1 && !seen.epochs[9].saturated);
		assert_int_equal(trib_glm_predict(model, path, NULL, &result), TRIB_OK);
		assert_true(result.rows == 400 && result.known == 400 &&
		            result.score.accuracy == 1);
		/* The test file is the training file, and fixed point is fine. */
		assert_true(fabs(result.score.loss - seen.epochs[9].test.loss) < 1e-4);
		assert_int_equal(trib_glm_model_describe(model, &info), TRIB_OK);
		assert_true(fabs(info.train.loss - result.score.loss) < 1e-4);
		trib_glm_model_free(model);
	}
}

static void test_regression(void **state)
{
	static char text[65536];
	static struct seen seen;
	trib_glm_options options = options_make(&seen);
	trib_glm_model *model;
	const uint32_t columns[] = { 0, 1 };
	const float values[] = { 0.5f, 1 };
	double score;
	size_t n = 0;

	(void)state;
	for (unsigned i = 0; i < 500; i++) {
		double a = i * 7 % 11 / 11.0 + 0.001, b = i * 5 % 13 / 13.0 + 0.001;

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%.6f 1:%.6f 2:%.6f\n",
		                      4000 * a - 3000 * b + 500, a, b);
	}
	options.loss = "linear";
	options.epochs = 60;
	options.rate = 0.5;
	options.l2 = -1;
	assert_int_equal(trib_glm_train(NULL, file_make("line.svm", text), &options, &model),
	                 TRIB_OK);
	trib_glm_model_score(model, columns, values, 2, &score);
	assert_true(fabs(score - (4000 * 0.5 - 3000 + 500)) < 5);
	assert_true(isnan(seen.epochs[9].train.accuracy));
	trib_glm_model_free(model);
}

static void test_resume(void **state)
{
	const char *path = rows_make("resume.svm", "-1", "1");
	char first[96], second[96], checkpoint[96];
	static struct seen seen;
	trib_glm_options options = options_make(&seen);
	trib_glm_model *model;

	(void)state;
	snprintf(first, sizeof(first), "%s", in_folder("first"));
	snprintf(second, sizeof(second), "%s", in_folder("second"));
	snprintf(checkpoint, sizeof(checkpoint), "%s", in_folder("state"));
	options.epochs = 7;
	assert_int_equal(trib_glm_train(NULL, path, &options, &model), TRIB_OK);
	assert_int_equal(trib_glm_model_write(model, first), TRIB_OK);
	trib_glm_model_free(model);
	options.epochs = 3;
	options.checkpoint = checkpoint;
	assert_int_equal(trib_glm_train(NULL, path, &options, &model), TRIB_OK);
	trib_glm_model_free(model);
	options.epochs = 7;
	options.resume = 1;
	options.threads = 2;
	seen.n = 0;
	assert_int_equal(trib_glm_train(NULL, path, &options, &model), TRIB_OK);
	assert_int_equal(seen.setup.first_epoch, 4);
	assert_int_equal(seen.n, 7); /* also those of before */
	assert_int_equal(trib_glm_model_write(model, second), TRIB_OK);
	trib_glm_model_free(model);
	{
		char command[256];

		snprintf(command, sizeof(command), "cmp %s %s", first, second);
		assert_int_equal(system(command), 0);
	}
	options.seed = 99;
	assert_int_equal(trib_glm_train(NULL, path, &options, &model), TRIB_ERR_CONFIG);
	assert_non_null(strstr(trib_last_error(), checkpoint));
	assert_null(model);
}

static void wrong(trib_glm_options options, const char *path, const char *words)
{
	trib_glm_model *model;

	assert_int_not_equal(trib_glm_train(NULL, path, &options, &model), TRIB_OK);
	assert_null(model);
	if (!strstr(trib_last_error(), words))
		fail_msg("\"%s\" has no \"%s\"", trib_last_error(), words);
}

#define WRONG(field, value, words)                          \
	do {                                                \
		trib_glm_options bad = options_make(&seen); \
		bad.field = value;                          \
		wrong(bad, path, words);                    \
	} while (0)

static void test_errors(void **state)
{
	const char *path = rows_make("good.svm", "-1", "1");
	static struct seen seen;
	trib_glm_options good = options_make(&seen);

	(void)state;
	WRONG(loss, "poisson", "loss must be");
	WRONG(update, "adam", "update must be");
	WRONG(parallel, "both", "parallel must be");
	WRONG(exchange, "pigeons", "no exchange \"pigeons\"");
	WRONG(exchange, "tributary", "needs a communicator");
	WRONG(bits, 9, "bits must be");
	WRONG(batch, -1, "batch must be");
	WRONG(micro, -1, "micro must be");
	WRONG(epochs, -1, "epochs must be");
	WRONG(threads, 257, "threads must be");
	WRONG(classes, 1, "classes must be");
	WRONG(rate, -1, "rate must be");
	WRONG(rate, (double)NAN, "rate must be");
	WRONG(l1, -1, "l1 must be");
	WRONG(l2, (double)INFINITY, "l2 and decay");
	WRONG(format, "parquet", "format must be");
	WRONG(test, "/nonexistent", "/nonexistent");
	WRONG(struct_size, sizeof(good) + 8, "newer version");
	wrong(good, "/nonexistent", "/nonexistent");
	wrong(good, file_make("nan.svm", "1 1:1\n-1 1:nan\n"), "nan.svm:2: ");
	wrong(good, file_make("third.svm", "1 1:1\n-1 1:2\n0 1:3\n"), "third.svm:3: ");
	wrong(good, file_make("alone.svm", "1 1:1\n1 1:2\n"), "alone.svm");
	WRONG(label, "none", "needs labels");
	wrong(good, "synthetic:rows=0", "at least a row");
	wrong(good, "synthetic:color=3", "color=3");
	wrong(good, "synthetic:rows=9,classes=0", "classes=2 or more");
}

static void test_skip(void **state)
{
	static struct seen seen;
	trib_glm_options options = options_make(&seen);
	trib_glm_model *model;

	(void)state;
	options.skip_bad_rows = 1;
	assert_int_equal(trib_glm_train(NULL,
	                                file_make("skip.svm", "1 1:1\n-1 1:nan\n-1 1:2\n1 2:1\n"),
	                                &options, &model),
	                 TRIB_OK);
	assert_true(seen.setup.skipped_rows == 1 && seen.setup.rows == 3);
	trib_glm_model_free(model);
}

static void labels_see(void *context, const trib_glm_prediction *p)
{
	unsigned *bad = context;

	*bad += !isnan(p->given) || p->label != (p->row % 2 ? 1 : 0);
}

/* The rows of `text` have no labels; they are right if every second one is positive. */
static trib_status unlabelled(const trib_glm_model *model, const char *text, const char *label,
                              bool missing_zero, unsigned *bad)
{
	trib_glm_predict_options how = TRIB_GLM_PREDICT_INIT;
	trib_glm_predict_result result = { .struct_size = sizeof(result) };
	trib_status status;

	*bad = 0;
	how.label = label;
	how.missing_zero = missing_zero;
	how.on_row = labels_see;
	how.context = bad;
	status = trib_glm_predict(model, file_make("new.csv", text), &how, &result);
	if (status == TRIB_OK)
		assert_true(result.rows == 2 && result.known == 0 && isnan(result.score.loss) &&
		            isnan(result.score.accuracy));
	return status;
}

static void test_csv_without_labels(void **state)
{
	static struct seen seen;
	trib_glm_options options = options_make(&seen);
	trib_glm_model *model;
	unsigned bad;

	(void)state;
	assert_int_equal(trib_glm_train(NULL,
	                                file_make("rows.csv", "is,a,b\n0,-1,0\n1,1,0\n"
	                                                      "0,-2,1\n1,2,1\n"),
	                                &options, &model),
	                 TRIB_OK);
	/* As many columns as the model has features; or as the caller says. */
	assert_int_equal(unlabelled(model, "a,b\n-1,0\n1,0\n", NULL, false, &bad), TRIB_OK);
	assert_int_equal(bad, 0);
	assert_int_equal(unlabelled(model, "-1,0\n1,0\n", "none", false, &bad), TRIB_OK);
	assert_int_equal(bad, 0);
	assert_int_equal(unlabelled(model, "0,-1,0\n1,1,0\n", "none", false, &bad),
	                 TRIB_ERR_CONFIG);
	assert_non_null(strstr(trib_last_error(), "3 columns, but the model has 2 features"));
	assert_int_equal(unlabelled(model, "0,-1,0,7\n1,1,0,7\n", NULL, false, &bad),
	                 TRIB_ERR_CONFIG);
	assert_non_null(strstr(trib_last_error(), "3 columns beside the label"));
	assert_int_equal(unlabelled(model, "-1,\n1,NA\n", NULL, false, &bad), TRIB_ERR_CONFIG);
	assert_non_null(strstr(trib_last_error(), "new.csv:1: field 2 is missing"));
	assert_int_equal(unlabelled(model, "-1,\n1,NA\n", NULL, true, &bad), TRIB_OK);
	assert_int_equal(bad, 0);
	trib_glm_model_free(model);
}

/* A missing field is a bad row, or a zero: then the model is that of a file with zeros. */
static void test_missing_fields(void **state)
{
	const char *holes = file_make("holes.csv", "0,-1,\n1,1,?\n0,-2,1\n1,2,1\n");
	const char *zeros = file_make("zeros.csv", "0,-1,0\n1,1,0\n0,-2,1\n1,2,1\n");
	static struct seen seen;
	trib_glm_options options = options_make(&seen);
	trib_glm_model_info info[2] = { { .struct_size = sizeof(*info) },
		                        { .struct_size = sizeof(*info) } };
	trib_glm_model *models[2];

	(void)state;
	wrong(options, holes, "holes.csv:1: field 3 is missing (--missing zero");
	options.missing_zero = 1;
	assert_int_equal(trib_glm_train(NULL, holes, &options, &models[0]), TRIB_OK);
	assert_int_equal(trib_glm_train(NULL, zeros, &options, &models[1]), TRIB_OK);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(trib_glm_model_describe(models[i], &info[i]), TRIB_OK);
	assert_memory_equal(info[0].weights, info[1].weights, 2 * sizeof(float));
	for (unsigned i = 0; i < 2; i++)
		trib_glm_model_free(models[i]);
}

/* Scores are sums of integers: threads share the rows, more than fit into one sum of workers. */
static void test_score_of_threads(void **state)
{
	trib_glm_score scores[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		trib_glm_options options = TRIB_GLM_OPTIONS_INIT;
		trib_glm_model_info info = { .struct_size = sizeof(info) };
		trib_glm_model *model;

		options.threads = i % 2 ? 3 : 1;
		options.parallel = i < 2 ? "model" : "data";
		options.classes = 3;
		options.epochs = 1;
		assert_int_equal(trib_glm_train(NULL, "synthetic:rows=2500,columns=20,classes=3",
		                                &options, &model),
		                 TRIB_OK);
		assert_int_equal(trib_glm_model_describe(model, &info), TRIB_OK);
		scores[i] = info.train;
		assert_true(info.train.accuracy > 0.5);
		assert_true(info.train.loss == scores[0].loss);
		assert_true(info.train.accuracy == scores[0].accuracy);
		trib_glm_model_free(model);
	}
}

/* A caller with an older header has a shorter struct. */
static void test_older_caller(void **state)
{
	const char *path = rows_make("older.svm", "-1", "1");
	trib_glm_options options = TRIB_GLM_OPTIONS_INIT;
	trib_glm_model_info info = { .struct_size = offsetof(trib_glm_model_info, columns) };
	trib_glm_model *model;

	(void)state;
	options.struct_size = offsetof(trib_glm_options, bits);
	options.loss = "hinge";
	options.bits = 77; /* beyond what this caller knows */
	assert_int_equal(trib_glm_train(NULL, path, &options, &model), TRIB_OK);
	info.columns = 12345;
	assert_int_equal(trib_glm_model_describe(model, &info), TRIB_OK);
	assert_string_equal(info.loss, "hinge");
	assert_int_equal(info.columns, 12345);
	trib_glm_model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_classes),
		cmocka_unit_test(test_regression),
		cmocka_unit_test(test_resume),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_skip),
		cmocka_unit_test(test_older_caller),
		cmocka_unit_test(test_csv_without_labels),
		cmocka_unit_test(test_missing_fields),
		cmocka_unit_test(test_score_of_threads),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
