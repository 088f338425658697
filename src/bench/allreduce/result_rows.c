/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/allreduce/result_rows.h"
#include "bench/bed/result_cells.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double bench_gbps(const struct bench_result *result)
{
	return result->stats.median > 0 ? (double)result->bytes * 8 / result->stats.median / 1e9
	                                : 0;
}

/* The limit's time over the median time; 0: the links set no limit. */
static double limit_share(const struct bench_result *result)
{
	return result->stats.median > 0 ? result->limit_s / result->stats.median : 0;
}

bool bench_again(const struct bench_report *report, const struct bench_result *result,
                 double *fragments, double *results)
{
	const struct bench_packets *packets = &result->packets;
	double once = packets->fragments - packets->fragments_again;

	if (once <= 0)
		return false;
	*fragments = packets->fragments_again / once;
	/*
	 * With an allreduce there are as many results as fragments of all workers; with a
	 * reduce, as many as of one worker.
	 */
	*results = packets->results_again / once *
	           (report->options->to_one ? report->place->workers : 1);
	return true;
}

/* The peer's time over Tributary's at the same size; 0: one of them has no result. */
static double tributary_gain(const struct bench_report *report, const struct bench_result *peer)
{
	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *ours = &report->results[i];

		if (ours->system == report->systems[0] && ours->bytes == peer->bytes &&
		    ours->stats.median > 0 && peer->stats.median > 0)
			return peer->stats.median / ours->stats.median;
	}
	return 0;
}

enum column {
	MIN = NAME_COLUMNS,
	MEDIAN,
	P99,
	GBPS,
	LIMIT,
	SHARE,
	SPREAD,
	GAIN,
	CPU,
	WORKER_CPU,
	ADDED,
	TIMES = ADDED + 3,
	FRAGMENTS = TIMES + 3,
	RESULTS,
	RUNS,
	COLUMNS = RUNS + RUN_COLUMNS
};

static const struct table_column columns[COLUMNS] = {
	NAME_COLUMNS_FIRST,
	[MIN] = { .header = "min", .show = table_seconds, .field = "min_s", .json = "%.9g" },
	[MEDIAN] = { .header = "median",
	             .show = table_seconds,
	             .field = "median_s",
	             .json = "%.9g" },
	[P99] = { .header = "p99", .show = table_seconds, .field = "p99_s", .json = "%.9g" },
	[GBPS] = { .header = "Gb/s", .format = "%.3f", .field = "algbw_gbps", .json = "%.9g" },
	[LIMIT] = { .header = "limit", .show = table_seconds, .field = "limit_s", .json = "%.9g" },
	[SHARE] = { .header = "of limit",
	            .format = "%.1f",
	            .scale = 100,
	            .unit = " %",
	            .field = "share_of_limit",
	            .json = "%.9g" },
	[SPREAD] = SPREAD_COLUMN,
	[GAIN] = RATIO_COLUMN("tributary", "tributary_gain"),
	[CPU] = { .field = "aggregator_cpu_s", .json = "%.9g" },
	[WORKER_CPU] = { .field = "worker_cpu_s", .json = "%.9g" },
	[ADDED] = { .field = "aggregated_gb_per_cpu_s", .json = "%.9g" },
	[ADDED + 1] = { .field = "aggregated_gb_per_cpu_s_min", .json = "%.9g" },
	[ADDED + 2] = { .field = "aggregated_gb_per_cpu_s_max", .json = "%.9g" },
	[TIMES] = { .field = "aggregator_cpu_times", .json = "%.9g" },
	[TIMES + 1] = { .field = "aggregator_cpu_times_min", .json = "%.9g" },
	[TIMES + 2] = { .field = "aggregator_cpu_times_max", .json = "%.9g" },
	[FRAGMENTS] = { .field = "fragments_again", .json = "%.9g" },
	[RESULTS] = { .field = "results_again", .json = "%.9g" },
	RUN_COLUMNS_FROM(RUNS),
};

static void range_fill(struct table *table, unsigned column, const struct bench_range *range)
{
	table_number(table, column, range->n ? range->median : NAN);
	table_number(table, column + 1, range->n ? range->least : NAN);
	table_number(table, column + 2, range->n ? range->most : NAN);
}

static void figures_fill(const struct bench_report *report, const struct bench_result *r,
                         struct table *table)
{
	bool known = r->stats.repeats > 0, limited = r->limit_s > 0;
	double gain = tributary_gain(report, r);

	table_number(table, MIN, known ? r->stats.min : NAN);
	table_number(table, MEDIAN, known ? r->stats.median : NAN);
	table_number(table, P99, known ? r->stats.p99 : NAN);
	table_number(table, GBPS, known ? bench_gbps(r) : NAN);
	table_number(table, LIMIT, limited ? r->limit_s : NAN);
	table_number(table, SHARE, known && limited ? limit_share(r) : NAN);
	table_number(table, SPREAD, known ? r->stats.spread : NAN);
	if (r->system != report->systems[0])
		table_number(table, GAIN, gain > 0 ? gain : NAN);
}

static void result_fill(const struct bench_report *report, const struct bench_result *r,
                        struct table *table)
{
	double fragments, results;

	figures_fill(report, r, table);
	if (r->cpu_s > 0) {
		table_number(table, CPU, r->cpu_s);
		range_fill(table, ADDED, &r->added_gb);
		if (r->system != report->systems[0])
			range_fill(table, TIMES, &r->cpu_times);
	}
	if (r->worker_cpu_s > 0)
		table_number(table, WORKER_CPU, r->worker_cpu_s);
	if (bench_again(report, r, &fragments, &results)) {
		table_number(table, FRAGMENTS, fragments);
		table_number(table, RESULTS, results);
	}
	run_cells_fill(table, RUNS, report->options, r);
}

void bench_rows_fill(const void *context, struct table *table)
{
	const struct bench_report *report = context;

	table_open(table, columns, COLUMNS);
	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];

		name_cells_fill(table, r, i ? r - 1 : NULL);
		result_fill(report, r, table);
	}
}
