/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report/table.h"
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
	REPEATS,
	FAILED,
	DISTURBED,
	NOTE,
	COLUMNS
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
	[SPREAD] = { .header = "spread",
	             .format = "%.1f",
	             .scale = 100,
	             .unit = " %",
	             .positive = true,
	             .field = "spread",
	             .json = "%.9g" },
	[GAIN] = { .header = "this / servers",
	           .format = "%.2f",
	           .unit = " x",
	           .field = "servers_ratio",
	           .json = "%.9g" },
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
	[REPEATS] = { .field = "repeats", .json = "%.0f" },
	[FAILED] = { .field = "failed", .json = "%.0f" },
	[DISTURBED] = { .field = "disturbed", .json = "%.0f" },
	[NOTE] = { .field = "note" },
};

/* ---- rows ---- */

static double part(double some, double all)
{
	return all > 0 ? some / all : NAN;
}

/* What a system without servers or without hot rows does not have stays blank. */
static void figures_fill(const struct push_report *report, unsigned i, struct table *table)
{
	const struct push_figures *f = &report->figures[i];
	enum push_way way = report->cases[i].of->way;
	bool measured = report->results[i].stats.repeats > 0;

	if (way == PUSH_HOT) {
		table_number(table, HOT_SET, measured ? f->hot_set : NAN);
		table_number(table, HOT_SHARE, measured ? part(f->hot_rows, f->rows) : NAN);
		table_number(table, REPEATED, measured ? part(f->repeats, f->packets) : NAN);
	}
	if (way != PUSH_DENSE)
		table_number(table, LINK_BYTES,
		             measured ? part(report->link_bytes[i], f->rows) : NAN);
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
	table_number(table, BYTES, measured ? report->figures[i].step_bytes : NAN);
	table_number(table, RATE, push_rate(report, i));
	table_number(table, SPREAD, measured ? r->stats.spread : NAN);
	table_number(table, GAIN, push_gain(report, i));
	figures_fill(report, i, table);
	table_number(table, ITERATION, measured ? r->stats.of_runs.median : NAN);
	table_number(table, REPEATS, r->stats.repeats);
	table_number(table, FAILED, r->failed);
	if (report->options->bench.wait_quiet)
		table_number(table, DISTURBED, r->disturbed);
	if (r->failed)
		table_text(table, NOTE, r->note);
	if (!measured)
		table_note(table, r->runs ? "no result; see below" : "not measured");
	else if (r->failed)
		table_note(table, "*");
}

static void rows_fill(const struct push_report *report, struct table *table)
{
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
	unsigned runs = 0, disturbed = 0;

	printf("\nAn update is a row that a worker pushed; equal rows of a step are one. The rate "
	       "is that of all workers,\nfrom the first push of an iteration until all are "
	       "durable. Bytes a step are one worker's.\n");
	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];

		runs += r->runs;
		disturbed += r->disturbed;
		if (r->failed)
			printf("* %s %s with %u workers: %u of %u runs failed: %s\n",
			       report->cases[i].of->name, report->cases[i].of->plane,
			       report->cases[i].place->workers, r->failed, r->runs, r->note);
	}
	if (disturbed)
		printf("%u of %u runs began while other work kept this machine busy: compare no "
		       "figures.\n",
		       disturbed, runs);
	if (report->left_out[0])
		printf("left out: %s\n", report->left_out);
}

void push_table_print(const struct push_report *report)
{
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

static void settings_write(struct json_writer *json, const struct push_report *report)
{
	const struct push_options *o = report->options;
	char where[256], data[160];

	bench_place_describe(&report->beds[0], where, sizeof(where));
	data_text(o, data, sizeof(data));
	json_open_object(json, "settings");
	json_put_text(json, "version", TRIB_VERSION);
	json_put_text(json, "place", where);
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
	json_put_count(json, "iterations", o->bench.iterations);
	json_put_count(json, "warmup", o->bench.warmup);
	json_put_count(json, "repeats", o->bench.repeats);
	json_put_text(json, "left_out", report->left_out);
	json_close(json);
}

/* The iterations of the last run of each row. */
static void curves_write(struct json_writer *json, const struct push_report *report)
{
	json_open_list(json, "curves");
	for (unsigned i = 0; i < report->n; i++) {
		const struct push_curve *curve = &report->curves[i];
		double updates = report->figures[i].rows / report->results[i].iterations;

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
	json_close(json);
}

trib_status push_json_write(const struct push_report *report, const char *path)
{
	struct json_writer json;
	struct table table;
	trib_status status = json_start(&json, path);

	if (status != TRIB_OK)
		return status;
	settings_write(&json, report);
	rows_fill(report, &table);
	table_json(&table, &json, "results");
	table_close(&table);
	curves_write(&json, report);
	return json_finish(&json, path);
}
