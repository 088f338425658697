/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bed/result_cells.h"

#include <stdio.h>

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
