/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench.h"

#include <stdio.h>
#include <string.h>

double bench_gbps(const struct bench_result *result)
{
	return result->stats.median > 0 ? (double)result->bytes * 8 / result->stats.median / 1e9
	                                : 0;
}

double bench_share(const struct bench_result *result)
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
	/* There are as many as fragments of all workers, or of one. */
	*results = packets->results_again / once *
	           (report->options->to_one ? report->place->workers : 1);
	return true;
}

double bench_gain(const struct bench_report *report, const struct bench_result *peer)
{
	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *ours = &report->results[i];

		if (ours->system == report->systems[0] && ours->bytes == peer->bytes &&
		    ours->stats.median > 0 && peer->stats.median > 0)
			return peer->stats.median / ours->stats.median;
	}
	return 0;
}

const char *bench_bytes_text(uint64_t bytes, char out[24])
{
	static const char units[] = "\0KMGT";
	unsigned unit = 0;

	if (bytes % 100000 == 0 && bytes % (1 << 20)) {
		snprintf(out, 24, "%.1fe6", (double)bytes / 1e6);
		return out;
	}
	while (bytes && bytes % 1024 == 0 && unit < 4) {
		bytes /= 1024;
		unit++;
	}
	snprintf(out, 24, "%llu%.1s", (unsigned long long)bytes, units + unit);
	return out;
}

void bench_name_text(const struct bench_result *result, char *out, size_t room)
{
	bool shown = result->system->tuned && result->variant->name[0];

	snprintf(out, room, shown ? "%s (%s)" : "%s", result->system->name,
	         shown ? result->variant->name : "");
}

static const char *time_text(double seconds, char out[16])
{
	if (seconds >= 1)
		snprintf(out, 16, "%.3f s", seconds);
	else if (seconds >= 1e-3)
		snprintf(out, 16, "%.2f ms", seconds * 1e3);
	else
		snprintf(out, 16, "%.1f us", seconds * 1e6);
	return out;
}

static void row_print(const struct bench_report *report, const struct bench_result *r, int width)
{
	char name[96], a[16], b[16], c[16];
	double gain = bench_gain(report, r);

	bench_name_text(r, name, sizeof(name));
	printf("%-*s ", width, name);
	if (r->stats.repeats == 0) {
		printf(r->runs ? "no result; see below\n" : "not measured\n");
		return;
	}
	printf("%10s %10s %10s %8.3f", time_text(r->stats.min, a), time_text(r->stats.median, b),
	       time_text(r->stats.p99, c), bench_gbps(r));
	if (r->limit_s > 0)
		printf(" %10s %7.1f %%", time_text(r->limit_s, a), bench_share(r) * 100);
	else
		printf(" %10s %9s", "-", "-");
	if (r->stats.repeats > 1)
		printf(" %6.1f %%", r->stats.spread * 100);
	else
		printf(" %8s", "-");
	if (r->system != report->systems[0] && gain > 0)
		printf(" %8.2f x", gain);
	printf("%s\n", r->failed ? "  *" : "");
}

static int name_width(const struct bench_report *report)
{
	size_t width = strlen("system");
	char name[96];

	for (unsigned i = 0; i < report->n; i++) {
		bench_name_text(&report->results[i], name, sizeof(name));
		if (strlen(name) > width)
			width = strlen(name);
	}
	return (int)width;
}

static void faults_print(const struct bench_report *report)
{
	const struct cluster_options *net = &report->options->net;
	bool by_xdp = false;

	if (net->loss <= 0 && net->dup <= 0 && net->reorder <= 0 && net->corrupt <= 0)
		return;
	for (unsigned i = 0; i < report->n_systems; i++)
		by_xdp |= strcmp(report->systems[i]->plane, "xdp") == 0;
	if (report->n_systems > 1)
		printf("The faults meet UDP packets: the others, over TCP, had none.\n");
	if (by_xdp && report->place->cluster.is_switch)
		printf("On xdp they meet results only: a switch's program sums before faults are "
		       "made (--server has both).\n");
}

static void range_print(const struct bench_range *range)
{
	if (range->n > 1 && range->most > 0)
		printf(" (%.2f to %.2f)", range->least, range->most);
}

/* What the aggregators cost. */
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
		printf("CPU time is all that the cores of the servers did%s.\n",
		       report->options->busy > 0 ? ", but for other work" : "");
	if (report->options->busy > 0)
		printf("Other work comes first there, and has %g %% of them.\n",
		       100 * report->options->busy);
	if (report->options->nic)
		printf("Servers get their packets as frames in pages, as a NIC's driver has "
		       "them.\n");
}

static void notes_print(const struct bench_report *report)
{
	bool peers = report->n_systems > 1;
	char size[24], name[96];

	if (report->results[0].limit_s > 0)
		printf("\nlimit: the least time that the links leave, headers included: for "
		       "tributary%s that of its trees%s.\n",
		       peers ? " on every plane" : "",
		       peers ? ", for a parameter server that of its link, for the others that "
		               "of a ring"
		             : "");
	faults_print(report);
	costs_print(report);
	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];
		double fragments, results;

		if (bench_again(report, r, &fragments, &results) && fragments + results > 0.0005)
			printf("%s at %s: sent again %.1f %% of fragments, %.1f %% of results\n",
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

void bench_table_print(const struct bench_report *report)
{
	int width = name_width(report);
	uint64_t bytes = UINT64_MAX;
	char size[24];

	printf("%s, f32 sum: %s\n", report->options->to_one ? "reduce" : "allreduce",
	       report->where);
	printf("median of %s, the slowest rank counts\n\n", report->times);
	printf("%8s  %-*s %10s %10s %10s %8s %10s %9s %8s%s\n", "bytes", width, "system", "min",
	       "median", "p99", "Gb/s", "limit", "of limit", "spread",
	       report->n_systems > 1 ? "  tributary" : "");
	for (unsigned i = 0; i < report->n; i++) {
		const struct bench_result *r = &report->results[i];

		printf("%8s  ", r->bytes != bytes ? bench_bytes_text(r->bytes, size) : "");
		bytes = r->bytes;
		row_print(report, r, width);
	}
	notes_print(report);
}
