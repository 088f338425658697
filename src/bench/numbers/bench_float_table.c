/* SPDX-License-Identifier: Apache-2.0 */
/* trib bench float-table: the precision of sums by table look-up, beside fixed point. */
#include "base/random_bits.h"
#include "bench/numbers/bench_numbers.h"
#include "bench/report/samples.h"
#include "bench/report/table.h"
#include "number/float_table.h"
#include "number/format.h"
#include "number/number.h"
#include "options/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 362u   /* f32 of a packet, with an MTU of 1500: they share a scale */
#define HOT_BITS 21u /* of the largest gradient of a hot row, see docs/sparse.md */
#define SUMS_MIN 1000u
#define ADDENDS_MAX 900u

static const unsigned addends[] = { 2, 8, 64, ADDENDS_MAX };

struct precision_options {
	const char *data, *json;
	uint64_t sums, seed;
};

/* Addends of many sums: number w of sum i is values[w * sums + i]. */
struct sums {
	const struct float_tables *tables;
	float *values;
	unsigned addends;
	size_t sums;
	double *exact, *errors;
	float *results;
	int32_t *integers; /* of one block, then its sums */
};

/* Where values come from: a file's, or random ones. */
struct source {
	const char *name;
	float *values; /* NULL: uniform in (-1, 1) */
	size_t n;
	uint64_t state;
};

static float source_draw(struct source *source)
{
	uint64_t random = random_next(&source->state);

	if (source->values)
		return source->values[random % source->n];
	return (float)(((double)(random >> 11) + 0.5) * 0x1p-52 - 1);
}

/* ---- sums, each in its way ---- */

static void sum_by_table(struct sums *it)
{
	for (size_t i = 0; i < it->sums; i++) {
		uint32_t sum = 0;

		for (unsigned w = 0; w < it->addends; w++)
			sum = float_table_add(it->tables, sum,
			                      f32_bits(it->values[w * it->sums + i]));
		memcpy(&it->results[i], &sum, sizeof(sum));
	}
}

static void sum_as_floats(struct sums *it)
{
	for (size_t i = 0; i < it->sums; i++) {
		float sum = 0;

		for (unsigned w = 0; w < it->addends; w++)
			sum += it->values[w * it->sums + i];
		it->results[i] = sum;
	}
}

/* As the dense engine: a block's addends have the scale of its largest magnitude. */
static void sum_in_blocks(struct sums *it)
{
	int32_t *sums = it->integers + BLOCK;

	for (size_t first = 0; first < it->sums; first += BLOCK) {
		size_t n = it->sums - first < BLOCK ? it->sums - first : BLOCK;
		uint16_t class = 0;
		bool special;

		memset(sums, 0, n * sizeof(*sums));
		for (unsigned w = 0; w < it->addends; w++) {
			uint16_t own = number_classify(TRIB_F32, &it->values[w * it->sums + first],
			                               n, &special);

			class = own > class ? own : class;
		}
		for (unsigned w = 0; w < it->addends; w++) {
			number_encode(TRIB_F32, &it->values[w * it->sums + first], n, class,
			              it->addends, it->integers);
			for (size_t i = 0; i < n; i++)
				sums[i] += it->integers[i];
		}
		number_decode(TRIB_F32, sums, n, class, it->addends, false, &it->results[first]);
	}
}

/* As the gradients of hot rows: 2^21 stands for the largest magnitude of all. */
static void sum_as_hot(struct sums *it)
{
	float largest = 0;
	int exponent;

	for (size_t i = 0; i < it->addends * it->sums; i++)
		largest = fmaxf(largest, fabsf(it->values[i]));
	frexpf(largest, &exponent);
	for (size_t i = 0; i < it->sums; i++) {
		int64_t sum = 0;

		for (unsigned w = 0; w < it->addends; w++)
			sum += llrint(ldexp((double)it->values[w * it->sums + i],
			                    (int)HOT_BITS - exponent));
		it->results[i] = (float)ldexp((double)sum, exponent - (int)HOT_BITS);
	}
}

