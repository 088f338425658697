/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/allreduce/bench_allreduce.h"
#include "bench/bed/bench_driver.h"
#include "net/cluster_plan.h"
#include "options/net_options.h"
#include "bench/report/cpu_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RATE_DEFAULT 1000000000ull
#define RUNS_MAX \
	1000000 /* upper bound of --iterations, --repeats and --warmup: more is a typing error */

static struct bench_options asked = { .net.rate_bps = RATE_DEFAULT,
	                              .type = "f32",
	                              .sizes = { 1 << 20, 4 << 20, 16 << 20, 64 << 20 },
	                              .n_sizes = 4,
	                              .iterations = 10,
	                              .warmup = 2,
	                              .repeats = 3,
	                              .hurry = true };
static bool asked_switch;
static struct bench_place place;

/* ---- arguments ---- */

/* Splits "h2=VALUE" and copies the host's name; returns the value. NULL: no such form. */
static const char *host_split(const char *text, char host[16])
{
	const char *equals = strchr(text, '=');

	if (!equals || equals == text || equals - text > 15)
		return NULL;
	snprintf(host, 16, "%.*s", (int)(equals - text), text);
	return equals + 1;
}

static trib_status late_take(void *target, const char *text)
{
	struct bench_options *o = target;
	struct bench_late *late = &o->late[o->n_late];
	const char *seconds;
	char *end = NULL;

	if (o->n_late == CLUSTER_HOSTS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "more than %d late hosts", CLUSTER_HOSTS_MAX);
	seconds = host_split(text, late->host);
	late->seconds = seconds ? strtod(seconds, &end) : 0;
	if (!seconds || end == seconds || *end || !(late->seconds > 0 && late->seconds < 3600))
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not HOST=SECONDS, as in h2=0.5",
		                   text);
	o->n_late++;
	return TRIB_OK;
}

static trib_status cores_take(void *target, const char *text)
{
	struct bench_options *o = target;

	if (o->n_cores == CLUSTER_HOSTS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "more than %d --cores", CLUSTER_HOSTS_MAX);
	return cores_parse(text, &o->cores[o->n_cores++]);
}

static trib_status type_take(void *target, const char *text)
{
	struct bench_options *o = target;

	if (strcmp(text, "f32") && strcmp(text, "f16") && strcmp(text, "bf16"))
		return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is not one of f32, f16, bf16", text);
	o->type = text;
	return TRIB_OK;
}

static trib_status collective_take(void *target, const char *text)
{
	enum bench_collective *collective = target;

	for (unsigned i = 0; i < BENCH_COLLECTIVES; i++)
		if (strcmp(text, bench_collective_name(i)) == 0) {
			*collective = i;
			return TRIB_OK;
		}
	return status_fail(TRIB_ERR_ARGUMENT,
	                   "\"%s\" is not one of allreduce, reduce-scatter, allgather", text);
}

static trib_status busy_take(void *target, const char *text)
{
	double *share = target;
	trib_status status = net_probability_take(share, text);

	if (status == TRIB_OK && *share > CPU_OCCUPY_MOST)
		return status_fail(TRIB_ERR_ARGUMENT, "%s is more than %g: nothing else would run",
		                   text, CPU_OCCUPY_MOST);
	return status;
}

/* Takes "striped", "s1(0-3)", or either of them behind a name: "two=s1(0-3);s2(0-3)". */
static trib_status trees_take(void *target, const char *text)
{
	struct bench_options *o = target;
	struct bench_trees *trees = &o->trees[o->n_trees];
	size_t length = strcspn(text, "=(/");
	bool named = text[length] == '=';

	if (o->n_trees == BENCH_TREES_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "more than %d --trees", BENCH_TREES_MAX);
	if (named && (!length || length >= sizeof(trees->label)))
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "\"%.*s\" is not a name for trees: 1 to %d letters", (int)length,
		                   text, BENCH_LABEL - 1);
	snprintf(trees->label, sizeof(trees->label), "%.*s",
	         (int)(text[length] != '=' && text[length] ? 0 : length), text);
	if (!trees->label[0])
		snprintf(trees->label, sizeof(trees->label), "trees");
	trees->wanted = named ? text + length + 1 : text;
	o->n_trees++;
	return TRIB_OK;
}

