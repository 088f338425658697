/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/latency/bench_latency.h"
#include "bench/bed/bench_driver.h"
#include "bench/bed/size_list.h"
#include "bench/latency/call_counts.h"

#include <string.h>

#define RUNS_MAX 1000000 /* upper bound of all counts: more is a typing error */
#define CALLS_LEAST 5    /* of a run, whatever the size */
#define WARMUP_LEAST 2

static struct latency_options asked = { .bench = { .type = "f32",
	                                           .sizes = { 32 },
	                                           .n_sizes = 1,
	                                           .iterations = 1000,
	                                           .warmup = 100,
	                                           .repeats = 5,
	                                           .many = 1,
	                                           .trials = 2,
	                                           .mean_of_ranks = true,
	                                           .no_cpu_time = true },
	                                .hosts = { 2, 4, 8 },
	                                .n_hosts = 3,
	                                .systems = "xdp,tc,udp,pisa,dense" };

/* ---- arguments ---- */

static trib_status type_take(void *target, const char *text)
{
	struct bench_options *o = target;

	if (strcmp(text, "f32") != 0 && strcmp(text, "i32") != 0)
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not one of f32, i32", text);
	o->type = text;
	return TRIB_OK;
}

static const char *options_settle(void)
{
	const struct latency_options *o = &asked;
	const struct bench_options *bench = &o->bench;

	if (o->n_hosts == 0)
		return "--hosts needs at least one number";
	for (unsigned i = 0; i < o->n_hosts; i++)
		if (o->hosts[i] < 2)
			return "--hosts: an allreduce needs 2 hosts at least";
	if (bench->n_sizes == 0)
		return "--sizes needs at least one size";
	if (bench->iterations < 1 || bench->repeats < 1 || bench->many < 1)
		return "--iterations, --repeats and --many are at least 1";
	if (bench->iterations > RUNS_MAX || bench->repeats > RUNS_MAX || bench->warmup > RUNS_MAX ||
	    bench->many > RUNS_MAX)
		return "--iterations, --warmup, --repeats and --many are 1000000 at most";
	return NULL;
}

/* ---- the measurement ---- */

static void systems_place(struct latency_report *report)
{
	for (unsigned h = 0; h < report->options->n_hosts; h++)
		for (unsigned k = 0; k < report->n_systems; k++) {
			report->placed[h][k] = report->systems[k];
			if (bench_system_has_trees(&report->systems[k]))
				report->placed[h][k].trees = &report->trees[h];
		}
}

static void result_add(struct latency_report *report, const struct bench_system *system,
                       const struct bench_place *place, uint64_t bytes)
{
	const struct bench_options *o = &report->options->bench;
	struct bench_result result = bench_result_of(o, system, place, bytes);

	result.iterations = call_count(o->iterations, CALLS_LEAST, bytes * o->many);
	result.warmup = call_count(o->warmup, WARMUP_LEAST, bytes * o->many);
	if (latency_system_takes(system, place, o, bytes))
		report->results[report->n++] = result;
}

static void results_lay_out(struct latency_report *report)
{
	const struct latency_options *o = report->options;

	for (unsigned h = 0; h < o->n_hosts; h++)
		for (unsigned s = 0; s < o->bench.n_sizes; s++)
			for (unsigned k = 0; k < report->n_systems; k++)
				result_add(report, &report->placed[h][k], &report->places[h],
				           o->bench.sizes[s]);
}

static trib_status measurement_prepare(void *context)
{
	struct latency_report *report = context;
	trib_status status;

	report->options = &asked;
	status = latency_systems_choose(report);
	if (status == TRIB_OK)
		status = bench_places_open(&report->options->bench, report->options->hosts,
		                           report->options->n_hosts, &report->bed, report->places,
		                           report->trees);
	if (status != TRIB_OK)
		return status;
	systems_place(report);
	results_lay_out(report);
	return TRIB_OK;
}

static trib_status report_judge(const void *context)
{
	const struct latency_report *report = context;

	return bench_ours_check(report->results, report->n);
}

