/* SPDX-License-Identifier: Apache-2.0 */
/* Which worker holds which columns, and in which layout; synthetic data are the same in every
 * shard. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "glm/data/shard_plan.h"
#include "glm/data/synthetic.h"
#include "glm_files.h"
#include "glm_values.h"
#include "short.h"

#include <math.h>
#include <string.h>

static uint64_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 33) % below);
}

static void columns_are_balanced(void **state)
{
	uint64_t cases = test_cases("splits", 30000), c;
	uint32_t count[500], first[65];

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (c = 0; c < cases; c++) {
		uint32_t columns = 1 + draw(500), most = 0, w, j;
		uint32_t workers = 1 + draw(columns < 64 ? columns : 64);
		uint64_t total = 0, worst = 0;

		for (j = 0; j < columns; j++) {
			count[j] = draw(1u << draw(16));
			most = count[j] > most ? count[j] : most;
			total += count[j] + 1;
		}
		assert_int_equal(shard_columns(count, columns, workers, 0, first), TRIB_OK);
		assert_int_equal(first[0], 0);
		assert_int_equal(first[workers], columns);
		for (w = 0; w < workers; w++) {
			uint64_t cost = 0;

			assert_true(first[w] < first[w + 1]);
			for (j = first[w]; j < first[w + 1]; j++)
				cost += count[j] + 1;
			worst = cost > worst ? cost : worst;
		}
		/* At most a column more than a fair share, but for columns that must be given away.
		 */
		assert_true(worst <= total / workers + (uint64_t)most + workers + 1);
	}
}

static void dense_columns_are_even(void **state)
{
	uint32_t first[9];

	(void)state;
	assert_int_equal(shard_columns(NULL, 1000, 4, 128, first), TRIB_OK);
	assert_memory_equal(first, ((uint32_t[]){ 0, 256, 512, 768, 1000 }), 5 * sizeof(*first));
	assert_int_equal(shard_columns(NULL, 10, 4, 128, first), TRIB_OK);
	assert_memory_equal(first, ((uint32_t[]){ 0, 2, 5, 7, 10 }), 5 * sizeof(*first));
	assert_int_equal(shard_columns(NULL, 3, 3, 128, first), TRIB_OK);
	assert_memory_equal(first, ((uint32_t[]){ 0, 1, 2, 3 }), 4 * sizeof(*first));
}

static void too_many_workers_are_errors(void **state)
{
	uint32_t count[3] = { 5, 0, 0 }, first[5];

	(void)state;
	assert_true(shard_columns(count, 3, 4, 0, first) != TRIB_OK);
	assert_string_equal(trib_last_error(),
	                    "4 workers for 3 columns: each worker needs a column of the model; use "
	                    "at most 3 workers, or split by rows");
	/* Columns without a value are columns. */
	assert_int_equal(shard_columns(count, 3, 3, 0, first), TRIB_OK);
	assert_int_equal(shard_rows_check(3, 3), TRIB_OK);
	assert_true(shard_rows_check(3, 4) != TRIB_OK);
	assert_string_equal(trib_last_error(),
	                    "4 workers for 3 rows: each worker needs a row; use at "
	                    "most 3 workers, or split by columns");
}

static enum glm_layout chosen(uint64_t rows, uint32_t columns, uint64_t entries, uint32_t bits,
                              uint64_t memory)
{
	struct layout_shape shape = { rows, entries, columns, bits };
	enum glm_layout layout;

	if (layout_choose(&shape, memory, &layout) != TRIB_OK)
		fail_msg("%s", trib_last_error());
	return layout;
}

static void layouts_follow_density_and_memory(void **state)
{
	struct layout_shape shape = { 1000000, 1000000000, 1000, 0 };
	enum glm_layout layout;

	(void)state;
	assert_int_equal(chosen(32561, 123, 451592, 0, 0), GLM_SPARSE);
	assert_int_equal(chosen(32561, 123, 451592, 4, 0), GLM_WEAVED);
	assert_int_equal(chosen(4143, 54877, 817141, 4, 0), GLM_SPARSE);
	assert_int_equal(chosen(20000, 54, 240000, 0, 0), GLM_SPARSE);
	assert_int_equal(chosen(20000, 54, 540000, 0, 0), GLM_DENSE);
	assert_int_equal(chosen(1000, 1000000, 1000000000, 4, 0), GLM_WEAVED);
	/* Dense is larger than sparse if less than half of the values are there. */
	assert_int_equal(chosen(20000, 1000, 6000000, 0, 0), GLM_DENSE);
	assert_int_equal(chosen(20000, 1000, 6000000, 0, 60 << 20), GLM_SPARSE);
	assert_true(layout_choose(&shape, 1 << 30, &layout) != TRIB_OK);
	assert_string_equal(trib_last_error(),
	                    "the data of a worker take 3846 MiB in the dense layout, and 1024 MiB "
	                    "are there: use more workers or a lower precision");
}

static void synthetic_shards_agree(const struct synthetic *synthetic,
                                   const struct glm_matrix *whole, const float *labels,
                                   struct glm_shard shard)
{
	uint32_t workers = shard.workers ? shard.workers : 1, row, j, n = 0;
	float all[200], part[200], low[200], step[200], *own;
	struct glm_matrix matrix = { 0 };

