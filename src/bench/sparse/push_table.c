/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bed/result_cells.h"
#include "bench/sparse/push_bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum column {
	WORKERS,
	LOSS,
	SYSTEM,
	PLANE,
	BYTES,
	RATE,
	SPREAD,
	GAIN,
	HOT_SET,
	HOT_SHARE,
	LINK_BYTES,
	REPEATED,
	RECIRCULATIONS,
	KERNEL,
	ITERATION,
	RUNS,
	COLUMNS = RUNS + RUN_COLUMNS
};

static const struct table_column columns[COLUMNS] = {
	[WORKERS] = { .header = "workers", .format = "%.0f", .field = "workers", .json = "%.0f" },
	[LOSS] = { .header = "loss",
	           .format = "%.3g",
	           .scale = 100,
	           .unit = " %",
	           .field = "loss",
	           .json = "%.9g" },
	[SYSTEM] = { .header = "system", .field = "system" },
	[PLANE] = { .header = "plane", .field = "plane" },
	[BYTES] = { .header = "bytes a step", .format = "%.0f", .field = "bytes", .json = "%.0f" },
	[RATE] = { .header = "updates/s",
	           .format = "%.0f",
	           .field = "updates_per_s",
	           .json = "%.9g" },
	[SPREAD] = SPREAD_COLUMN,
	[GAIN] = RATIO_COLUMN("this / servers", "servers_ratio"),
	[HOT_SET] = { .header = "hot rows", .format = "%.0f", .field = "hot_rows", .json = "%.0f" },
	[HOT_SHARE] = { .header = "hot updates",
	                .format = "%.1f",
	                .scale = 100,
	                .unit = " %",
	                .field = "hot_share",
	                .json = "%.9g" },
	[LINK_BYTES] = { .header = "server bytes an update",
	                 .format = "%.1f",
	                 .field = "server_bytes_per_update",
	                 .json = "%.9g" },
	[REPEATED] = { .header = "repeats",
	               .format = "%.3f",
	               .scale = 100,
	               .unit = " %",
	               .field = "repeats_share",
	               .json = "%.9g" },
	[RECIRCULATIONS] = { .header = "recirculations",
	                     .format = "%.2f",
	                     .field = "recirculations",
	                     .json = "%.9g" },
	[KERNEL] = { .header = "in the kernel",
	             .format = "%.1f",
	             .scale = 100,
	             .unit = " %",
	             .field = "kernel_share",
	             .json = "%.9g" },
	[ITERATION] = { .field = "iteration_s", .json = "%.9g" },
	RUN_COLUMNS_FROM(RUNS),
};

/* ---- rows ---- */

static double part(double some, double all)
{
	return all > 0 ? some / all : NAN;
}

/* What a system without servers or without hot rows does not have stays blank. */
static void figures_fill(const struct push_report *report, unsigned i, struct table *table)
{
	const struct push_figures *f = &report->told[i].figures;
	enum push_way way = report->cases[i].of->way;
	bool measured = report->results[i].stats.repeats > 0;

	if (way == PUSH_HOT) {
		table_number(table, HOT_SET, measured ? f->hot_set : NAN);
		table_number(table, HOT_SHARE, measured ? part(f->hot_rows, f->rows) : NAN);
		table_number(table, REPEATED, measured ? part(f->repeats, f->packets) : NAN);
	}
	if (way != PUSH_DENSE)
		table_number(table, LINK_BYTES,
		             measured ? part(report->told[i].link_bytes, f->rows) : NAN);
	if (f->kernel_bytes > 0)
		table_number(table, KERNEL, part(f->kernel_bytes, f->added_bytes));
	if (f->switch_packets > 0)
		table_number(table, RECIRCULATIONS, part(f->recirculations, f->switch_packets));
}

static void row_fill(const struct push_report *report, unsigned i, struct table *table)
{
	const struct push_case *row = &report->cases[i];
	const struct bench_result *r = &report->results[i];
	bool measured = r->stats.repeats > 0;

	table_add(table);
	table_number(table, WORKERS, row->place->workers);
	table_number(table, LOSS, row->loss);
	table_text(table, SYSTEM, row->of->name);
	table_text(table, PLANE, row->of->plane);
	table_number(table, BYTES, measured ? report->told[i].figures.step_bytes : NAN);
	table_number(table, RATE, push_rate(report, i));
	table_number(table, SPREAD, measured ? r->stats.spread : NAN);
	table_number(table, GAIN, push_gain(report, i));
	figures_fill(report, i, table);
	table_number(table, ITERATION, measured ? r->stats.of_runs.median : NAN);
	run_cells_fill(table, RUNS, &report->options->bench, r);
}

