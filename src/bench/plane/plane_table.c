/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/plane/bench_plane.h"

#include "bench/report/table.h"

#include <inttypes.h>
#include <stdio.h>

static double spread(const struct plane_value *value)
{
	return value->median > 0 ? (value->high - value->low) / value->median : 0;
}

static const char *offload_text(const struct plane_options *o)
{
	return o->offload ? "offloads on: up to 64 KB cross the link at once"
	       : o->gro   ? "packets cross one by one, the receiver may join them (GRO)"
	                  : "offloads off: packets cross and are received one by one";
}

/* ---- as much as the aggregator takes ---- */

enum full_column {
	CORES,
	PLANE,
	GBPS,
	PACKETS,
	GBPS_SPREAD,
	BUSY,
	COST,
	COST_SPREAD,
	NS,
	THREADS,
	LOST,
	SCALING,
	TO_TCP,
	FULL_COLUMNS
};

static const struct table_column full_columns[FULL_COLUMNS] = {
	[CORES] = { .header = "cores", .format = "%.0f" },
	[PLANE] = { .header = "plane" },
	[GBPS] = { .header = "Gb/s", .format = "%.2f" },
	[PACKETS] = { .header = "kpkt/s", .format = "%.0f", .scale = 1e-3 },
	[GBPS_SPREAD] = { .header = "spread", .format = "%.1f", .scale = 100, .unit = "%" },
	[BUSY] = { .header = "busy",
	           .format = "%.1f",
	           .scale = 100,
	           .unit = "%",
	           .positive = true },
	[COST] = { .header = "Gb/CPU-s", .format = "%.2f", .positive = true },
	[COST_SPREAD] = { .header = "spread", .format = "%.1f", .scale = 100, .unit = "%" },
	[NS] = { .header = "ns/pkt", .format = "%.0f", .positive = true },
	[THREADS] = { .header = "threads", .format = "%.0f", .positive = true },
	[LOST] = { .header = "lost", .format = "%.2f", .scale = 100, .unit = "%" },
	[SCALING] = { .header = "scaling", .format = "%.3f", .positive = true },
	[TO_TCP] = { .header = "to tcp", .format = "%.2f", .unit = "x", .positive = true },
};

static void full_fill(const struct plane_report *report, const struct plane_row *row,
                      struct table *table)
{
	const struct plane_row *tcp = bench_plane_find(report, "tcp", row->cores, -1);
	const struct plane_row *one = bench_plane_find(report, row->plane, 1, -1);

	table_number(table, GBPS, row->gbps.median);
	table_number(table, PACKETS, row->packets.median);
	table_number(table, GBPS_SPREAD, spread(&row->gbps));
	table_number(table, BUSY, row->busy.median);
	table_number(table, COST, row->cost.median);
	table_number(table, COST_SPREAD, spread(&row->cost));
	table_number(table, NS, row->ns.median);
	table_number(table, THREADS, row->threads.median);
	table_number(table, LOST, row->lost.median);
	if (report->options->mode == PLANE_CORES)
		table_number(table, SCALING,
		             one ? row->gbps.median / one->gbps.median / row->cores : 0);
	else
		table_number(table, TO_TCP,
		             tcp && tcp->cost.median > 0 ? row->cost.median / tcp->cost.median : 0);
}

static void full_print(const struct plane_report *report)
{
	bool shared = false;
	struct table table;

	table_open(&table, full_columns, FULL_COLUMNS);
	for (unsigned i = 0; i < report->n; i++) {
		const struct plane_row *row = &report->rows[i];

		table_add(&table);
		table_number(&table, CORES, row->cores);
		table_text(&table, PLANE, row->plane);
		if (!row->n) {
			table_note(&table, "failed: %s", row->failed);
			continue;
		}
		full_fill(report, row, &table);
		if (row->disturbed || row->failed[0])
			table_note(&table, "%s%s", row->disturbed ? "*" : "",
			           row->failed[0] ? " failed later" : "");
		shared |= row->shared;
	}
	table_print(&table, stdout);
	table_close(&table);
	if (report->options->mode == PLANE_THROUGHPUT)
		printf("\nxdp, tcp-copied: veth copies every packet from the sender's buffer into "
		       "a page.\nudp, tcp: the receiver gets the sender's buffer without a copy.\n"
		       "...-nic, xdp-relay: frames are in pages already, as in a NIC's "
		       "driver.\n");
	if (shared)
		printf("\nThe load ran on the aggregator's cores as well: only the time of the "
		       "threads (\"threads\") is the aggregator's alone.\n");
}