	synthetic_maps(shard.count, shard.bits ? shard.bits : 1, low, step);
	shard.low = low;
	shard.step = step;
	if (synthetic_fill(synthetic, &shard, &matrix, &own) != TRIB_OK)
		fail_msg("%s", trib_last_error());
	for (row = shard.rank; row < synthetic->rows; row += workers, n++) {
		matrix_row_values(whole, row, NULL, NULL, all);
		matrix_row_values(&matrix, n, low, step, part);
		assert_true(own[n] == labels[row]);
		for (j = 0; j < shard.count; j++)
			assert_true(fabsf(part[j] - all[shard.first + j]) <=
			            (shard.bits ? step[j] * 0.50001f : 0));
	}
	assert_int_equal(matrix.rows, n);
	matrix_free(&matrix);
	free(own);
}

/* Text that is written and read again, against data that are made in memory. */
static void synthetic_text_is_the_same(const struct synthetic *synthetic,
                                       const struct glm_matrix *whole, const float *labels)
{
	struct glm_source source = { 0 };
	struct glm_rules rules = { .task = !synthetic->classes       ? GLM_REGRESSION
		                           : synthetic->classes == 2 ? GLM_ANY
		                                                     : GLM_MULTI_CLASS };
	struct glm_shard shard = { .count = synthetic->columns, .layout = GLM_DENSE };
	float one[200], other[200], *read = NULL;
	struct glm_problem problem;
	struct glm_matrix matrix = { 0 };
	struct glm_stats stats;
	char *text = NULL;
	size_t length;
	FILE *file = open_memstream(&text, &length);
	uint32_t row;

	assert_non_null(file);
	assert_int_equal(synthetic_write(synthetic, file, "text"), TRIB_OK);
	fclose(file);
	source.path = file_write(text, length, PACK_PLAIN);
	free(text);
	if (glm_scan(&source, &rules, &stats, &problem) != TRIB_OK ||
	    glm_load(&source, &rules, &stats, &shard, &matrix, &read, &problem) != TRIB_OK)
		fail_msg("%s", trib_last_error());
	assert_int_equal(matrix.rows, synthetic->rows);
	for (row = 0; row < matrix.rows; row++) {
		matrix_row_values(whole, row, NULL, NULL, one);
		matrix_row_values(&matrix, row, NULL, NULL, other);
		assert_memory_equal(one, other, synthetic->columns * sizeof(*one));
		/* A class that happens to have no row moves the places of those above it. */
		if (stats.labels.n == synthetic->classes || synthetic->classes < 3)
			assert_true(read[row] == labels[row]);
	}
	free(read);
	matrix_free(&matrix);
	glm_stats_free(&stats);
}

static void synthetic_data_are_the_same_everywhere(void **state)
{
	static const uint32_t classes[] = { 0, 2, 5 };
	uint64_t cases = test_cases("data sets", 60), c;
	float *labels;

	(void)state;
	for (c = 0; c < cases; c++) {
		struct synthetic synthetic = { .rows = 1 + draw(50),
			                       .columns = 1 + draw(200),
			                       .density = draw(2) ? 1 : (1 + draw(50)) / 100.0,
			                       .skew = draw(4),
			                       .classes = classes[draw(3)],
			                       .noise = draw(2) / 10.0,
			                       .seed = c };
		struct glm_shard shard = { .count = synthetic.columns, .layout = GLM_SPARSE };
		struct glm_matrix whole;

		if (synthetic_fill(&synthetic, &shard, &whole, &labels) != TRIB_OK)
			fail_msg("%s", trib_last_error());
		synthetic_text_is_the_same(&synthetic, &whole, labels);
		shard.first = draw(synthetic.columns);
		shard.count = 1 + draw(synthetic.columns - shard.first);
		shard.workers = draw(4);
		shard.rank = shard.workers ? draw(shard.workers) : 0;
		shard.layout = GLM_DENSE;
		synthetic_shards_agree(&synthetic, &whole, labels, shard);
		shard.bits = 1 + draw(8);
		shard.layout = GLM_WEAVED;
		synthetic_shards_agree(&synthetic, &whole, labels, shard);
		shard.layout = GLM_SPARSE;
		synthetic_shards_agree(&synthetic, &whole, labels, shard);
		matrix_free(&whole);
		free(labels);
	}
}

/* Both classes occur, and noise changes some labels only. */
static void synthetic_labels_make_sense(void **state)
{
	struct synthetic clean = { 2000, 1000, 0.05, 1, 2, 0, 7 }, noisy = clean;
	struct glm_shard shard = { .count = 1, .layout = GLM_DENSE };
	float *labels, *other;
	struct glm_matrix matrix = { 0 };
	uint32_t i, ups = 0, differ = 0;

	(void)state;
	noisy.noise = 0.1;
	assert_int_equal(synthetic_fill(&clean, &shard, &matrix, &labels), TRIB_OK);
	matrix_free(&matrix);
	assert_int_equal(synthetic_fill(&noisy, &shard, &matrix, &other), TRIB_OK);
	matrix_free(&matrix);
	for (i = 0; i < clean.rows; i++) {
		ups += labels[i] > 0;
		differ += labels[i] != other[i];
	}
	assert_in_range(ups, 500, 1500);
	assert_in_range(differ, 50, 150);
	free(labels);
	free(other);
	clean.density = 0;
	assert_true(synthetic_check(&clean) != TRIB_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_balanced),
		cmocka_unit_test(dense_columns_are_even),
		cmocka_unit_test(too_many_workers_are_errors),
		cmocka_unit_test(layouts_follow_density_and_memory),
		cmocka_unit_test(synthetic_data_are_the_same_everywhere),
		cmocka_unit_test(synthetic_labels_make_sense),
	};
	const char *given = getenv("TRIB_TEST_SEED");
	int failed;

	if (given)
		seed = strtoull(given, NULL, 10);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	files_remove();
	return failed;
}
