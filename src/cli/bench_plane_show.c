/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_plane.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const mode_names[] = { "throughput", "cores", "load" };

static double spread(const struct plane_value *value)
{
	return value->median > 0 ? (value->high - value->low) / value->median : 0;
}

static const char *offload_text(const struct plane_options *o)
{
	return o->offload ? "offloads on: up to 64 KB cross the link at once"
	       : o->gro   ? "packets cross singly, the receiver may join them (GRO)"
	                  : "offloads off: every packet crosses singly and is received so";
}

static void number_print(int width, int digits, double value)
{
	if (value > 0)
		printf("%*.*f", width, digits, value);
	else
		printf("%*s", width, "-");
}

static void saturated_print(const struct plane_report *report)
{
	const struct plane_options *o = report->options;
	bool shared = false;

	printf("%5s  %-10s %8s %8s %7s %7s %9s %7s %8s %8s %7s %7s\n", "cores", "plane", "Gb/s",
	       "kpkt/s", "spread", "busy", "Gb/CPU-s", "spread", "ns/pkt", "threads", "lost",
	       o->mode == PLANE_CORES ? "scaling" : "to tcp");
	for (unsigned i = 0; i < report->n; i++) {
		const struct plane_row *row = &report->rows[i];
		const struct plane_row *tcp = bench_plane_find(report, "tcp", row->cores, -1);
		const struct plane_row *one = bench_plane_find(report, row->plane, 1, -1);

		printf("%5u  %-10s ", row->cores, row->plane);
		if (!row->n) {
			printf("failed: %s\n", row->failed);
			continue;
		}
		printf("%8.2f %8.0f %6.1f%% ", row->gbps.median, row->packets.median / 1e3,
		       100 * spread(&row->gbps));
		number_print(6, 1, row->busy.median * 100);
		printf("%s ", row->busy.median > 0 ? "%" : " ");
		number_print(9, 2, row->cost.median);
		printf(" %6.1f%% ", 100 * spread(&row->cost));
		number_print(8, 0, row->ns.median);
		printf(" ");
		number_print(8, 0, row->threads.median);
		printf(" %6.2f%% ", 100 * row->lost.median);
		if (o->mode == PLANE_CORES)
			number_print(7, 3,
			             one ? row->gbps.median / one->gbps.median / row->cores : 0);
		else
			number_print(6, 2,
			             tcp && tcp->cost.median > 0 && row->cost.median > 0
			                     ? row->cost.median / tcp->cost.median
			                     : 0);
		printf("%s%s%s\n", o->mode == PLANE_CORES ? "" : "x", row->disturbed ? " *" : "",
		       row->failed[0] ? " failed later" : "");
		shared |= row->shared;
	}
	if (o->mode == PLANE_THROUGHPUT)
		printf("\nxdp, tcp-copied: veth copies every packet from the sender's buffer into "
		       "a "
		       "page.\nudp, tcp: the receiver gets the sender's buffer for nothing.\n"
		       "...-nic, xdp-relay: frames that are in pages already, as in a NIC's "
		       "driver.\n");
	if (shared)
		printf("\nThe load ran on the aggregator's cores as well: only threads' own time "
		       "tells what was whose.\n");
}

/* Planes that get their packets in the same way, side by side. */
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

/* What is left when all that is not the plane's program is taken out, where that is known. */
static void program_print(const struct plane_report *report)
{
	for (unsigned i = 0; i < report->n; i++) {
		const struct plane_row *row = &report->rows[i];
		const struct plane_row *tcp = bench_plane_find(report, "tcp", row->cores, -1);
		double bits = (double)report->options->elements * 32;

		if (!row->n || !(row->program.median > 0))
			continue;
		printf("%s, %u core%s: of %.0f ns a packet %.0f are the program's (by the kernel's "
		       "count): alone %.1f Gb a CPU-second",
		       row->plane, row->cores, row->cores > 1 ? "s" : "", row->ns.median,
		       row->program.median, bits / row->program.median);
		if (tcp && tcp->ns.median > 0)
			printf(", %.2f x tcp", tcp->ns.median / row->program.median);
		printf("\n");
	}
}