static void rows_fill(const void *context, struct table *table)
{
	const struct push_report *report = context;

	table_open(table, columns, COLUMNS);
	for (unsigned i = 0; i < report->n; i++)
		row_fill(report, i, table);
}

/* ---- the table ---- */

static void data_text(const struct push_options *o, char *out, size_t room)
{
	if (o->tensors)
		snprintf(out, room, "pushes of %u worker%s in %s.*", o->files,
		         o->files == 1 ? "" : "s", o->tensors);
	else
		snprintf(out, room,
		         "%" PRIu64 " rows of %" PRIu64 " floats, %" PRIu64
		         " drawn a step, Zipf %g%s",
		         o->keys, o->width, o->rows, o->zipf,
		         o->drift ? ", others are popular from halfway on" : "");
}

static void rate_text(uint64_t bps, char *out, size_t room)
{
	if (bps)
		snprintf(out, room, "of %g Mb/s", (double)bps / 1e6);
	else
		snprintf(out, room, "not shaped");
}

static void notes_print(const struct push_report *report)
{
	printf("\nAn update is a row that a worker pushed; equal rows of a step are one. The rate "
	       "is that of all workers,\nfrom the first push of an iteration until all are "
	       "durable. Bytes a step are one worker's.\n");
	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];

		if (r->failed)
			printf("* %s %s with %u workers: %u of %u runs failed: %s\n",
			       report->cases[i].of->name, report->cases[i].of->plane,
			       report->cases[i].place->workers, r->failed, r->runs, r->note);
	}
	disturbed_print(report->results, report->n);
	if (report->left_out[0])
		printf("left out: %s\n", report->left_out);
}

void push_table_print(const void *context)
{
	const struct push_report *report = context;
	const struct push_options *o = report->options;
	char where[256], data[160], rate[40];
	struct table table;

	bench_place_describe(&report->beds[0], where, sizeof(where));
	data_text(o, data, sizeof(data));
	rate_text(o->server_bps, rate, sizeof(rate));
	printf("%s: %s\n%" PRIu64 " server%s, links %s, %" PRIu64 " KiB in the aggregator; %" PRIu64
	       " x %" PRIu64 " iterations of %" PRIu64 " steps\n\n",
	       data, where, o->shards, o->shards == 1 ? "" : "s",
	       report->beds[0].cluster.n ? rate : "not shaped", o->bench.pool_bytes >> 10,
	       o->bench.repeats, o->bench.iterations, o->steps);
	rows_fill(report, &table);
	table_print(&table, stdout);
	table_close(&table);
	notes_print(report);
}

/* ---- JSON ---- */

static void settings_write(struct json_writer *json, const void *context)
{
	const struct push_report *report = context;
	const struct push_options *o = report->options;
	char data[160];

	data_text(o, data, sizeof(data));
	place_put(json, &report->beds[0]);
	json_put_text(json, "data", data);
	json_put_count(json, "link_bps", report->beds[0].slowest_bps);
	json_put_count(json, "server_bps", report->beds[0].cluster.n ? o->server_bps : 0);
	json_put_count(json, "shards", o->shards);
	json_put_count(json, "memory_bytes", o->bench.pool_bytes);
	json_put_text(json, "sums", o->sums);
	json_put_text(json, "sync", o->sync);
	json_put_bool(json, "pull", o->pulls);
	json_put_bool(json, "drift", o->drift);
	json_put_count(json, "steps", o->steps);
	runs_put(json, "iterations", &o->bench);
	json_put_text(json, "left_out", report->left_out);
}

/* The iterations of the last run of each row that has succeeded. */
static void curves_write(struct json_writer *json, const void *context)
{
	const struct push_report *report = context;

	for (unsigned i = 0; i < report->n; i++) {
		const struct push_curve *curve = &report->told[i].curve;
		double updates = push_updates(report, i);

		for (unsigned k = 0; k < curve->n; k++) {
			json_open_object(json, NULL);
			json_put_count(json, "row", i);
			json_put_count(json, "iteration", k);
			json_put_number(json, "seconds", "%.9g", curve->seconds[k]);
			json_put_number(json, "updates_per_s", "%.9g", updates / curve->seconds[k]);
			json_put_number(json, "hot_share", "%.6g", curve->hot_share[k]);
			json_close(json);
		}
	}
}

const struct json_report push_json = { .settings = settings_write,
	                               .rows = rows_fill,
	                               .curves = curves_write };
