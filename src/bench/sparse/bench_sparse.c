/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/sparse/bench_sparse.h"
#include "bench/bed/bench_driver.h"
#include "bench/bed/size_list.h"
#include "bench/sparse/push_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNS_MAX 1000u
#define KEYS_MAX (1u << 26)
#define ROWS_MAX (1u << 20)
#define WIDTH_MAX 4096u
#define STEPS_MAX 100000u
#define WORKERS_MAX 63u /* the last child of a communicator is the server */

static struct push_options asked = {
	.bench = { .type = "f32",
	           .iterations = 5,
	           .warmup = 2,
	           .repeats = 3,
	           .many = 1,
	           .timeout_s = 120,
	           .pool_bytes = 1 << 20,
	           .no_cpu_time = true,
	           .net = { .rate_bps = 100000000 } },
	.workers = { 8, 16, 32 },
	.n_workers = 3,
	.losses = { 0 },
	.n_losses = 1,
	.server_bps = 100000000,
	.shards = 1,
	.keys = 100000,
	.width = 16,
	.rows = 2000,
	.steps = 8,
	.zipf = 1.05,
	.systems = "hot,servers,dense",
	.planes = "xdp,udp",
	.sums = "fixed",
	.sync = "commit",
};

/* ---- arguments ---- */

static trib_status losses_take(void *target, const char *text)
{
	struct push_options *o = target;

	return push_losses_parse(text, o->losses, PUSH_LIST_MAX, &o->n_losses);
}

static trib_status zipf_take(void *target, const char *text)
{
	struct push_options *o = target;
	char *end;

	o->zipf = strtod(text, &end);
	if (end == text || *end || !(o->zipf >= 0 && o->zipf <= 5))
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not a number from 0 to 5", text);
	return TRIB_OK;
}

static trib_status sums_take(void *target, const char *text)
{
	struct push_options *o = target;

	if (strcmp(text, "fixed") != 0 && strcmp(text, "table") != 0)
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not fixed or table", text);
	o->sums = text;
	return TRIB_OK;
}

static trib_status sync_take(void *target, const char *text)
{
	struct push_options *o = target;

	if (strcmp(text, "commit") != 0 && strcmp(text, "second") != 0 && strcmp(text, "none") != 0)
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not commit, second or none", text);
	o->sync = text;
	return TRIB_OK;
}

static const char *shape_wrong(const struct push_options *o)
{
	if (o->keys < 2 || o->keys > KEYS_MAX)
		return "--keys is from 2 to 67108864";
	if (o->width < 1 || o->width > WIDTH_MAX)
		return "--width is from 1 to 4096";
	if (o->rows < 1 || o->rows > ROWS_MAX)
		return "--rows is from 1 to 1048576";
	if (o->steps < 1 || o->steps > STEPS_MAX)
		return "--steps is from 1 to 100000";
	return NULL;
}

static const char *options_settle(void)
{
	const struct push_options *o = &asked;
	const struct bench_options *bench = &o->bench;

	if (!o->n_workers || !o->n_losses)
		return "--workers and --loss need at least one number";
	if (bench->iterations < 1 || bench->repeats < 1)
		return "--iterations and --repeats are at least 1";
	if (bench->iterations + bench->warmup > PUSH_ITERATIONS_MAX)
		return "--iterations and --warmup are 500 together at most";
	if (bench->repeats > RUNS_MAX)
		return "--repeats is 1000 at most";
	if (o->shards < 1 || o->shards > PUSH_SHARDS_MAX)
		return "--shards is from 1 to 8";
	if (o->drift && o->tensors)
		return "--drift changes made data: it does not go with --tensors";
	if (o->drift && bench->iterations < 2)
		return "--drift needs 2 --iterations at least";
	return shape_wrong(o);
}

/* Counts FILE.0, FILE.1 and so on. */
static trib_status tensors_find(struct push_options *o)
{
	char path[4096];

	if (!o->tensors)
		return TRIB_OK;
	for (o->files = 0; o->files < CLUSTER_HOSTS_MAX; o->files++) {
		snprintf(path, sizeof(path), "%s.%u", o->tensors, o->files);
		if (access(path, R_OK) != 0)
			break;
	}
	if (o->files == 0)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "--tensors: there is no %s.0; an example writes such files "
		                   "with its option --tensors",
		                   o->tensors);
	return TRIB_OK;
}

/* ---- the measurement ---- */

/*
 * The aggregator is a switch with a port for each worker and each server. A server is the switch's
 * host like a worker, behind the last worker, with a link of its own rate.
 */
