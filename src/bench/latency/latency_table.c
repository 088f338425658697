/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/latency/bench_latency.h"
#include "bench/bed/result_cells.h"
#include "bench/bed/size_list.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- rows ---- */

static double median_of(const struct bench_result *result)
{
	return result->stats.repeats ? result->stats.of_runs.median : NAN;
}

/* The best peer's median over this one, with the same hosts and bytes; NaN: unknown. */
static double find_gain(const struct latency_report *report, const struct bench_result *result)
{
	double best = NAN;

	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];

		if (r->place == result->place && r->bytes == result->bytes &&
		    latency_system_is_peer(r->system))
			best = fmin(best, median_of(r)); /* fmin ignores a NaN */
	}
	return best / median_of(result);
}

enum column {
	MANY = NAME_COLUMNS,
	MEDIAN,
	P1,
	P99,
	SPREAD,
	GAIN,
	CALLS,
	RUNS,
	COLUMNS = RUNS + RUN_COLUMNS
};

static const struct table_column columns[COLUMNS] = {
	NAME_COLUMNS_FIRST,
	[MANY] = { .field = "many", .json = "%.0f" },
	[MEDIAN] = { .header = "median",
	             .show = table_seconds,
	             .field = "median_s",
	             .json = "%.9g" },
	[P1] = { .header = "p1", .show = table_seconds, .field = "p1_s", .json = "%.9g" },
	[P99] = { .header = "p99", .show = table_seconds, .field = "p99_s", .json = "%.9g" },
	[SPREAD] = SPREAD_COLUMN,
	[GAIN] = RATIO_COLUMN("best peer / this", "best_peer_ratio"),
	[CALLS] = { .field = "iterations", .json = "%.0f" },
	RUN_COLUMNS_FROM(RUNS),
};

static void result_fill(const struct latency_report *report, const struct bench_result *r,
                        struct table *table)
{
	const struct bench_quantiles *figures = &r->stats.of_runs;
	bool known = r->stats.repeats > 0;

	table_number(table, MANY, (double)report->options->bench.many);
	table_number(table, MEDIAN, median_of(r));
	table_number(table, P1, known ? figures->p1 : NAN);
	table_number(table, P99, known ? figures->p99 : NAN);
	table_number(table, SPREAD, known ? r->stats.spread : NAN);
	if (!r->system->alone)
		table_number(table, GAIN, find_gain(report, r));
	table_number(table, CALLS, r->iterations);
	run_cells_fill(table, RUNS, &report->options->bench, r);
}

/* `place`: rows of this number of hosts; NULL: all rows. */
static void rows_fill(const struct latency_report *report, const struct bench_place *place,
                      struct table *table)
{
	const struct bench_result *before = NULL;

	table_open(table, columns, COLUMNS);
	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];

		if (place && r->place != place)
			continue;
		name_cells_fill(table, r, before);
		result_fill(report, r, table);
		before = r;
	}
}

/* ---- the table ---- */

static void notes_print(const struct latency_report *report)
{
	char size[24], name[96];

	printf("\nA time is the mean over the ranks of one call, from a barrier that is not timed. "
	       "Each figure is the median\nof the runs' figures; spread is that of the runs' "
	       "medians.\n");
	disturbed_print(report->results, report->n);
	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];

		bench_name_text(r, name, sizeof(name));
		if (r->failed)
			printf("* %s at %s on %u hosts: %u of %u runs failed: %s\n", name,
			       bench_bytes_text(r->bytes, size), r->place->workers, r->failed,
			       r->runs, r->note);
	}
	if (report->left_out[0])
		printf("left out: %s\n", report->left_out);
}

void latency_table_print(const void *context)
{
	const struct latency_report *report = context;
	const struct bench_options *o = &report->options->bench;
	struct table table;
	char where[256];

	for (unsigned h = 0; h < report->options->n_hosts; h++) {
		bench_place_describe(&report->places[h], where, sizeof(where));
		printf("%sallreduce, %s sum", h ? "\n" : "", o->type);
		if (o->many > 1)
			printf(", %llu posted together", (unsigned long long)o->many);
		printf(": %s\n", where);
		rows_fill(report, &report->places[h], &table);
		printf("%llu x %llu calls, fewer if a vector is large\n\n",
		       (unsigned long long)o->repeats, (unsigned long long)o->iterations);
		table_print(&table, stdout);
		table_close(&table);
	}
	notes_print(report);
}

/* ---- JSON ---- */

static void settings_write(struct json_writer *json, const void *context)
{
	const struct latency_report *report = context;
	const struct bench_options *o = &report->options->bench;

	place_put(json, &report->bed);
	json_put_count(json, "link_bps", report->bed.slowest_bps);
	json_put_text(json, "collective", "allreduce");
	json_put_text(json, "type", o->type);
	json_put_text(json, "time", "mean over ranks");
	json_put_count(json, "many", o->many);
	runs_put(json, "iterations", o);
	json_put_text(json, "left_out", report->left_out);
}

static void all_rows_fill(const void *context, struct table *table)
{
	rows_fill(context, NULL, table);
}

const struct json_report latency_json = { .settings = settings_write, .rows = all_rows_fill };