static const struct {
	const char *name;
	void (*sum)(struct sums *it);
} ways[] = {
	{ "table", sum_by_table },
	{ "fixed point of 32 bits, a scale for each packet", sum_in_blocks },
	{ "fixed point of hot rows, 2^21 is the largest", sum_as_hot },
	{ "f32", sum_as_floats },
};

/* ---- precision ---- */

enum column { VALUES, ADDENDS, SUMS, MEDIAN, MEAN, WORST, WAY };

static const struct table_column columns[] = {
	[VALUES] = { .header = "values", .field = "values" },
	[ADDENDS] = { .header = "addends", .format = "%.0f", .field = "addends", .json = "%.0f" },
	[SUMS] = { .header = "sums", .format = "%.0f", .field = "sums", .json = "%.0f" },
	[MEDIAN] = { .header = "median", .format = "%.4f %%", .field = "median", .json = "%.8g" },
	[MEAN] = { .header = "mean", .format = "%.4f %%", .field = "mean", .json = "%.8g" },
	[WORST] = { .header = "worst error", .format = "%.2g", .field = "worst", .json = "%.6g" },
	[WAY] = { .header = "summed by", .field = "way" },
};

static void sum_exactly(struct sums *it)
{
	for (size_t i = 0; i < it->sums; i++) {
		double sum = 0;

		for (unsigned w = 0; w < it->addends; w++)
			sum += (double)it->values[w * it->sums + i];
		it->exact[i] = sum;
	}
}

/* Relative errors. A zero that was missed counts as 1, as does a sum without a right digit. */
static double mean_error(struct sums *it, double *worst)
{
	double total = 0;

	*worst = 0;
	for (size_t i = 0; i < it->sums; i++) {
		double error = fabs((double)it->results[i] - it->exact[i]);
		double size = fabs(it->exact[i]);

		it->errors[i] = error == 0 ? 0 : size > 0 ? error / size : 1;
		*worst = fmax(*worst, it->errors[i]);
		it->errors[i] = fmin(it->errors[i], 1);
		total += it->errors[i];
	}
	return total / (double)it->sums;
}

static void row_add(struct sums *it, const char *values, const char *way, struct table *table)
{
	double worst, mean = mean_error(it, &worst);

	table_add(table);
	table_text(table, VALUES, values);
	table_number(table, ADDENDS, it->addends);
	table_number(table, SUMS, (double)it->sums);
	table_number(table, MEDIAN, 100 * (1 - stats_median(it->errors, it->sums)));
	table_number(table, MEAN, 100 * (1 - mean));
	table_number(table, WORST, worst);
	table_text(table, WAY, way);
}

static void rows_add(struct sums *it, struct source *source, uint64_t sums, struct table *table)
{
	for (unsigned c = 0; c < sizeof(addends) / sizeof(addends[0]); c++) {
		it->addends = addends[c];
		it->sums = sums * addends[0] / addends[c];
		if (it->sums < SUMS_MIN)
			it->sums = SUMS_MIN;
		for (size_t i = 0; i < it->sums * it->addends; i++)
			it->values[i] = source_draw(source);
		sum_exactly(it);
		for (unsigned w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
			ways[w].sum(it);
			row_add(it, source->name, ways[w].name, table);
		}
	}
}

/* ---- input ---- */

/* A file's finite values that are not zero. */
static trib_status source_read(struct source *source, const char *path)
{
	FILE *in = fopen(path, "rbe");
	size_t room = 0;
	float value;

	if (!in)
		return status_fail_errno("cannot read %s", path);
	while (fread(&value, sizeof(value), 1, in) == 1) {
		if (value == 0 || !isfinite(value))
			continue;
		if (source->n == room) {
			float *more =
				realloc(source->values, (room = 2 * room + 4096) * sizeof(float));

			if (!more) {
				fclose(in);
				return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %s", path);
			}
			source->values = more;
		}
		source->values[source->n++] = value;
	}
	fclose(in);
	return source->n ? TRIB_OK
	                 : status_fail(TRIB_ERR_ARGUMENT,
	                               "%s has no f32 that is finite and not zero", path);
}

