/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Public data sets have the published numbers of rows, columns, values and labels. They are in
 * TRIB_DATA, or in ../shared/data beside the checkout. Without any of them the test is skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "glm/data/glm_load.h"
#include "glm_values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct known {
	const char *file, *label;
	enum glm_base base;
	enum glm_task task;
	uint32_t rows, columns;
	uint64_t nonzeros;  /* 0: not published */
	uint64_t last_rows; /* rows with the largest label */
	uint32_t labels;
};

/* The first line of a9a.t ends with 123:0, which tells the width. */
static const struct known sets[] = {
	{ "a9a/a9a.xz", NULL, GLM_BASE_ONE, GLM_TWO_CLASS, 32561, 123, 451592, 7841, 2 },
	{ "a9a/a9a.t.xz", NULL, GLM_BASE_ONE, GLM_TWO_CLASS, 16281, 123, 225731, 3846, 2 },
	{ "amazon-sentiment/books_train.svmlight.xz", NULL, GLM_BASE_AUTO, GLM_TWO_CLASS, 2000,
	  5000, 0, 1000, 2 },
	{ "amazon-sentiment/kitchen_test.svmlight.xz", NULL, GLM_BASE_ZERO, GLM_TWO_CLASS, 5945,
	  5000, 0, 0, 2 },
	{ "covtype-20k/covtype.20k.data.xz", "-1", GLM_BASE_ONE, GLM_MULTI_CLASS, 20000, 54, 0,
	  2160, 7 },
};

/* The path; NULL: the file is not there. */
static const char *known_path(const struct known *known)
{
	static char path[4096];
	const char *folder = getenv("TRIB_DATA");

	snprintf(path, sizeof(path), "%s/%s", folder ? folder : TRIB_DATA_FOLDER, known->file);
	return access(path, R_OK) ? NULL : path;
}

/* Codes of 4 bits: the matrix is near to that of floats. */
static void codes_are_near(const struct glm_source *source, const struct glm_rules *rules,
                           const struct glm_stats *stats)
{
	struct glm_shard shard = { .count = stats->columns, .bits = 4 };
	float *low = malloc(stats->columns * sizeof(*low));
	float *step = malloc(stats->columns * sizeof(*step));
	float *one = malloc(stats->columns * sizeof(*one));
	float *other = malloc(stats->columns * sizeof(*other)), *labels, *again;
	struct glm_matrix codes, floats;
	struct glm_problem problem;
	double sum = 0, off = 0;
	uint32_t i, j;

	assert_true(low && step && one && other);
	quantize_plan(stats, 0, stats->columns, shard.bits, low, step);
	shard.low = low;
	shard.step = step;
	assert_int_equal(glm_load(source, rules, stats, &shard, &codes, &labels, &problem),
	                 TRIB_OK);
	shard.bits = 0;
	assert_int_equal(glm_load(source, rules, stats, &shard, &floats, &again, &problem),
	                 TRIB_OK);
	for (i = 0; i < floats.rows; i++) {
		matrix_row_values(&floats, i, NULL, NULL, one);
		matrix_row_values(&codes, i, low, step, other);
		for (j = 0; j < floats.columns; j++) {
			sum += fabs((double)one[j]);
			off += fabs((double)one[j] - other[j]);
		}
	}
	print_message("%s: 4 bits change %.4f of the values\n", source->path, off / sum);
	assert_true(off < 0.05 * sum);
	assert_memory_equal(labels, again, floats.rows * sizeof(*labels));
	matrix_free(&codes);
	matrix_free(&floats);
	free(labels);
	free(again);
	free(low);
	free(step);
	free(one);
	free(other);
}

static void known_sets_are_read(void **state)
{
	struct glm_problem problem;
	struct glm_stats stats;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
		const struct known *known = &sets[i];
		struct glm_source source = { .path = known_path(known),
			                     .label = known->label,
			                     .base = known->base };
		struct glm_rules rules = { .task = known->task, .twice = true, .quantized = true };

		if (!source.path) {
			printf("omitted: %s is not there\n", known->file);
			continue;
		}
		if (glm_scan(&source, &rules, &stats, &problem) != TRIB_OK)
			fail_msg("%s", trib_last_error());
		assert_int_equal(stats.rows, known->rows);
		assert_int_equal(stats.columns, known->columns);
		assert_int_equal(stats.labels.n, known->labels);
		if (known->nonzeros)
			assert_int_equal(stats.nonzeros, known->nonzeros);
		if (known->last_rows)
			assert_int_equal(stats.labels.rows[stats.labels.n - 1], known->last_rows);
		codes_are_near(&source, &rules, &stats);
		glm_stats_free(&stats);
	}
}

/* A file that counts from 0 is refused with the remedy, unless the user says so. */
static void base_is_asked_for(void **state)
{
	struct glm_source source = { .path = known_path(&sets[2]) };
	struct glm_rules rules = { 0 };
	struct glm_problem problem;
	struct glm_stats stats;

	(void)state;
	if (!source.path)
		return;
	assert_true(glm_scan(&source, &rules, &stats, &problem) != TRIB_OK);
	assert_non_null(strstr(trib_last_error(), ":1: feature index 0: "));
	glm_stats_free(&stats);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_sets_are_read),
		cmocka_unit_test(base_is_asked_for),
	};
	bool any = false;
	unsigned i;

	for (i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		any |= known_path(&sets[i]) != NULL;
	if (!any) {
		printf("skipped: a9a, amazon-sentiment and covtype-20k are not in " TRIB_DATA_FOLDER
		       "\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