static const char *options_settle(void)
{
	const struct bench_options *o = &asked;
	const struct cluster_options *net = &o->net;

	asked.net.no_offload |= o->nic;
	if (o->n_sizes == 0)
		return "--sizes needs at least one size";
	if (o->iterations < 1 || o->repeats < 1)
		return "--iterations and --repeats are at least 1";
	if (o->iterations > RUNS_MAX || o->repeats > RUNS_MAX || o->warmup > RUNS_MAX)
		return "--iterations, --repeats and --warmup are 1000000 at most";
	if (o->to_one && o->collective != BENCH_ALLREDUCE)
		return "--to-one and --collective cannot be combined";
	if (o->servers > LAYOUT_SITES_MAX)
		return "--servers is 64 at most";
	if (o->hosts > CLUSTER_HOSTS_MAX)
		return "--hosts is 128 at most";
	if (o->mtu > 65535)
		return "--mtu is 65535 at most";
	if (asked_switch && (o->is_server || o->servers))
		return "--switch and --server cannot be combined";
	if (o->net_name &&
	    (net->rate_bps != RATE_DEFAULT || net->n_unlike || plan_has_faults(net) ||
	     net->no_offload || o->mtu || o->is_server || o->servers || o->nic))
		return "a cluster given with --net is used as it is: options of links and faults "
		       "are for a cluster that is made";
	/*
	 * Without --nic, packets are received outside of any thread, so that no thread can run
	 * before that work.
	 */
	if (o->busy > 0 && (!o->n_cores || !o->nic))
		return "--busy needs servers with cores of their own (--cores), and --nic";
	if (o->nic && !o->is_server && !o->servers)
		return "--nic needs servers with a link each (--server, --servers)";
	if (o->nic && o->copied)
		return "--nic and --copied cannot be combined";
	return NULL;
}

/* ---- trib bench allreduce ---- */

static void results_lay_out(struct bench_report *report)
{
	const struct bench_options *o = report->options;

	for (unsigned i = 0; i < o->n_sizes * report->n_systems; i++) {
		const struct bench_system *system = report->systems[i % report->n_systems];
		uint64_t bytes = o->sizes[i / report->n_systems];
		struct bench_result *result = &report->results[report->n++];

		*result = bench_result_of(o, system, report->place, bytes);
		result->limit_s = bench_limit(report->place, o, system, bytes);
		result->first = &report->results[i - i % report->n_systems];
	}
}

static trib_status measurement_prepare(void *context)
{
	struct bench_report *report = context;
	const struct bench_options *o = &asked;
	trib_status status;

	report->options = o;
	report->place = &place;
	status = bench_systems_choose(report);
	if (status == TRIB_OK)
		status = bench_place_open(o, &place);
	if (status == TRIB_OK)
		status = bench_trees_read(report);
	if (status != TRIB_OK)
		return status;
	bench_place_describe(&place, report->where, sizeof(report->where));
	snprintf(report->times, sizeof(report->times), "%llu x %llu",
	         (unsigned long long)o->repeats, (unsigned long long)o->iterations);
	results_lay_out(report);
	return TRIB_OK;
}

/* If another system fails, that is a result. If the first fails, the benchmark has failed. */
static trib_status report_judge(const void *context)
{
	const struct bench_report *report = context;

	for (unsigned i = 0; i < report->n; i++) {
		if (report->results[i].system == report->systems[0] && report->results[i].failed)
			return status_fail(TRIB_ERR_PEER, "tributary failed: %s",
			                   report->results[i].note);
	}
	return TRIB_OK;
}

