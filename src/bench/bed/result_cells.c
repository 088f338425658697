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
