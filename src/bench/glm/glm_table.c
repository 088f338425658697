/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bed/result_cells.h"
#include "bench/glm/glm_bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum column {
	HOSTS,
	FEATURES,
	BATCH,
	PRECISION,
	BITS,
	ROWS,
	SYSTEM,
	ALGORITHM,
	PLANE,
	EPOCH,
	SPREAD,
	BATCH_TIME,
	SAMPLES,
	RATIO,
	LOSS,
	RUNS,
	COLUMNS = RUNS + RUN_COLUMNS
};

static const struct table_column columns[COLUMNS] = {
	[HOSTS] = { .header = "hosts", .format = "%.0f", .field = "hosts", .json = "%.0f" },
	[FEATURES] = { .header = "features",
	               .format = "%.0f",
	               .field = "features",
	               .json = "%.0f" },
	[BATCH] = { .header = "batch", .format = "%.0f", .field = "batch", .json = "%.0f" },
	[PRECISION] = { .header = "precision" },
	[BITS] = { .field = "bits", .json = "%.0f" },
	[ROWS] = { .header = "rows", .format = "%.0f", .field = "rows", .json = "%.0f" },
	[SYSTEM] = { .header = "system", .field = "system" },
	[ALGORITHM] = { .field = "algorithm" },
	[PLANE] = { .header = "plane", .field = "plane" },
	[EPOCH] = { .header = "epoch", .show = table_seconds, .field = "epoch_s", .json = "%.9g" },
	[SPREAD] = SPREAD_COLUMN,
	[BATCH_TIME] = { .header = "mini-batch",
	                 .show = table_seconds,
	                 .field = "batch_s",
	                 .json = "%.9g" },
	[SAMPLES] = { .header = "samples/s",
	              .format = "%.0f",
	              .field = "samples_per_s",
	              .json = "%.9g" },
	[RATIO] = RATIO_COLUMN("CPUSync / this", "mpi_ratio"),
	[LOSS] = { .field = "loss", .json = "%.9g" },
	RUN_COLUMNS_FROM(RUNS),
};

/* ---- rows ---- */

static void shape_fill(const struct glm_case *row, struct table *table)
{
	char bits[16];

	glm_bits_text(row->shape.bits, bits, sizeof(bits));
	table_number(table, HOSTS, row->place->workers);
	table_number(table, FEATURES, (double)row->shape.features);
	table_number(table, BATCH, (double)row->shape.batch);
	table_text(table, PRECISION, bits);
	table_number(table, BITS, row->shape.bits);
	table_number(table, ROWS, (double)row->shape.rows);
	table_text(table, SYSTEM, row->of->name);
	table_text(table, PLANE, row->system.plane);
}

static void row_fill(const struct glm_report *report, unsigned i, struct table *table)
{
	const struct glm_case *row = &report->cases[i];
	const struct bench_result *r = &report->results[i];
	const struct glm_curve *curve = row->curve;
	double epoch = glm_epoch_s(report, i);
	double batches = ceil((double)row->shape.rows / (double)row->shape.batch);

	table_add(table);
	shape_fill(row, table);
	table_text(table, ALGORITHM, r->variant->name[0] ? r->variant->name : NULL);
	table_number(table, EPOCH, epoch);
	table_number(table, SPREAD, r->stats.repeats ? r->stats.spread : NAN);
	table_number(table, BATCH_TIME, epoch / batches);
	table_number(table, SAMPLES, (double)row->shape.rows / epoch);
	table_number(table, RATIO, glm_mpi_ratio(report, i));
	table_number(table, LOSS, curve->n ? curve->epochs[curve->n - 1].loss : NAN);
	run_cells_fill(table, RUNS, &report->options->bench, r);
}

static void rows_fill(const void *context, struct table *table)
{
	const struct glm_report *report = context;

	table_open(table, columns, COLUMNS);
	for (unsigned i = 0; i < report->n; i++)
		row_fill(report, i, table);
}

/* ---- the table ---- */

static void notes_print(const struct glm_report *report)
{
	unsigned odd;

	printf("\nAn epoch is the median of the runs' medians; spread is that of the runs' "
	       "medians. "
	       "model: columns are split,\nmicro-batches are pipelined. vanilla: the same without "
	       "pipeline. data: rows are split. mpi: CPUSync, vanilla\nover MPI_Allreduce.\n");
	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];

		if (r->failed)
			printf("* %s, %" PRIu64 " features, batch %" PRIu64
			       ", %u hosts: %u of %u runs failed: %s\n",
			       report->cases[i].of->name, report->cases[i].shape.features,
			       report->cases[i].shape.batch, report->cases[i].place->workers,
			       r->failed, r->runs, r->note);
	}
	disturbed_print(report->results, report->n);
	if (glm_losses_agree(report, &odd))
		printf("Systems that train the same data have the same loss after each epoch.\n");
	if (report->left_out[0])
		printf("left out: %s\n", report->left_out);
}

static void data_text(const struct glm_report *report, char *out, size_t room)
{
	const struct glm_bench_options *o = report->options;

	if (o->nonzeros)
		snprintf(out, room, "sparse, %" PRIu64 " values a row", o->nonzeros);
	else
		snprintf(out, room, "dense");
}

void glm_table_print(const void *context)
{
	const struct glm_report *report = context;
	const struct bench_options *o = &report->options->bench;
	char where[256], data[64];
	struct table table;

	bench_place_describe(&report->bed, where, sizeof(where));
	data_text(report, data, sizeof(data));
	printf("linear models, %s: %s\n%" PRIu64 " x %" PRIu64 " epochs, after %" PRIu64
	       " that are not timed\n\n",
	       data, where, o->repeats, o->iterations, o->warmup);
	rows_fill(report, &table);
	table_print(&table, stdout);
	table_close(&table);
	notes_print(report);
}

/* ---- JSON ---- */

static void settings_write(struct json_writer *json, const void *context)
{
	const struct glm_report *report = context;
	const struct glm_bench_options *o = report->options;
	char data[64];
	unsigned odd;

	data_text(report, data, sizeof(data));
	place_put(json, &report->bed);
	json_put_count(json, "link_bps", report->bed.slowest_bps);
	json_put_text(json, "data", data);
	json_put_count(json, "nonzeros", o->nonzeros);
	json_put_count(json, "threads", o->threads);
	runs_put(json, "epochs", &o->bench);
	json_put_bool(json, "same_losses", glm_losses_agree(report, &odd));
	json_put_text(json, "left_out", report->left_out);
}

/* Loss against time: a row for each epoch of the last run of each training. */
static void curves_write(struct json_writer *json, const void *context)
{
	const struct glm_report *report = context;

	for (unsigned i = 0; i < report->n; i++)
		for (unsigned e = 0; e < report->curves[i].n; e++) {
			const struct glm_epoch *epoch = &report->curves[i].epochs[e];

			json_open_object(json, NULL);
			json_put_count(json, "row", i);
			json_put_count(json, "epoch", epoch->number);
			json_put_number(json, "loss", "%.9g", epoch->loss);
			json_put_number(json, "at_s", "%.6f", epoch->at_s);
			json_close(json);
		}
}

const struct json_report glm_json = { .settings = settings_write,
	                              .rows = rows_fill,
	                              .curves = curves_write };