static void load_print(const struct plane_report *report)
{
	printf("%-10s %8s %8s %8s %7s %11s %11s %8s %8s\n", "plane", "of most", "kpkt/s", "Gb/s",
	       "busy", "median", "p99", "lost", "resent");
	for (unsigned i = 0; i < report->n; i++) {
		const struct plane_row *row = &report->rows[i];

		printf("%-10s ", row->plane);
		if (!row->n) {
			printf("failed: %s\n", row->failed);
			continue;
		}
		if (row->share < 0)
			printf("%8s ", "most");
		else
			printf("%6.0f %% ", row->share * 100);
		printf("%8.0f %8.2f %6.1f%% %8.1f us %8.1f us %7.3f%% %7.3f%%%s\n",
		       row->packets.median / 1e3, row->gbps.median, row->busy.median * 100,
		       row->latency_50.median * 1e6, row->latency_99.median * 1e6,
		       row->lost.median * 100, row->retransmitted.median * 100,
		       row->disturbed ? " *" : "");
	}
}

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
		saturated_print(report);
	if (o->mode == PLANE_THROUGHPUT)
		pairs_print(report);
	program_print(report);
	for (unsigned i = 0; i < report->n; i++)
		disturbed |= report->rows[i].disturbed > 0;
	if (disturbed)
		printf("* in some of the runs other processes used the cores\n");
}

static void value_write(FILE *out, const char *name, const struct plane_value *value)
{
	fprintf(out, ", \"%s\": %.9g, \"%s_low\": %.9g, \"%s_high\": %.9g", name, value->median,
	        name, value->low, name, value->high);
}

trib_status bench_plane_json(const struct plane_report *report, const char *path)
{
	const struct plane_options *o = report->options;
	FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
	const char *comma = "\n";

	if (!out)
		return status_fail_errno("cannot write %s", path);
	fprintf(out,
	        "{\n  \"benchmark\": \"plane %s\", \"children\": %" PRIu64
	        ", \"elements\": %" PRIu64 ", \"repeats\": %" PRIu64
	        ", \"seconds\": %g, \"offload\": \"%s\", \"one_port\": %s, "
	        "\"to_all\": %s, \"rows\": [",
	        mode_names[o->mode], o->children, o->elements, o->repeats, o->seconds,
	        o->offload ? "on"
	        : o->gro   ? "gro"
	                   : "off",
	        o->one_port ? "true" : "false", o->to_all ? "true" : "false");
	for (unsigned i = 0; i < report->n; i++) {
		const struct plane_row *row = &report->rows[i];
		uint64_t sent = 0, taken = 0, results = 0, wrong = 0;
		unsigned long long switches = 0;
		double threads_s = 0;

		if (!row->n)
			continue;
		for (unsigned r = 0; r < row->n; r++) {
			sent += row->runs[r].sent;
			taken += row->runs[r].taken;
			threads_s += row->runs[r].threads_s;
			results += row->runs[r].counts.results;
			wrong += row->runs[r].wrong;
			switches += row->runs[r].switches;
		}
		fprintf(out, "%s    { \"plane\": \"%s\", \"cores\": %u, \"runs\": %u", comma,
		        row->plane, row->cores, row->n);
		if (row->share >= 0)
			fprintf(out, ", \"share\": %g, \"offered_fragments\": %.0f", row->share,
			        row->offered);
		value_write(out, "gbps", &row->gbps);
		value_write(out, "packets_per_s", &row->packets);
		value_write(out, "gb_per_cpu_s", &row->cost);
		value_write(out, "ns_per_packet", &row->ns);
		value_write(out, "ns_in_threads", &row->threads);
		value_write(out, "ns_in_program", &row->program);
		value_write(out, "busy", &row->busy);
		value_write(out, "latency_s", &row->latency_50);
		value_write(out, "latency_p99_s", &row->latency_99);
		value_write(out, "lost", &row->lost);
		value_write(out, "retransmitted", &row->retransmitted);
		fprintf(out,
		        ", \"packets_sent\": %" PRIu64 ", \"packets_in_sums\": %" PRIu64
		        ", \"results\": %" PRIu64 ", \"wrong\": %" PRIu64
		        ", \"threads_s\": %.6f, \"switches\": %llu, \"others\": %.3f, "
		        "\"disturbed_runs\": %u, "
		        "\"shared_cores\": %s }",
		        sent, taken, results, wrong, threads_s, switches,
		        row->runs[row->n - 1].others, row->disturbed,
		        row->shared ? "true" : "false");
		comma = ",\n";
	}
	fprintf(out, "\n  ]\n}\n");
	if (out != stdout && fclose(out) != 0)
		return status_fail_errno("cannot write %s", path);
	return TRIB_OK;
}
