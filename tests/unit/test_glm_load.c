/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a file to matrices: the statistics are those of a table in memory, each shard in each layout
 * has the table's values, and labels that do not fit the task are named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "glm/data/glm_load.h"
#include "glm/data/shard_plan.h"
#include "glm_files.h"
#include "glm_values.h"
#include "short.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS_MAX 60u
#define COLUMNS_MAX 300u

static uint64_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 33) % below);
}

/* What the file holds. */
static struct table {
	uint32_t rows, columns;
	float label[ROWS_MAX];
	float value[ROWS_MAX][COLUMNS_MAX];
} table;

static float value_draw(uint32_t kind)
{
	switch (kind) {
	case 0:
		return 1;
	case 1:
		return (float)draw(12);
	case 2:
		return (float)draw(1001) / 8 - 60;
	case 3:
		return -(float)draw(1000) / 64;
	default:
		return (float)draw(100000) / 1024;
	}
}

static const char *table_draw(enum packing packing)
{
	static char text[1 << 20];
	static const uint32_t rare[] = { 1, 2, 20 };
	uint32_t i, j, last = 0;
	size_t length = 0;

	table.rows = 1 + draw(ROWS_MAX);
	table.columns = 1 + draw(COLUMNS_MAX);
	for (i = 0; i < table.rows; i++)
		for (j = 0; j < table.columns; j++) {
			table.value[i][j] = draw(rare[j % 3]) ? 0 : value_draw(j % 5);
			last = table.value[i][j] != 0 && j > last ? j : last;
		}
	/* The file knows a column only if a value is in it. */
	table.columns = last + 1;
	table.value[0][0] = 1;
	for (i = 0; i < table.rows; i++) {
		table.label[i] = (float)draw(3);
		length += (size_t)sprintf(text + length, "%g", (double)table.label[i]);
		for (j = 0; j < table.columns; j++)
			if (table.value[i][j] != 0)
				length += (size_t)sprintf(text + length, " %u:%.9g", j + 1,
				                          (double)table.value[i][j]);
		length += (size_t)sprintf(text + length, "\n");
	}
	return file_write(text, length, packing);
}

static void stats_are_right(const struct glm_stats *stats)
{
	uint64_t nonzeros = 0;
	uint32_t i, j;

	assert_int_equal(stats->rows, table.rows);
	assert_int_equal(stats->columns, table.columns);
	for (j = 0; j < table.columns; j++) {
		float min = INFINITY, max = -INFINITY;
		uint32_t count = 0, spread = 0;
		bool whole = true;

		for (i = 0; i < table.rows; i++) {
			float value = table.value[i][j];

			if (value == 0)
				continue;
			count++;
			min = fminf(min, value);
			max = fmaxf(max, value);
			whole &= value == rintf(value);
		}
		assert_int_equal(stats->count[j], count);
		nonzeros += count;
		if (!count)
			continue;
		assert_true(stats->min[j] == min && stats->max[j] == max);
		assert_true(stats->spread[j].whole == whole);
		for (i = 0; i < GLM_SPREAD_BINS; i++)
			spread += stats->spread[j].positive[i] + stats->spread[j].negative[i];
		assert_int_equal(spread, count);
	}
	assert_int_equal(stats->nonzeros, nonzeros);
}

/* What must be in the matrix for a value of the table. */
static float expected_value(const struct glm_shard *shard, uint32_t j, float value)
{
	struct quantize_map map;

	if (!shard->bits)
		return value;
	map = (struct quantize_map){ shard->low[j], shard->step[j] };
	return quantize_value(quantize_code(value, map, shard->bits), map);
}

static void shard_is_right(const struct glm_source *source, const struct glm_stats *stats,
                           const struct glm_shard *shard)
{
	const struct glm_rules rules = { .task = GLM_MULTI_CLASS, .twice = true };
	uint32_t workers = shard->workers ? shard->workers : 1, row, j, n = 0;
	float values[COLUMNS_MAX], *labels;
	struct glm_matrix matrix;
	struct glm_problem problem;

	if (glm_load(source, &rules, stats, shard, &matrix, &labels, &problem) != TRIB_OK)
		fail_msg("%s", trib_last_error());
	assert_int_equal(matrix.columns, shard->count);
	for (row = shard->rank; row < table.rows; row += workers, n++) {
		matrix_row_values(&matrix, n, shard->low, shard->step, values);
		for (j = 0; j < shard->count; j++)
			assert_true(values[j] ==
			            expected_value(shard, j, table.value[row][shard->first + j]));
		assert_true(stats->labels.value[(uint32_t)labels[n]] == table.label[row]);
	}
	assert_int_equal(matrix.rows, n);
	matrix_free(&matrix);
	free(labels);
}

