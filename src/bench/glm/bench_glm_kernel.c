/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bed/size_list.h"
#include "bench/glm/bench_glm.h"
#include "bench/glm/glm_roofline.h"
#include "bench/report/chart.h"
#include "bench/report/samples.h"
#include "bench/report/table.h"
#include "glm/kernel/glm_kernel.h"
#include "options/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZES_MAX 16u
#define REPEATS_MAX 100u
#define CACHE_GUESS (64ull << 20) /* where the system does not tell */

static const struct roofline_case cases[] = {
	{ "float", 0, 0 },  { "8 bits", 8, 0 }, { "4 bits", 4, 0 },
	{ "2 bits", 2, 0 }, { "1 bit", 1, 0 },  { "sparse", 0, 1 },
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

struct glm_options {
	uint64_t sizes[SIZES_MAX];
	unsigned n_sizes;
	uint64_t repeats, memory, batch, micro_batch, nonzeros;
	double seconds;
	const char *features, *loops, *json, *plot;
};

struct figures {
	double samples[SIZES_MAX][CASES], row_bytes[SIZES_MAX][CASES];
	double against_float[SIZES_MAX][CASES];
	double bandwidth;
};

enum column { FEATURES, LAYOUT, ROW, SAMPLES, READ, LIMIT, SHARE, AGAINST };

static const struct table_column columns[] = {
	[FEATURES] = { .header = "features",
	               .format = "%.0f",
	               .field = "features",
	               .json = "%.0f" },
	[LAYOUT] = { .header = "layout", .field = "layout" },
	[ROW] = { .header = "bytes a row", .format = "%.0f", .field = "row_bytes", .json = "%.0f" },
	[SAMPLES] = { .header = "samples/s", .format = "%.0f", .field = "samples", .json = "%.1f" },
	[READ] = { .header = "GB/s of rows",
	           .format = "%.2f",
	           .scale = 1e-9,
	           .field = "row_bandwidth",
	           .json = "%.0f" },
	[LIMIT] = { .header = "limit", .format = "%.0f", .field = "limit", .json = "%.1f" },
	[SHARE] = { .header = "of limit",
	            .format = "%.0f",
	            .scale = 100,
	            .unit = " %",
	            .field = "of_limit",
	            .json = "%.4f" },
	[AGAINST] = { .header = "of float", .format = "%.2f", .field = "of_float", .json = "%.3f" },
};

/* In turns, so that a change of the machine's load affects all alike. */
static trib_status figures_measure(const struct glm_options *o, struct roofline *roofline,
                                   struct figures *figures)
{
	static double samples[SIZES_MAX][CASES][REPEATS_MAX];
	double bandwidth[REPEATS_MAX];
	trib_status status = TRIB_OK;

	for (unsigned r = 0; r < o->repeats; r++) {
		bandwidth[r] = roofline_bandwidth(roofline);
		for (unsigned s = 0; s < o->n_sizes; s++) {
			for (unsigned c = 0; c < CASES && status == TRIB_OK; c++) {
				struct roofline_result result = { 0 };

				status = roofline_measure(roofline, &cases[c],
				                          (uint32_t)o->sizes[s], &result);
				samples[s][c][r] = result.samples;
				figures->row_bytes[s][c] = result.row_bytes;
			}
		}
	}
	for (unsigned s = 0; status == TRIB_OK && s < o->n_sizes; s++) {
		struct bench_range range;

		for (unsigned c = 0; c < CASES; c++) {
			stats_ratio(samples[s][c], samples[s][0], (unsigned)o->repeats, &range);
			figures->against_float[s][c] = range.median;
		}
		for (unsigned c = 0; c < CASES; c++)
			figures->samples[s][c] = stats_median(samples[s][c], o->repeats);
	}
	/* The best: other work only slows a read. */
	figures->bandwidth = bandwidth[0];
	for (unsigned r = 1; r < o->repeats; r++)
		figures->bandwidth = fmax(figures->bandwidth, bandwidth[r]);
	return status;
}

static void figures_show(const struct glm_options *o, const struct figures *figures,
                         struct table *table)
{
	for (unsigned s = 0; s < o->n_sizes; s++) {
		for (unsigned c = 0; c < CASES; c++) {
			double samples = figures->samples[s][c], bytes = figures->row_bytes[s][c];

			table_add(table);
			table_number(table, FEATURES, (double)o->sizes[s]);
			table_text(table, LAYOUT, cases[c].name);
			table_number(table, ROW, bytes);
			table_number(table, SAMPLES, samples);
			table_number(table, READ, samples * bytes);
			table_number(table, LIMIT, figures->bandwidth / bytes);
			table_number(table, SHARE, samples * bytes / figures->bandwidth);
			table_number(table, AGAINST, figures->against_float[s][c]);
		}
	}
}

static trib_status json_write(const struct glm_options *o, const struct figures *figures,
                              const struct table *table)
{
	struct json_writer json;
	trib_status status = json_start(&json, o->json);

	if (status != TRIB_OK)
		return status;
	json_put_text(&json, "benchmark", "glm-kernel");
	json_put_text(&json, "loops", kernel_name());
	json_put_number(&json, "bandwidth", "%.0f", figures->bandwidth);
	json_put_count(&json, "data_bytes", o->memory);
	json_put_count(&json, "batch", o->batch);
	json_put_count(&json, "micro_batch", o->micro_batch);
	json_put_count(&json, "nonzeros", o->nonzeros);
	json_put_count(&json, "repeats", o->repeats);
	table_json(table, &json, "rows");
	return json_finish(&json, o->json);
}

static void line_add(struct chart *chart, const struct glm_options *o, const char *name,
                     const double values[SIZES_MAX][CASES], unsigned c, double over)
{
	struct chart_line *line = &chart->lines[chart->n++];

	line->name = name;
	line->dashed = over > 0;
	for (unsigned s = 0; s < o->n_sizes; s++)
		line->points[line->n++] =
			(struct chart_point){ .x = (double)o->sizes[s],
			                      .y = over > 0 ? over / values[s][c] : values[s][c] };
}

static trib_status plot_write(const struct glm_options *o, const struct figures *figures)
{
	static struct chart chart;
	char subtitle[160];

	snprintf(subtitle, sizeof(subtitle), "one core, %s; dashed: what %.1f GB/s of memory allow",
	         kernel_name(), figures->bandwidth * 1e-9);
	chart = (struct chart){ .title = "Linear models: forward and backward",
		                .subtitle = subtitle,
		                .x_title = "features",
		                .y_title = "samples a second",
		                .y_format = "%.3g",
		                .x_log = true,
		                .y_log = true };
	for (unsigned c = 0; c < CASES; c++)
		line_add(&chart, o, cases[c].name, figures->samples, c, 0);
	line_add(&chart, o, "limit, float", figures->row_bytes, 0, figures->bandwidth);
	line_add(&chart, o, "limit, 4 bits", figures->row_bytes, 2, figures->bandwidth);
	return chart_write(&chart, o->plot);
}

static trib_status bench_run(struct glm_options *o)
{
	const struct roofline_plan plan = { .bytes = o->memory,
		                            .batch = (uint32_t)o->batch,
		                            .micro_batch = (uint32_t)o->micro_batch,
		                            .nonzeros = (uint32_t)o->nonzeros,
		                            .seconds = o->seconds };
	static struct figures figures;
	struct roofline *roofline = NULL;
	struct table table;
	trib_status status = output_try(o->json);

	if (status == TRIB_OK)
		status = output_try(o->plot);
	if (status == TRIB_OK)
		status = roofline_open(&roofline, &plan);
	if (status == TRIB_OK)
		status = figures_measure(o, roofline, &figures);
	roofline_close(roofline);
	if (status != TRIB_OK)
		return status;
	table_open(&table, columns, sizeof(columns) / sizeof(columns[0]));
	figures_show(o, &figures, &table);
	if (!o->json || strcmp(o->json, "-") != 0) {
		printf("one core, loops: %s; memory: %.1f GB/s; %llu MiB of data\n\n",
		       kernel_name(), figures.bandwidth * 1e-9,
		       (unsigned long long)(o->memory >> 20));
		table_print(&table, stdout);
	}
	if (o->json)
		status = json_write(o, &figures, &table);
	if (status == TRIB_OK && o->plot)
		status = plot_write(o, &figures);
	table_close(&table);
	return status;
}

/* A sparse row has to fit into every number of features, and some rows into the memory. */
static int options_check(const struct options *options, const struct glm_options *o)
{
	if (!o->repeats || o->repeats > REPEATS_MAX)
		return options_fail(options, "--repeats is 1 to %u", REPEATS_MAX);
	if (!o->batch || o->batch > 65536 || !o->micro_batch || o->micro_batch > o->batch)
		return options_fail(options,
		                    "--batch is 1 to 65536, --micro-batch is not above it");
	for (unsigned s = 0; s < o->n_sizes; s++) {
		if (o->sizes[s] < o->nonzeros || !o->nonzeros)
			return options_fail(options, "--nonzeros is 1 to the least of --features");
		if (o->sizes[s] * sizeof(float) * 2 > o->memory)
			return options_fail(options,
			                    "--memory has no room for two rows of %llu floats",
			                    (unsigned long long)o->sizes[s]);
	}
	return 0;
}

int bench_glm_kernel_run(int argc, char **argv)
{
	uint64_t cache = roofline_cache_bytes();
	struct glm_options o = { .repeats = 5,
		                 .batch = 64,
		                 .micro_batch = 16,
		                 .nonzeros = 64,
		                 .seconds = 0.3,
		                 .features = "5000,47236,332710,1000000",
		                 .memory = 2 * (cache ? cache : CACHE_GUESS) };
	const struct option_row rows[] = {
		{ "features", 0, OPTION_TEXT, &o.features, "LIST",
		  "numbers of features (default 5000,47236,332710,1000000)", "1000,100000" },
		{ "batch", 0, OPTION_COUNT, &o.batch, "N",
		  "samples between two changes of the weights (default 64)", "256" },
		{ "micro-batch", 0, OPTION_COUNT, &o.micro_batch, "N",
		  "samples that go forward, then backward (default 16)", "8" },
		{ "nonzeros", 0, OPTION_COUNT, &o.nonzeros, "N",
		  "non-zeros of a sparse sample (default 64)", "100" },
		{ "memory", 0, OPTION_BYTES, &o.memory, "SIZE",
		  "bytes of the data (default: twice the last cache)", "1G" },
		{ "loops", 0, OPTION_TEXT, &o.loops, "NAME",
		  "plain, avx2, avx512, neon or neon-dot (default: the best of this processor)",
		  "plain" },
		{ "seconds", 0, OPTION_SECONDS, &o.seconds, "S",
		  "time of one measurement (default 0.3)", "1" },
		{ "repeats", 0, OPTION_COUNT, &o.repeats, "N",
		  "measurements of each, in turns (default 5)", "9" },
		{ "json", 0, OPTION_JSON_FILE, &o.json, "FILE",
		  "write the rows to FILE as JSON (-: standard output)", "glm.json" },
		{ "plot", 0, OPTION_TEXT, &o.plot, "FILE", "draw samples a second to FILE as SVG",
		  "glm.svg" },
		{ 0 },
	};
	const struct options options = {
		"trib bench glm-kernel [OPTION]...",
		"Measures samples a second that one core takes forward and backward through a "
		"linear\n"
		"model, for each layout of the data, and what the bandwidth of the memory would "
		"allow\n"
		"if each row were read once.",
		"trib bench glm-kernel --features 47236 --plot glm.svg",
		rows,
	};
	int code;

	if (options_parse(&options, argc, argv, &code) < 0)
		return code;
	if (count_list_parse(o.features, 1u << 26, o.sizes, SIZES_MAX, &o.n_sizes) != TRIB_OK)
		return options_fail(&options, "--features: %s", trib_last_error());
	if ((code = options_check(&options, &o)) != 0)
		return code;
	if (o.loops && !kernel_use(o.loops))
		return options_fail(&options, "--loops: this processor has no %s", o.loops);
	if (bench_run(&o) != TRIB_OK) {
		fprintf(stderr, "trib bench glm-kernel: %s\n", trib_last_error());
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
