/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/allreduce/result_rows.h"
#include "bench/bed/size_list.h"

#include <stdio.h>
#include <string.h>

static void faults_print(const struct bench_report *report)
{
	const struct cluster_options *net = &report->options->net;
	bool by_xdp = false;

	if (net->faults[FAULT_LOSS] <= 0 && net->faults[FAULT_DUP] <= 0 &&
	    net->faults[FAULT_REORDER] <= 0 && net->faults[FAULT_CORRUPT] <= 0)
		return;
	for (unsigned i = 0; i < report->n_systems; i++)
		by_xdp |= strcmp(report->systems[i]->plane, "xdp") == 0;
	if (report->n_systems > 1)
		printf("Faults apply to UDP packets only: systems over TCP had none.\n");
	if (by_xdp && report->place->cluster.is_switch)
		printf("On xdp they apply to results only: the program of a switch sums before "
		       "faults are made (with --server they apply to both).\n");
}

static void range_print(const struct bench_range *range)
{
	if (range->most > range->least)
		printf(" (%.2f to %.2f)", range->least, range->most);
}

/* Prints the CPU time of the aggregators. */
static void costs_print(const struct bench_report *report)
{
	bool told = false;
	char size[24];

	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];

		if (!r->added_gb.n)
			continue;
		printf("aggregator of %s at %s: %.2f Gb added a CPU-second", r->system->name,
		       bench_bytes_text(r->bytes, size), r->added_gb.median);
		range_print(&r->added_gb);
		if (r->cpu_times.n) {
			printf("; %.2f times the CPU time of %s's for the same",
			       r->cpu_times.median, report->systems[0]->name);
			range_print(&r->cpu_times);
		}
		printf("\n");
		told = true;
	}
	if (told && report->options->n_cores)
		printf("CPU time is the busy time of the servers' cores%s.\n",
		       report->options->busy > 0 ? ", without other work" : "");
	if (report->options->busy > 0)
		printf("Other work runs first on the servers' cores and takes %g %% of them.\n",
		       100 * report->options->busy);
	if (report->options->nic)
		printf("Servers receive packets as frames in pages, as from a NIC's driver.\n");
}

static void notes_print(const struct bench_report *report)
{
	bool peers = report->n_systems > 1;
	bool around = report->options->collective != BENCH_ALLREDUCE;
	char size[24], name[96];

	if (report->results[0].limit_s > 0)
		printf("\nlimit: the least time that the links allow, headers included%s.\n",
		       around  ? ": that of a ring; for trib-star that of its trees"
		       : peers ? ": for tributary that of its trees (on udp, of a ring if that is "
		                 "less), for a parameter server that of its link, for the others "
		                 "that of a "
		                 "ring"
		               : ": for tributary that of its trees (on udp, of a ring if that is "
		                 "less)");
	faults_print(report);
	costs_print(report);
	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];
		double fragments, results;

		if (bench_again(report, r, &fragments, &results) && fragments + results > 0.0005)
			printf("%s at %s: repeated %.1f %% of fragments, %.1f %% of results\n",
			       r->system->name, bench_bytes_text(r->bytes, size), fragments * 100,
			       results * 100);
	}
	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];

		bench_name_text(r, name, sizeof(name));
		if (r->failed)
			printf("* %s at %s: %u of %u runs failed: %s\n", name,
			       bench_bytes_text(r->bytes, size), r->failed, r->runs, r->note);
	}
	if (report->left_out[0])
		printf("left out: %s\n", report->left_out);
}

void bench_table_print(const void *context)
{
	const struct bench_report *report = context;
	const struct bench_options *o = report->options;
	struct table table;

	bench_rows_fill(report, &table);
	printf("%s of %s: %s\n", o->to_one ? "reduce" : bench_collective_name(o->collective),
	       o->type, report->where);
	printf("median of %s, the slowest rank counts\n\n", report->times);
	table_print(&table, stdout);
	table_close(&table);
	notes_print(report);
}