static void shards_are_right(const struct glm_source *source, const struct glm_stats *stats,
                             uint32_t bits)
{
	static float low[COLUMNS_MAX], step[COLUMNS_MAX];
	uint32_t workers = 1 + draw(5), first[6], w;
	struct glm_shard shard = { .bits = bits };

	shard.layout = draw(2) ? GLM_SPARSE : bits ? GLM_WEAVED : GLM_DENSE;
	workers = workers > table.columns ? table.columns : workers;
	assert_int_equal(
		shard_columns(draw(2) ? stats->count : NULL, table.columns, workers, 128, first),
		TRIB_OK);
	for (w = 0; w < workers; w++) {
		shard.first = first[w];
		shard.count = first[w + 1] - first[w];
		if (bits) {
			quantize_plan(stats, shard.first, shard.count, bits, low, step);
			shard.low = low;
			shard.step = step;
		}
		shard_is_right(source, stats, &shard);
	}
	/* The same by rows, with all columns; a worker may have no row. */
	if (bits)
		quantize_plan(stats, 0, table.columns, bits, low, step);
	shard.first = 0;
	shard.count = table.columns;
	shard.workers = workers;
	for (shard.rank = 0; shard.rank < workers; shard.rank++)
		shard_is_right(source, stats, &shard);
}

static void random_files_are_loaded(void **state)
{
	static const enum packing packings[] = { PACK_PLAIN, PACK_GZIP, PACK_XZ };
	const struct glm_rules rules = { .task = GLM_MULTI_CLASS,
		                         .twice = true,
		                         .quantized = true };
	uint64_t cases = test_cases("files", 200), c;
	struct glm_stats stats;
	struct glm_problem problem;

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (c = 0; c < cases; c++) {
		struct glm_source source = { .path = table_draw(packings[draw(3)]),
			                     .base = draw(2) ? GLM_BASE_AUTO : GLM_BASE_ONE };

		if (!source.path)
			continue;
		if (glm_scan(&source, &rules, &stats, &problem) != TRIB_OK)
			fail_msg("%s", trib_last_error());
		stats_are_right(&stats);
		assert_int_equal(stats.base, GLM_BASE_ONE);
		shards_are_right(&source, &stats, 0);
		shards_are_right(&source, &stats, 1 + draw(8));
		glm_stats_free(&stats);
	}
}

static trib_status scan_text(const char *text, enum glm_base base, const struct glm_rules *rules,
                             struct glm_stats *stats, struct glm_problem *problem)
{
	struct glm_source source = { .path = file_write(text, strlen(text), PACK_PLAIN),
		                     .base = base };

	return glm_scan(&source, rules, stats, problem);
}

static void base_is_found(void **state)
{
	const struct glm_rules rules = { 0 };
	struct glm_stats stats;
	struct glm_problem problem;

	(void)state;
	assert_int_equal(scan_text("1 1:5 3:2\n2 2:1\n", GLM_BASE_AUTO, &rules, &stats, &problem),
	                 TRIB_OK);
	assert_int_equal(stats.base, GLM_BASE_ONE);
	assert_int_equal(stats.columns, 3);
	assert_true(stats.min[0] == 5 && stats.count[2] == 1);
	glm_stats_free(&stats);
	assert_int_equal(scan_text("1 1:5 3:2\n2 0:1\n", GLM_BASE_AUTO, &rules, &stats, &problem),
	                 TRIB_OK);
	assert_int_equal(stats.base, GLM_BASE_ZERO);
	assert_int_equal(stats.columns, 4);
	assert_true(stats.min[1] == 5 && stats.count[3] == 1);
	glm_stats_free(&stats);
	/* A zero that is written makes a column, and is not counted. Files end with one to tell
	 * their width. */
	assert_int_equal(scan_text("1 1:1 2:0\n", GLM_BASE_ONE, &rules, &stats, &problem), TRIB_OK);
	assert_int_equal(stats.columns, 2);
	assert_int_equal(stats.count[1], 0);
	glm_stats_free(&stats);
}