static trib_status bed_open(const struct push_options *o, double loss, struct bench_place *bed)
{
	struct bench_options wanted = o->bench;
	trib_status status;

	for (unsigned i = 0; i < o->n_workers; i++)
		if (o->workers[i] > wanted.hosts)
			wanted.hosts = o->workers[i];
	for (unsigned i = 0; i < o->shards; i++) {
		snprintf(wanted.net.unlike[i].host, sizeof(wanted.net.unlike[i].host), "h%u",
		         (unsigned)wanted.hosts + i + 1);
		wanted.net.unlike[i].rate_bps = o->server_bps;
	}
	wanted.net.n_unlike = (unsigned)o->shards;
	wanted.net.faults[FAULT_LOSS] = loss;
	wanted.hosts += o->shards;
	status = bench_place_open(&wanted, bed);
	if (status == TRIB_OK) {
		bed->workers -= (unsigned)o->shards;
		bed->slowest_bps = bed->cluster.n ? o->bench.net.rate_bps : 0; /* of workers */
	}
	return status;
}

static trib_status places_open(struct push_report *report)
{
	const struct push_options *o = report->options;
	trib_status status = TRIB_OK;

	for (unsigned l = 0; l < o->n_losses && status == TRIB_OK; l++) {
		status = bed_open(o, o->losses[l], &report->beds[l]);
		for (unsigned w = 0; w < o->n_workers && status == TRIB_OK; w++) {
			struct bench_place *place = &report->places[l][w];

			*place = report->beds[l];
			place->made = false;
			place->workers = (unsigned)o->workers[w];
			status = layout_read(&report->trees[l][w], "star", &report->beds[l].cluster,
			                     place->workers);
		}
	}
	return status;
}

/* Dense streaming learns nothing, and a round of it takes as long as many of the others. */
static void round_once(struct bench_result *result)
{
	result->iterations = 1;
	result->warmup = result->warmup > 0;
}

static void case_add(struct push_report *report, unsigned loss, unsigned workers, unsigned system)
{
	const struct push_options *o = report->options;
	const struct bench_place *bed = &report->beds[loss];
	unsigned n = report->n++;
	struct push_case *row = &report->cases[n];

	*row = (struct push_case){ .of = &report->systems[system],
		                   .options = o,
		                   .place = &report->places[loss][workers],
		                   .servers = bed->cluster.n ? &bed->cluster.hosts[bed->workers]
		                                             : NULL,
		                   .loss = o->losses[loss],
		                   .told = &report->told[n] };
	push_case_place(row, &report->trees[loss][workers]);
	report->results[n] =
		bench_result_of(&o->bench, &row->system, row->place, o->rows * (o->width * 4 + 8));
	if (row->of->way == PUSH_DENSE)
		round_once(&report->results[n]);
}

static void cases_lay_out(struct push_report *report)
{
	const struct push_options *o = report->options;

	for (unsigned l = 0; l < o->n_losses; l++)
		for (unsigned w = 0; w < o->n_workers; w++)
			for (unsigned s = 0; s < report->n_systems; s++)
				case_add(report, l, w, s);
}

static trib_status measurement_prepare(void *context)
{
	struct push_report *report = context;
	trib_status status = tensors_find(&asked);

	report->options = &asked;
	if (status == TRIB_OK)
		status = push_systems_choose(report);
	if (status == TRIB_OK)
		status = places_open(report);
	if (status == TRIB_OK)
		cases_lay_out(report);
	return status;
}

static trib_status report_judge(const void *context)
{
	const struct push_report *report = context;

	for (unsigned i = 0; i < report->n; i++)
		if (report->results[i].failed)
			return status_fail(TRIB_ERR_PEER, "%s on %s failed: %s",
			                   report->cases[i].of->name, report->cases[i].of->plane,
			                   report->results[i].note);
	return TRIB_OK;
}

/* ---- options ---- */

static struct count_list workers = { WORKERS_MAX, asked.workers, PUSH_LIST_MAX, &asked.n_workers };
static struct option_hook workers_hook = { count_list_take, &workers },
			  losses_hook = { losses_take, &asked }, zipf_hook = { zipf_take, &asked },
			  sums_hook = { sums_take, &asked }, sync_hook = { sync_take, &asked };

