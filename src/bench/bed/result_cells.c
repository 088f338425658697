/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bed/result_cells.h"

#include "bench/bed/size_list.h"

#include <stdio.h>

void name_cells_fill(struct table *table, const struct bench_result *result,
                     const struct bench_result *before)
{
	bool is_new = !before || before->bytes != result->bytes;
	const char *algorithm = result->variant->name;
	char size[24], name[96];

	bench_name_text(result, name, sizeof(name));
	table_add(table);
	table_text(table, 0, is_new ? bench_bytes_text(result->bytes, size) : "");
	table_text(table, 1, name);
	table_text(table, 2, result->system->name);
	table_text(table, 3, algorithm[0] ? algorithm : NULL);
	table_text(table, 4, result->system->plane);
	table_number(table, 5, result->place->workers);
	table_number(table, 6, (double)result->bytes);
}

void run_cells_fill(struct table *table, unsigned first, const struct bench_options *options,
                    const struct bench_result *result)
{
	table_number(table, first, result->stats.repeats);
	table_number(table, first + 1, result->failed);
	if (!options->hurry)
		table_number(table, first + 2, result->disturbed);
	if (result->failed)
		table_text(table, first + 3, result->note);
	if (result->stats.repeats == 0)
		table_note(table, result->runs ? "no result; see below" : "not measured");
	else if (result->failed)
		table_note(table, "*");
}

/* Other work makes times longer, most of all those of systems whose ranks wait for each other. */
void disturbed_print(const struct bench_result *results, unsigned n)
{
	unsigned runs = 0, disturbed = 0;

	for (unsigned i = 0; i < n; i++) {
		runs += results[i].runs;
		disturbed += results[i].disturbed;
	}
	if (disturbed)
		printf("%u of %u runs began while other work kept this machine busy: compare no "
		       "figures.\n",
		       disturbed, runs);
}

void place_put(struct json_writer *json, const struct bench_place *place)
{
	char where[256];

	bench_place_describe(place, where, sizeof(where));
	json_put_text(json, "place", where);
}

void runs_put(struct json_writer *json, const char *iterations, const struct bench_options *options)
{
	json_put_count(json, iterations, options->iterations);
	json_put_count(json, "warmup", options->warmup);
	json_put_count(json, "repeats", options->repeats);
}