/* Compares planes that receive packets in the same way. */
static void pairs_print(const struct plane_report *report)
{
	static const char *const pairs[][2] = { { "xdp", PLANE_COPIED },
		                                { PLANE_NIC, "tcp-nic" },
		                                { PLANE_RELAYED, "tcp-nic" },
		                                { PLANE_NIC, "udp-nic" } };

	for (unsigned i = 0; i < report->options->n_cores; i++)
		for (unsigned k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++) {
			unsigned cores = report->options->cores[i];
			const struct plane_row *a =
				bench_plane_find(report, pairs[k][0], cores, -1);
			const struct plane_row *b =
				bench_plane_find(report, pairs[k][1], cores, -1);

			if (a && b && a->cost.median > 0 && b->cost.median > 0)
				printf("%s, %u core%s: %.2f x %s (%.2f to %.2f)\n", a->plane, cores,
				       cores > 1 ? "s" : "", a->cost.median / b->cost.median,
				       b->plane, a->cost.low / b->cost.high,
				       a->cost.high / b->cost.low);
		}
}

/* Prints the time of the XDP program alone, if it is known. */
static void program_print(const struct plane_report *report)
{
	for (unsigned i = 0; i < report->n; i++) {
		const struct plane_row *row = &report->rows[i];
		const struct plane_row *tcp = bench_plane_find(report, "tcp", row->cores, -1);
		double bits = (double)report->options->elements * 32;

		if (!row->n || !(row->program.median > 0))
			continue;
		printf("%s, %u core%s: %.0f ns a packet, %.0f of them in the XDP program (as the "
		       "kernel counts), which alone adds %.1f Gb a CPU-second",
		       row->plane, row->cores, row->cores > 1 ? "s" : "", row->ns.median,
		       row->program.median, bits / row->program.median);
		if (tcp && tcp->ns.median > 0)
			printf(", %.2f x tcp", tcp->ns.median / row->program.median);
		printf("\n");
	}
}

/* ---- at a share of the most that the aggregator takes ---- */

enum load_column {
	LOAD_PLANE,
	LOAD_SHARE,
	LOAD_PACKETS,
	LOAD_GBPS,
	LOAD_BUSY,
	LOAD_MEDIAN,
	LOAD_P99,
	LOAD_LOST,
	LOAD_RESENT,
	LOAD_COLUMNS
};

static const struct table_column load_columns[LOAD_COLUMNS] = {
	[LOAD_PLANE] = { .header = "plane" },
	[LOAD_SHARE] = { .header = "of most", .format = "%.0f", .scale = 100, .unit = " %" },
	[LOAD_PACKETS] = { .header = "kpkt/s", .format = "%.0f", .scale = 1e-3 },
	[LOAD_GBPS] = { .header = "Gb/s", .format = "%.2f" },
	[LOAD_BUSY] = { .header = "busy", .format = "%.1f", .scale = 100, .unit = "%" },
	[LOAD_MEDIAN] = { .header = "median", .format = "%.1f", .scale = 1e6, .unit = " us" },
	[LOAD_P99] = { .header = "p99", .format = "%.1f", .scale = 1e6, .unit = " us" },
	[LOAD_LOST] = { .header = "lost", .format = "%.3f", .scale = 100, .unit = "%" },
	[LOAD_RESENT] = { .header = "resent", .format = "%.3f", .scale = 100, .unit = "%" },
};

static void load_print(const struct plane_report *report)
{
	struct table table;

	table_open(&table, load_columns, LOAD_COLUMNS);
	for (unsigned i = 0; i < report->n; i++) {
		const struct plane_row *row = &report->rows[i];

		table_add(&table);
		table_text(&table, LOAD_PLANE, row->plane);
		if (!row->n) {
			table_note(&table, "failed: %s", row->failed);
			continue;
		}
		if (row->share < 0)
			table_text(&table, LOAD_SHARE, "most");
		else
			table_number(&table, LOAD_SHARE, row->share);
		table_number(&table, LOAD_PACKETS, row->packets.median);
		table_number(&table, LOAD_GBPS, row->gbps.median);
		table_number(&table, LOAD_BUSY, row->busy.median);
		table_number(&table, LOAD_MEDIAN, row->latency_50.median);
		table_number(&table, LOAD_P99, row->latency_99.median);
		table_number(&table, LOAD_LOST, row->lost.median);
		table_number(&table, LOAD_RESENT, row->retransmitted.median);
		if (row->disturbed)
			table_note(&table, "*");
	}
	table_print(&table, stdout);
	table_close(&table);
}