/* ---- options ---- */

static struct count_list hosts = { CLUSTER_HOSTS_MAX / 2, asked.hosts, LATENCY_HOSTS_MAX,
	                           &asked.n_hosts };
static struct option_hook hosts_hook = { count_list_take, &hosts },
			  sizes_hook = { bench_sizes_take, &asked.bench },
			  type_hook = { type_take, &asked.bench };

static const struct option_row rows[] = {
	{ "hosts", 'n', OPTION_HOOK, &hosts_hook, "LIST", "numbers of workers (default 2,4,8)",
	  "4" },
	{ "sizes", 0, OPTION_HOOK, &sizes_hook, "LIST",
	  "sizes of the vector in bytes (default 32: 8 x 32 bits)", "4,1K,64K" },
	{ "systems", 0, OPTION_TEXT, &asked.systems, "LIST",
	  "which of ours: xdp, tc, udp and pisa (the slot engine on these planes), dense "
	  "and dense-udp (the dense engine on xdp and on udp), auto, auto-tc and auto-udp (the "
	  "library chooses, on xdp, tc and udp), mpi-xdp, "
	  "mpi-udp and mpi-none (an MPI program with the adapter, on these planes and without an "
	  "aggregator) (default xdp,tc,udp,pisa,dense)",
	  "xdp,auto" },
	{ "against", 0, OPTION_TEXT, &asked.bench.against, "LIST",
	  "peers: openmpi, gloo, mpich, all (openmpi,gloo) or none (default all)", "openmpi" },
	{ "link", 0, OPTION_RATE, &asked.bench.net.rate_bps, "RATE",
	  "rate of every link (default 0: not shaped)", "1gbit" },
	{ "no-offload", 0, OPTION_FLAG, &asked.bench.net.no_offload, NULL,
	  "packets cross links one by one, as on a real wire", NULL },
	{ "type", 0, OPTION_HOOK, &type_hook, "NAME",
	  "type of the elements: f32 or i32 (default f32)", "i32" },
	{ "many", 0, OPTION_COUNT, &asked.bench.many, "N",
	  "post N vectors together, and time all of them (default 1)", "1000" },
	{ "iterations", 0, OPTION_COUNT, &asked.bench.iterations, "N",
	  "timed calls in a run (default 1000); fewer if a call moves more than 64 KB", NULL },
	{ "warmup", 0, OPTION_COUNT, &asked.bench.warmup, "N",
	  "calls before them, not timed (default 100)", NULL },
	{ "repeats", 0, OPTION_COUNT, &asked.bench.repeats, "N",
	  "runs of every system, in turns (default 5)", NULL },
	BENCH_OUTPUT_ROWS(&asked.bench, "run", "draw the results to FILE as SVG"),
	{ 0 },
};

static const struct options options = {
	"trib bench latency [OPTION]...",
	"Times small sums over a virtual cluster that it makes and removes (as root), or over\n"
	"loopback. Other systems are measured on the same hosts, in turns, each with its best\n"
	"settings. The row veth is a bare round trip of a UDP packet of that size between a "
	"worker\n"
	"and the aggregator's host, with sockets that sleep; in veth-spin they spin.",
	"trib bench latency --hosts 4 --sizes 32,1K --against openmpi --json latency.json",
	rows,
};

static struct latency_report report;

static const struct bench_driver driver = { .options = &options,
	                                    .asked = &asked.bench,
	                                    .report = &report,
	                                    .results = report.results,
	                                    .n = &report.n,
	                                    .beds = &report.bed,
	                                    .n_beds = 1,
	                                    .settle = options_settle,
	                                    .prepare = measurement_prepare,
	                                    .table_print = latency_table_print,
	                                    .json = &latency_json,
	                                    .plot_write = latency_plot_write,
	                                    .judge = report_judge };

int bench_latency_run(int argc, char **argv)
{
	return bench_drive(&driver, argc, argv);
}
