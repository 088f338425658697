/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/store/bench_store.h"

#include "bench/bed/size_list.h"
#include "bench/report/table.h"
#include "bench/store/store_memory.h"
#include "options/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 1.5 /* of docs/sparse-log.md: bytes of the store over those of rows and state */

static struct {
	uint64_t rows, width;
	const char *optimizers, *json;
} given = { .rows = 10000000, .width = 16, .optimizers = "sgd,momentum,adagrad,adam" };

static const struct option_row option_rows[] = {
	{ "rows", 'r', OPTION_COUNT, &given.rows, "N", "rows that are touched (default 10000000)",
	  "1000000" },
	{ "width", 'w', OPTION_COUNT, &given.width, "N", "floats in a row (default 16)", "64" },
	{ "optimizer", 'o', OPTION_TEXT, &given.optimizers, "NAME,...",
	  "sgd, momentum, adagrad or adam (default: all of them)", "adam" },
	{ "json", 'j', OPTION_JSON_FILE, &given.json, "FILE", "write results as JSON; - is stdout",
	  "store.json" },
	{ 0 },
};

static const struct options options = {
	"trib bench sparse-store [OPTION]...",
	"Fills the store of a parameter server with rows of random keys, and compares its memory\n"
	"with the bytes of the rows and of the optimizer's state. The exit code is 1 if it takes\n"
	"more than 1.5 times as much.",
	"trib bench sparse-store --rows 1000000 --optimizer adam",
	option_rows,
};

enum { OPTIMIZER, ROWS, WIDTH, NEEDED, COUNTED, RESIDENT, COUNTED_RATIO, RESIDENT_RATIO, MOST };

static const struct table_column columns[] = {
	[OPTIMIZER] = { .header = "optimizer", .field = "optimizer" },
	[ROWS] = { .header = "rows", .format = "%.0f", .field = "rows", .json = "%.0f" },
	[WIDTH] = { .header = "width", .format = "%.0f", .field = "width", .json = "%.0f" },
	[NEEDED] = { .header = "bytes a row",
	             .format = "%.1f",
	             .field = "needed_per_row",
	             .json = "%.3f" },
	[COUNTED] = { .header = "store",
	              .format = "%.1f",
	              .field = "counted_per_row",
	              .json = "%.3f" },
	[RESIDENT] = { .header = "resident",
	               .format = "%.1f",
	               .field = "resident_per_row",
	               .json = "%.3f" },
	[COUNTED_RATIO] = { .header = "store / bytes",
	                    .format = "%.3f",
	                    .field = "counted_ratio",
	                    .json = "%.4f" },
	[RESIDENT_RATIO] = { .header = "resident / bytes",
	                     .format = "%.3f",
	                     .field = "resident_ratio",
	                     .json = "%.4f" },
	[MOST] = { .header = "most while it grows",
	           .format = "%.3f",
	           .positive = true,
	           .field = "most_ratio",
	           .json = "%.4f" },
};

/* *is_within becomes false if the store takes too much. */
static trib_status optimizer_measure(struct table *table, const char *name, bool *is_within)
{
	trib_sparse_options job = TRIB_SPARSE_OPTIONS_INIT;
	struct sparse_table_options about;
	struct store_memory memory;
	trib_status status;
	double n = (double)given.rows;

	job.name = "bench";
	job.width = (int)given.width;
	job.optimizer = name;
	status = sparse_table_options_take(&job, &about);
	if (status == TRIB_OK)
		status = store_memory_measure(&about, (uint32_t)given.rows, &memory);
	if (status != TRIB_OK)
		return status;
	table_add(table);
	table_text(table, OPTIMIZER, name);
	table_number(table, ROWS, n);
	table_number(table, WIDTH, (double)given.width);
	table_number(table, NEEDED, (double)memory.needed / n);
	table_number(table, COUNTED, (double)memory.counted / n);
	table_number(table, RESIDENT, (double)memory.resident / n);
	table_number(table, COUNTED_RATIO, (double)memory.counted / (double)memory.needed);
	table_number(table, RESIDENT_RATIO, (double)memory.resident / (double)memory.needed);
	table_number(table, MOST, memory.most);
	if ((double)memory.resident > LIMIT * (double)memory.needed || memory.most > LIMIT)
		*is_within = false;
	return TRIB_OK;
}

static trib_status optimizers_measure(struct table *table, bool *is_within)
{
	trib_status status = TRIB_OK;
	const char *list = given.optimizers;

	while (status == TRIB_OK && *list) {
		char name[32];

		list = list_word_next(list, name, sizeof(name));
		status = optimizer_measure(table, name, is_within);
	}
	return status;
}

static trib_status json_write(const struct table *table, bool is_within)
{
	struct json_writer json;
	trib_status status = json_start(&json, given.json);

	if (status != TRIB_OK)
		return status;
	json_put_text(&json, "benchmark", "sparse-store");
	json_put_number(&json, "limit", "%.2f", LIMIT);
	json_put_bool(&json, "within", is_within);
	table_json(table, &json, "results");
	return json_finish(&json, given.json);
}

int bench_store_run(int argc, char **argv)
{
	struct table table;
	trib_status status;
	bool is_within = true;
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
	if (!given.rows || given.rows >= UINT32_MAX)
		return options_fail(&options, "--rows is 1 to 4294967294");
	if (!given.width || given.width > SPARSE_WIDTH_MAX)
		return options_fail(&options, "--width is 1 to %u", SPARSE_WIDTH_MAX);
	table_open(&table, columns, sizeof(columns) / sizeof(columns[0]));
	status = output_try(given.json);
	if (status == TRIB_OK)
		status = optimizers_measure(&table, &is_within);
	if (status == TRIB_OK && (!given.json || strcmp(given.json, "-") != 0)) {
		printf("memory of a store, bytes a row; the limit is %.1f times\n\n", LIMIT);
		table_print(&table, stdout);
	}
	if (status == TRIB_OK && given.json)
		status = json_write(&table, is_within);
	table_close(&table);
	if (status != TRIB_OK)
		fprintf(stderr, "trib bench sparse-store: %s\n", trib_last_error());
	else if (!is_within)
		fprintf(stderr, "trib bench sparse-store: the store takes too much memory\n");
	return status == TRIB_OK && is_within ? EXIT_SUCCESS : EXIT_FAILURE;
}