static const struct option_row rows[] = {
	{ "workers", 'n', OPTION_HOOK, &workers_hook, "LIST",
	  "numbers of workers (default 8,16,32)", "4,8" },
	{ "systems", 0, OPTION_TEXT, &asked.systems, "LIST",
	  "hot (hot rows by an aggregator, cold ones by servers), servers (all rows by servers), "
	  "dense (an allreduce of the whole table's gradient) (default all)",
	  "hot,servers" },
	{ "plane", 0, OPTION_TEXT, &asked.planes, "LIST",
	  "planes of hot: xdp, udp, pisa (default xdp,udp); dense runs on the first", "pisa,udp" },
	{ "shards", 0, OPTION_COUNT, &asked.shards, "N", "parameter servers (default 1)", "2" },
	{ "link", 0, OPTION_RATE, &asked.bench.net.rate_bps, "RATE",
	  "rate of a worker's link (default 100mbit; 0: not shaped)", "500mbit" },
	{ "server-link", 0, OPTION_RATE, &asked.server_bps, "RATE",
	  "rate of a server's link (default 100mbit; 0: not shaped)", "1gbit" },
	{ "no-offload", 0, OPTION_FLAG, &asked.bench.net.no_offload, NULL,
	  "every packet crosses a link by itself, as on a wire. On the plane xdp this is always so",
	  NULL },
	{ "memory", 0, OPTION_BYTES, &asked.bench.pool_bytes, "SIZE",
	  "memory of the aggregator, for hot and for dense (default 1M)", "256K" },
	{ "loss", 0, OPTION_HOOK, &losses_hook, "LIST",
	  "probabilities that a link loses a packet (default 0)", "0,0.0001,0.001" },
	{ "tensors", 0, OPTION_TEXT, &asked.tensors, "FILE",
	  "push what an example wrote with --tensors FILE: FILE.0, FILE.1, ...; without it data "
	  "is made",
	  NULL },
	{ "keys", 0, OPTION_COUNT, &asked.keys, "N",
	  "made data: rows of the table (default 100000)", "1000000" },
	{ "width", 0, OPTION_COUNT, &asked.width, "N", "made data: floats of a row (default 16)",
	  "64" },
	{ "rows", 0, OPTION_COUNT, &asked.rows, "N",
	  "made data: rows drawn for a worker's step (default 2000)", "500" },
	{ "zipf", 0, OPTION_HOOK, &zipf_hook, "S",
	  "made data: the k-th popular row has a chance of 1/k^S (default 1.05)", "0.8" },
	{ "drift", 0, OPTION_FLAG, &asked.drift, NULL,
	  "made data: halfway, other rows become popular; the plot shows the time", NULL },
	{ "pull", 0, OPTION_FLAG, &asked.pulls, NULL,
	  "each step also pulls the rows that it pushes", NULL },
	{ "sums", 0, OPTION_HOOK, &sums_hook, "NAME", "of hot rows: fixed or table (default fixed)",
	  "table" },
	{ "sync", 0, OPTION_HOOK, &sync_hook, "NAME",
	  "when a server's log is on disk: commit, second, none (default commit)", "none" },
	{ "steps", 0, OPTION_COUNT, &asked.steps, "N", "pushes of an iteration (default 8)", "20" },
	{ "iterations", 'i', OPTION_COUNT, &asked.bench.iterations, "N",
	  "timed iterations of a run; one of dense (default 5)", "40" },
	{ "warmup", 0, OPTION_COUNT, &asked.bench.warmup, "N",
	  "iterations before them, not timed (default 2)", NULL },
	{ "repeats", 0, OPTION_COUNT, &asked.bench.repeats, "N",
	  "runs of every system, in turns (default 3)", NULL },
	{ "timeout", 0, OPTION_SECONDS, &asked.bench.timeout_s, "S",
	  "longest time of a run (default 120)", NULL },
	BENCH_OUTPUT_ROWS(&asked.bench, "run",
	                  "draw updates a second over workers, over loss, or over time (--drift)"),
	{ 0 },
};

static const struct options options = {
	"trib bench sparse [OPTION]...",
	"Measures how many gradients of rows a second workers can push to parameter servers, over\n"
	"a virtual cluster that it makes and removes (as root), or over loopback. The servers'\n"
	"links are the bottleneck. Systems take turns: hot rows by an aggregator, all rows by the\n"
	"servers, and an allreduce of the whole table's gradient with the same memory.",
	"trib bench sparse --workers 8,16,32 --plane xdp,udp,pisa --plot sparse.svg\n"
	"  trib bench sparse --workers 8 --systems hot --loss 0,0.0001,0.001\n"
	"  trib bench sparse --workers 8 --systems hot --plane udp --drift --iterations 40",
	rows,
};

static struct push_report report;

static const struct bench_driver driver = { .options = &options,
	                                    .asked = &asked.bench,
	                                    .report = &report,
	                                    .results = report.results,
	                                    .n = &report.n,
	                                    .beds = report.beds,
	                                    .n_beds = PUSH_LIST_MAX,
	                                    .settle = options_settle,
	                                    .prepare = measurement_prepare,
	                                    .table_print = push_table_print,
	                                    .json = &push_json,
	                                    .plot_write = push_plot_write,
	                                    .judge = report_judge };

int bench_sparse_run(int argc, char **argv)
{
	return bench_drive(&driver, argc, argv);
}