static void files_that_cannot_be_used(void **state)
{
	static const struct {
		const char *text, *says;
		enum glm_task task;
	} cases[] = {
		{ "", ": there are no rows in it", GLM_ANY },
		{ "# nothing\n\n  # more\n", ": there are no rows in it", GLM_ANY },
		{ "1\n-1\n", ": there are no features in it", GLM_ANY },
		{ "1 1:1\n1 2:1\n", ": all rows have the label 1, and the task has two classes",
		  GLM_TWO_CLASS },
		{ "1 1:1\n0 2:1\n1 1:1\n2 1:1\n0 1:1\n",
		  ":4: the label 2 is a third one, after 0 and 1, and the task has two classes "
		  "(--classes sets more)",
		  GLM_TWO_CLASS },
	};
	struct glm_rules rules = { 0 };
	struct glm_stats stats;
	struct glm_problem problem;
	char *many = malloc(1 << 16);
	size_t length = 0;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		rules.task = cases[i].task;
		assert_true(scan_text(cases[i].text, GLM_BASE_ONE, &rules, &stats, &problem) !=
		            TRIB_OK);
		assert_string_equal(strchr(trib_last_error(), ':'), cases[i].says);
		glm_stats_free(&stats);
	}
	assert_non_null(many);
	for (i = 0; i < GLM_LABELS_MAX + 1; i++)
		length += (size_t)sprintf(many + length, "%u 1:1\n", i);
	rules.task = GLM_MULTI_CLASS;
	assert_true(scan_text(many, GLM_BASE_ONE, &rules, &stats, &problem) != TRIB_OK);
	assert_non_null(strstr(trib_last_error(), "more than 1024 different labels"));
	glm_stats_free(&stats);
	rules.task = GLM_REGRESSION;
	assert_int_equal(scan_text(many, GLM_BASE_ONE, &rules, &stats, &problem), TRIB_OK);
	assert_true(stats.labels.many && stats.label_max == 1024 && stats.label_min == 0);
	glm_stats_free(&stats);
	free(many);
}

/* Loads one column of floats. */
static trib_status load_text(const struct glm_source *source, const struct glm_rules *rules,
                             const struct glm_stats *stats, struct glm_matrix *matrix,
                             float **labels, struct glm_problem *problem)
{
	struct glm_shard shard = { .count = 1 };

	return glm_load(source, rules, stats, &shard, matrix, labels, problem);
}

static void labels_become_targets(void **state)
{
	static const struct {
		const char *text;
		enum glm_task task;
		float target[3];
	} cases[] = {
		{ "-1 1:1\n1 1:1\n-1 1:1\n", GLM_TWO_CLASS, { -1, 1, -1 } },
		{ "1 1:1\n0 1:1\n1 1:1\n", GLM_TWO_CLASS, { 1, -1, 1 } },
		{ "2 1:1\n1 1:1\n1 1:1\n", GLM_TWO_CLASS, { 1, -1, -1 } },
		{ "7 1:1\n-3 1:1\n5 1:1\n", GLM_MULTI_CLASS, { 2, 0, 1 } },
		{ "7 1:1\n-3 1:1\n0.5 1:1\n", GLM_REGRESSION, { 7, -3, 0.5f } },
	};
	struct glm_problem problem;
	struct glm_matrix matrix;
	struct glm_stats stats;
	float *labels;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct glm_rules rules = { .task = cases[i].task };
		struct glm_source source = {
			.path = file_write(cases[i].text, strlen(cases[i].text), PACK_PLAIN)
		};

		assert_int_equal(glm_scan(&source, &rules, &stats, &problem), TRIB_OK);
		assert_int_equal(load_text(&source, &rules, &stats, &matrix, &labels, &problem),
		                 TRIB_OK);
		assert_memory_equal(labels, cases[i].target, sizeof(cases[i].target));
		free(labels);
		matrix_free(&matrix);
		glm_stats_free(&stats);
	}
}

/* A test file is read with the labels and the columns of the model. */
static void test_files_follow_the_model(void **state)
{
	static const char train[] = "0 1:1\n1 1:1\n", test[] = "1 1:1 9:4\n1 1:2\n",
			  other[] = "1 1:1\n3 1:1\n";
	struct glm_rules rules = { .task = GLM_TWO_CLASS };
	struct glm_source source = { .path = file_write(train, strlen(train), PACK_PLAIN) };
	struct glm_stats model, stats;
	struct glm_problem problem;
	struct glm_matrix matrix;
	float *labels;

	(void)state;
	assert_int_equal(glm_scan(&source, &rules, &model, &problem), TRIB_OK);
	rules.labels = &model.labels;
	file_write(test, strlen(test), PACK_PLAIN);
	assert_int_equal(glm_scan(&source, &rules, &stats, &problem), TRIB_OK);
	assert_int_equal(load_text(&source, &rules, &stats, &matrix, &labels, &problem), TRIB_OK);
	assert_true(labels[0] == 1 && labels[1] == 1 && matrix.start[2] == 2 &&
	            matrix.value[1] == 2);
	free(labels);
	matrix_free(&matrix);
	glm_stats_free(&stats);
	file_write(other, strlen(other), PACK_PLAIN);
	assert_true(glm_scan(&source, &rules, &stats, &problem) != TRIB_OK);
	assert_non_null(strstr(trib_last_error(), ":2: the label 3 is not one of the model"));
	glm_stats_free(&stats);
	glm_stats_free(&model);
}

