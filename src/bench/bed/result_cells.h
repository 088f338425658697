/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_cells: what tables of results have in common: columns that name the system, which are the
 * first ones of a table, and columns about the runs, which are the last ones; sentences below it,
 * and settings in JSON.
 */
#ifndef TRIB_BENCH_BED_RESULT_CELLS_H
#define TRIB_BENCH_BED_RESULT_CELLS_H

#include "bench/bed/bench_bed.h"
#include "bench/report/table.h"

/* The spread of the runs' medians. */
#define SPREAD_COLUMN                                                             \
	{                                                                         \
		.header = "spread", .format = "%.1f", .scale = 100, .unit = " %", \
		.positive = true, .field = "spread", .json = "%.9g"               \
	}

/* How many times as fast; `text` is the header. */
#define RATIO_COLUMN(text, name)                                                                  \
	{                                                                                         \
		.header = (text), .format = "%.2f", .unit = " x", .field = (name), .json = "%.9g" \
	}

/* The first columns of a table that is ordered by size. */
#define NAME_COLUMNS 7u
/* clang-format off */
#define NAME_COLUMNS_FIRST                                                                   \
	{ .header = "bytes", .format = "%.0f" },                                             \
	{ .header = "system" },                                                              \
	{ .field = "system" },                                                               \
	{ .field = "algorithm" },                                                            \
	{ .field = "plane" },                                                                \
	{ .field = "hosts", .json = "%.0f" },                                                \
	{ .field = "bytes", .json = "%.0f" }
/* clang-format on */

/* Begins a row with these columns. The size is shown unless the row `before` has it; NULL: none. */
void name_cells_fill(struct table *table, const struct bench_result *result,
                     const struct bench_result *before);

/* The columns from `first` on. */
#define RUN_COLUMNS 4u
/* clang-format off */
#define RUN_COLUMNS_FROM(first)                                                              \
	[(first)] = { .field = "repeats", .json = "%.0f" },                                  \
	[(first) + 1] = { .field = "failed", .json = "%.0f" },                               \
	[(first) + 2] = { .field = "disturbed", .json = "%.0f" },                            \
	[(first) + 3] = { .field = "note" }
/* clang-format on */

/* Ends a row: these columns, and a mark behind it if a run has failed. */
void run_cells_fill(struct table *table, unsigned first, const struct bench_options *options,
                    const struct bench_result *result);

/* Says how many runs were disturbed, if some were. */
void disturbed_print(const struct bench_result *results, unsigned n);

/* The setting "place": the text of bench_place_describe. */
void place_put(struct json_writer *json, const struct bench_place *place);
/* Iterations, under the name that they have for the benchmark, "warmup" and "repeats". */
void runs_put(struct json_writer *json, const char *iterations,
              const struct bench_options *options);

#endif