static trib_status sums_open(struct sums *it, struct float_tables *tables, uint64_t sums)
{
	uint64_t most = sums < SUMS_MIN ? SUMS_MIN : sums;
	uint64_t values = sums * addends[0];

	if (values < (uint64_t)SUMS_MIN * ADDENDS_MAX)
		values = (uint64_t)SUMS_MIN * ADDENDS_MAX;
	*it = (struct sums){ .tables = tables,
		             .values = calloc(values, sizeof(float)),
		             .exact = malloc(most * sizeof(double)),
		             .errors = malloc(most * sizeof(double)),
		             .results = malloc(most * sizeof(float)),
		             .integers = malloc(2 * BLOCK * sizeof(int32_t)) };
	if (!tables || !it->values || !it->exact || !it->errors || !it->results || !it->integers)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory");
	float_tables_build(tables);
	return TRIB_OK;
}

static void sums_close(struct sums *it)
{
	free(it->values);
	free(it->exact);
	free(it->errors);
	free(it->results);
	free(it->integers);
}

static trib_status json_write(const struct precision_options *o, const struct table *table)
{
	struct json_writer json;
	trib_status status = json_start(&json, o->json);

	if (status != TRIB_OK)
		return status;
	json_put_text(&json, "benchmark", "float-table");
	json_put_count(&json, "table_bytes", sizeof(struct float_tables));
	table_json(table, &json, "rows");
	return json_finish(&json, o->json);
}

static trib_status all_rows(const struct precision_options *o, struct table *table)
{
	struct float_tables *tables = malloc(sizeof(*tables));
	struct source random = { .name = "uniform(-1, 1)", .state = o->seed };
	struct source file = { .name = "file", .state = o->seed };
	struct sums sums;
	trib_status status = sums_open(&sums, tables, o->sums);

	if (status == TRIB_OK && o->data)
		status = source_read(&file, o->data);
	if (status == TRIB_OK) {
		rows_add(&sums, &random, o->sums, table);
		if (o->data)
			rows_add(&sums, &file, o->sums, table);
	}
	sums_close(&sums);
	free(file.values);
	free(tables);
	return status;
}

int bench_float_table_run(int argc, char **argv)
{
	struct precision_options o = { .sums = 100000, .seed = 1 };
	const struct option_row rows[] = {
		{ "data", 0, OPTION_TEXT, &o.data, "FILE",
		  "sum also values of this file: f32, one behind the other", "gradients.f32" },
		{ "sums", 0, OPTION_COUNT, &o.sums, "N",
		  "sums of two values (default 100000); of longer sums there are fewer",
		  "1000000" },
		{ "seed", 0, OPTION_COUNT, &o.seed, "N", "of the random choice (default 1)", NULL },
		{ "json", 0, OPTION_JSON_FILE, &o.json, "FILE",
		  "write the rows to FILE as JSON (-: standard output)", "float-table.json" },
		{ 0 },
	};
	const struct options options = {
		"trib bench float-table [OPTION]...",
		"Compares sums of floats by table look-up with the exact sums, beside fixed point\n"
		"and f32. The precision of a sum is 1 - |error| / |exact sum|, and not below 0.",
		"trib bench float-table --data gradients.f32",
		rows,
	};
	struct table table;
	trib_status status;
	int code;

	if (options_parse(&options, argc, argv, &code) < 0)
		return code;
	if (o.sums < SUMS_MIN || o.sums > 100000000)
		return options_fail(&options, "--sums is 1000 to 100000000");
	table_open(&table, columns, sizeof(columns) / sizeof(columns[0]));
	status = all_rows(&o, &table);
	if (status == TRIB_OK && (!o.json || strcmp(o.json, "-") != 0)) {
		printf("precision of sums; the tables take %.1f KiB\n\n",
		       (double)sizeof(struct float_tables) / 1024);
		table_print(&table, stdout);
	}
	if (status == TRIB_OK && o.json)
		status = json_write(&o, &table);
	table_close(&table);
	if (status != TRIB_OK)
		fprintf(stderr, "trib bench float-table: %s\n", trib_last_error());
	return status == TRIB_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