static void both_passes_skip_the_same_rows(void **state)
{
	static const char text[] = "1 1:1\n0 1:2\n5 1:3\n1 1:x\n0 1:5\n";
	struct glm_rules rules = { .task = GLM_TWO_CLASS, .skip = true };
	struct glm_source source = { .path = file_write(text, strlen(text), PACK_PLAIN) };
	struct glm_problem problem;
	struct glm_stats stats;
	struct glm_matrix matrix;
	float *labels;

	(void)state;
	assert_int_equal(glm_scan(&source, &rules, &stats, &problem), TRIB_OK);
	assert_int_equal(problem.skipped, 2);
	assert_non_null(strstr(problem.sentence[0], ":3: the label 5 is a third one"));
	assert_non_null(strstr(problem.sentence[1], ":4: the value 'x' of feature 1"));
	assert_int_equal(stats.rows, 3);
	assert_int_equal(load_text(&source, &rules, &stats, &matrix, &labels, &problem), TRIB_OK);
	assert_int_equal(problem.skipped, 2);
	assert_true(matrix.rows == 3 && matrix.value[2] == 5);
	free(labels);
	matrix_free(&matrix);
	glm_stats_free(&stats);
}

static void changed_files_are_errors(void **state)
{
	static const char *const after[] = { "0 1:1\n", "0 1:1\n1 1:1\n0 1:1\n", "0 1:1\n3 1:1\n" };
	static const char before[] = "0 1:1\n1 1:1\n";
	const struct glm_rules rules = { .task = GLM_TWO_CLASS };
	struct glm_source source = { .path = file_write(before, strlen(before), PACK_PLAIN) };
	struct glm_problem problem;
	struct glm_stats stats;
	struct glm_matrix matrix;
	float *labels;
	unsigned i;

	(void)state;
	assert_int_equal(glm_scan(&source, &rules, &stats, &problem), TRIB_OK);
	for (i = 0; i < 3; i++) {
		file_write(after[i], strlen(after[i]), PACK_PLAIN);
		assert_true(load_text(&source, &rules, &stats, &matrix, &labels, &problem) !=
		            TRIB_OK);
		assert_non_null(
			strstr(trib_last_error(), i < 2 ? "has changed since" : ":2: the label 3"));
		assert_null(labels);
	}
	glm_stats_free(&stats);
}

/* A pipe in the place of standard input. */
static void pipes_are_read_once(void **state)
{
	static const char text[] = "1 1:1\n0 2:1\n";
	struct glm_rules rules = { .twice = true };
	struct glm_source source = { .path = "-" };
	struct glm_problem problem;
	struct glm_stats stats;
	struct glm_matrix matrix;
	float *labels;
	int ends[2], saved = dup(STDIN_FILENO);

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
	close(ends[1]);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	rules.twice = false;
	assert_int_equal(glm_scan(&source, &rules, &stats, &problem), TRIB_OK);
	assert_true(stats.once && stats.rows == 2);
	assert_true(load_text(&source, &rules, &stats, &matrix, &labels, &problem) != TRIB_OK);
	assert_string_equal(trib_last_error(),
	                    "standard input: it can be read only once, and has been "
	                    "read: write it to a file first");
	glm_stats_free(&stats);
	rules.twice = true;
	assert_true(glm_scan(&source, &rules, &stats, &problem) != TRIB_OK);
	assert_string_equal(trib_last_error(),
	                    "standard input: it can be read only once, and has to be "
	                    "read twice: write it to a file first");
	glm_stats_free(&stats);
	dup2(saved, STDIN_FILENO);
	close(saved);
}

static void names_come_from_the_header(void **state)
{
	static const char text[] = "age,\"class, of two\", height\n1,0,3\n2,1,4\n";
	const struct glm_rules rules = { .task = GLM_TWO_CLASS };
	struct glm_source source = { .path = file_write(text, strlen(text), PACK_PLAIN),
		                     .label = "class, of two" };
	struct glm_problem problem;
	struct glm_stats stats;

	(void)state;
	assert_int_equal(glm_scan(&source, &rules, &stats, &problem), TRIB_OK);
	assert_int_equal(stats.columns, 2);
	assert_string_equal(stats.names[0], "age");
	assert_string_equal(stats.names[1], "height");
	glm_stats_free(&stats);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_files_are_loaded),
		cmocka_unit_test(base_is_found),
		cmocka_unit_test(files_that_cannot_be_used),
		cmocka_unit_test(labels_become_targets),
		cmocka_unit_test(test_files_follow_the_model),
		cmocka_unit_test(both_passes_skip_the_same_rows),
		cmocka_unit_test(changed_files_are_errors),
		cmocka_unit_test(pipes_are_read_once),
		cmocka_unit_test(names_come_from_the_header),
	};
	const char *given = getenv("TRIB_TEST_SEED");
	int failed;

	if (given)
		seed = strtoull(given, NULL, 10);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	files_remove();
	return failed;
}