/* ---- all of it ---- */

void bench_plane_print(const struct plane_report *report)
{
	const struct plane_options *o = report->options;
	bool disturbed = false;

	printf("%" PRIu64 " children, %" PRIu64 " f32 a packet, %s,\n%s; the result goes to %s\n\n",
	       o->children, o->elements,
	       o->one_port ? "all behind one port" : "each behind a port of its own",
	       offload_text(o), o->to_all ? "all" : "one");
	if (o->mode == PLANE_LOAD)
		load_print(report);
	else
		full_print(report);
	if (o->mode == PLANE_THROUGHPUT)
		pairs_print(report);
	program_print(report);
	for (unsigned i = 0; i < report->n; i++)
		disturbed |= report->rows[i].disturbed > 0;
	if (disturbed)
		printf("* other processes used the cores in some runs\n");
}

/* ---- for programs ---- */

static void value_write(struct json_writer *json, const char *name, const struct plane_value *value)
{
	char low[40], high[40];

	snprintf(low, sizeof(low), "%s_low", name);
	snprintf(high, sizeof(high), "%s_high", name);
	json_put_number(json, name, "%.9g", value->median);
	json_put_number(json, low, "%.9g", value->low);
	json_put_number(json, high, "%.9g", value->high);
}

/* Totals over all runs of a row. */
static void totals_write(struct json_writer *json, const struct plane_row *row)
{
	uint64_t sent = 0, taken = 0, results = 0, wrong = 0;
	unsigned long long switches = 0;
	double threads_s = 0;

	for (unsigned r = 0; r < row->n; r++) {
		sent += row->runs[r].sent;
		taken += row->runs[r].taken;
		threads_s += row->runs[r].threads_s;
		results += row->runs[r].counts.results;
		wrong += row->runs[r].wrong;
		switches += row->runs[r].switches;
	}
	json_put_count(json, "packets_sent", sent);
	json_put_count(json, "packets_in_sums", taken);
	json_put_count(json, "results", results);
	json_put_count(json, "wrong", wrong);
	json_put_number(json, "threads_s", "%.6f", threads_s);
	json_put_count(json, "switches", switches);
	json_put_number(json, "others", "%.3f", row->runs[row->n - 1].others);
	json_put_count(json, "disturbed_runs", row->disturbed);
	json_put_bool(json, "shared_cores", row->shared);
}

static void row_write(struct json_writer *json, const struct plane_row *row)
{
	json_open_object(json, NULL);
	json_put_text(json, "plane", row->plane);
	json_put_count(json, "cores", row->cores);
	json_put_count(json, "runs", row->n);
	if (row->share >= 0) {
		json_put_number(json, "share", "%g", row->share);
		json_put_number(json, "offered_fragments", "%.0f", row->offered);
	}
	value_write(json, "gbps", &row->gbps);
	value_write(json, "packets_per_s", &row->packets);
	value_write(json, "gb_per_cpu_s", &row->cost);
	value_write(json, "ns_per_packet", &row->ns);
	value_write(json, "ns_in_threads", &row->threads);
	value_write(json, "ns_in_program", &row->program);
	value_write(json, "busy", &row->busy);
	value_write(json, "latency_s", &row->latency_50);
	value_write(json, "latency_p99_s", &row->latency_99);
	value_write(json, "lost", &row->lost);
	value_write(json, "retransmitted", &row->retransmitted);
	totals_write(json, row);
	json_close(json);
}

trib_status bench_plane_json(const struct plane_report *report, const char *path)
{
	static const char *const benchmarks[] = { "plane throughput", "plane cores", "plane load" };
	const struct plane_options *o = report->options;
	struct json_writer json;
	trib_status status = json_start(&json, path);

	if (status != TRIB_OK)
		return status;
	json_put_text(&json, "benchmark", benchmarks[o->mode]);
	json_put_count(&json, "children", o->children);
	json_put_count(&json, "elements", o->elements);
	json_put_count(&json, "repeats", o->repeats);
	json_put_number(&json, "seconds", "%g", o->seconds);
	json_put_text(&json, "offload", o->offload ? "on" : o->gro ? "gro" : "off");
	json_put_bool(&json, "one_port", o->one_port);
	json_put_bool(&json, "to_all", o->to_all);
	json_open_list(&json, "rows");
	for (unsigned i = 0; i < report->n; i++)
		if (report->rows[i].n)
			row_write(&json, &report->rows[i]);
	json_close(&json);
	return json_finish(&json, path);
}