/* ---- options ---- */

static struct option_hook link_hook = { net_link_take, &asked.net },
			  sizes_hook = { bench_sizes_take, &asked },
			  late_hook = { late_take, &asked }, type_hook = { type_take, &asked },
			  trees_hook = { trees_take, &asked }, cores_hook = { cores_take, &asked },
			  collective_hook = { collective_take, &asked.collective },
			  busy_hook = { busy_take, &asked.busy },
			  loss_hook = { net_probability_take, &asked.net.faults[FAULT_LOSS] },
			  dup_hook = { net_probability_take, &asked.net.faults[FAULT_DUP] },
			  reorder_hook = { net_probability_take, &asked.net.faults[FAULT_REORDER] },
			  corrupt_hook = { net_probability_take, &asked.net.faults[FAULT_CORRUPT] };

static const struct option_row rows[] = {
	{ "hosts", 'n', OPTION_COUNT, &asked.hosts, "N", "number of workers (default 4)", "8" },
	{ "link", 0, OPTION_HOOK, &link_hook, "[HOST=]RATE",
	  "rate of every link (default 1gbit; 0: not shaped), or of one host's link; may be "
	  "repeated",
	  "h2=500mbit" },
	{ "switch", 0, OPTION_FLAG, &asked_switch, NULL,
	  "the aggregator is a switch with one port for each worker (default)", NULL },
	{ "server", 0, OPTION_FLAG, &asked.is_server, NULL,
	  "the aggregator is a server with one link", NULL },
	{ "servers", 0, OPTION_COUNT, &asked.servers, "M",
	  "use M servers, s1 to sM, with one link each", "4" },
	{ "trees", 0, OPTION_HOOK, &trees_hook, "[NAME=]TREES",
	  "use several aggregators: star, striped, planned, a file, or trees; may be repeated with "
	  "names for --against",
	  "two='s1(0-3);s2(0-3)'" },
	{ "mtu", 0, OPTION_COUNT, &asked.mtu, "BYTES", "MTU of every link (default 1500)", "9000" },
	{ "no-offload", 0, OPTION_FLAG, &asked.net.no_offload, NULL,
	  "packets cross links one by one, as on a real wire", NULL },
	{ "loss", 0, OPTION_HOOK, &loss_hook, "P", "probability that a UDP packet is lost",
	  "0.01" },
	{ "dup", 0, OPTION_HOOK, &dup_hook, "P", "probability that a UDP packet arrives twice",
	  NULL },
	{ "reorder", 0, OPTION_HOOK, &reorder_hook, "P",
	  "probability that the next UDP packet overtakes it", NULL },
	{ "corrupt", 0, OPTION_HOOK, &corrupt_hook, "P",
	  "probability that bits of a UDP packet flip", NULL },
	{ "seed", 0, OPTION_COUNT, &asked.net.seed, "S", "seed of the faults (default 0)", "7" },
	{ "net", 0, OPTION_TEXT, &asked.net_name, "NAME",
	  "use this virtual cluster (default: make one)", "trib" },
	{ "cores", 0, OPTION_HOOK, &cores_hook, "HOST=LIST",
	  "give this host cores of its own, for its programs and for what it receives; hosts that "
	  "are not named share the others; may be repeated",
	  "s1=1" },
	{ "busy", 0, OPTION_HOOK, &busy_hook, "SHARE",
	  "let other work take this share of the servers' cores, before everything else (0.95 at "
	  "most); needs --cores and --nic",
	  "50%" },
	{ "copied", 0, OPTION_FLAG, &asked.copied, NULL,
	  "copy packets to the aggregator on every plane, as veth does for XDP", NULL },
	{ "nic", 0, OPTION_FLAG, &asked.nic, NULL,
	  "servers receive packets in pages, as from a NIC's driver, on every plane; implies "
	  "--no-offload",
	  NULL },
	{ "plane", 0, OPTION_TEXT, &asked.plane, "NAME",
	  "plane of tributary, the first row: udp, xdp or tcp (default udp)", "xdp" },
	{ "late", 0, OPTION_HOOK, &late_hook, "HOST=S",
	  "this worker starts every allreduce S seconds late; may be repeated", "h2=0.1" },
	{ "type", 0, OPTION_HOOK, &type_hook, "NAME",
	  "type of the elements: f32, f16 or bf16 (default f32)", "bf16" },
	{ "to-one", 0, OPTION_FLAG, &asked.to_one, NULL, "only h1 wants the sum: a reduce", NULL },
	{ "collective", 0, OPTION_HOOK, &collective_hook, "NAME",
	  "allreduce, reduce-scatter or allgather (default allreduce)", "reduce-scatter" },
	{ "sizes", 0, OPTION_HOOK, &sizes_hook, "LIST",
	  "sizes of the whole vector in bytes (default 1M,4M,16M,64M)", "16M,64M" },
	{ "iterations", 0, OPTION_COUNT, &asked.iterations, "N",
	  "timed allreduces in a run (default 10)", NULL },
	{ "warmup", 0, OPTION_COUNT, &asked.warmup, "N",
	  "allreduces before them, not timed (default 2; of short vectors more)", NULL },
	{ "repeats", 0, OPTION_COUNT, &asked.repeats, "N",
	  "runs of every system, in turns (default 3)", NULL },
	{ "against", 0, OPTION_TEXT, &asked.against, "LIST",
	  "also measure trib-xdp, trib-tcp, trib-star (no ring), trib-ring (no aggregator), "
	  "mpi-trib (Open MPI with the adapter), mpi-trib-ring (the same without an aggregator), "
	  "nccl-collnet and nccl-ring (as NCCL calls our plugin), openmpi, mpich, gloo, ring, ps "
	  "(a parameter server), tcp-agg (such servers as a tree); "
	  "with several --trees also tributary@NAME, "
	  "trib-tcp@NAME, tcp-agg@NAME",
	  "gloo,ring" },
	{ "check", 0, OPTION_FLAG, &asked.check, NULL,
	  "check every sum, not only the first and the last of a run", NULL },
	{ "pool", 0, OPTION_BYTES, &asked.pool_bytes, "SIZE", "TRIB_POOL of the workers", "64M" },
	{ "lanes", 0, OPTION_COUNT, &asked.lanes, "N", "TRIB_LANES of workers and aggregators",
	  "2" },
	{ "timeout", 0, OPTION_SECONDS, &asked.timeout_s, "S",
	  "longest time of a run in seconds; also TRIB_TIMEOUT", "60" },
	{ "json", 0, OPTION_JSON_FILE, &asked.json, "FILE",
	  "write the results to FILE as JSON (-: standard output)", NULL },
	{ "plot", 0, OPTION_TEXT, &asked.plot, "FILE", "draw the results to FILE as SVG", NULL },
	{ 0 },
};

static const struct options options = {
	"trib bench allreduce [OPTION]...",
	"Times sums of floats over a virtual cluster that it makes and removes (as root), or over\n"
	"loopback. Other systems are measured on the same hosts, in turns, each with its best\n"
	"algorithm.",
	"trib bench allreduce --sizes 16M,64M --against openmpi,gloo,ring --plot bench.svg",
	rows,
};

static struct bench_report report;

static const struct bench_driver driver = { .options = &options,
	                                    .asked = &asked,
	                                    .report = &report,
	                                    .results = report.results,
	                                    .n = &report.n,
	                                    .beds = &place,
	                                    .n_beds = 1,
	                                    .settle = options_settle,
	                                    .prepare = measurement_prepare,
	                                    .table_print = bench_table_print,
	                                    .json = &bench_json,
	                                    .plot_write = bench_plot_write,
	                                    .judge = report_judge };

int bench_allreduce_run(int argc, char **argv)
{
	return bench_drive(&driver, argc, argv);
}
