/* SPDX-License-Identifier: Apache-2.0 */
#include "base/settings.h"
#include "cli/bench.h"
#include "cli/cli.h"
#include "cli/net.h"
#include "cli/options.h"
#include "cli/plane_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RATE_DEFAULT 1000000000ull
#define RUNS_MAX 1000000 /* of iterations and the like: what is above is a slip */

/* ---- arguments ---- */

static trib_status sizes_take(void *target, const char *text)
{
	struct bench_options *o = target;
	char word[32];

	for (o->n_sizes = 0; *text; text += *text == ',') {
		size_t length = strcspn(text, ",");
		uint64_t bytes;

		snprintf(word, sizeof(word), "%.*s", (int)length, text);
		if (parse_bytes(word, &bytes) != TRIB_OK)
			return TRIB_ERR_ARGUMENT;
		if (bytes < 4 || bytes % 4)
			return status_fail(
				TRIB_ERR_ARGUMENT,
				"\"%s\" is no whole number of f32 elements, 4 bytes each", word);
		if (o->n_sizes == BENCH_SIZES_MAX)
			return status_fail(TRIB_ERR_ARGUMENT, "more than %d sizes",
			                   BENCH_SIZES_MAX);
		o->sizes[o->n_sizes++] = bytes;
		text += length;
	}
	return TRIB_OK;
}

/* Splits "h2=WHAT"; what is before the = fits a host's name. NULL: there is none. */
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

static trib_status busy_take(void *target, const char *text)
{
	double *share = target;
	trib_status status = net_probability_take(share, text);

	if (status == TRIB_OK && *share > CPU_CROWD_MOST)
		return status_fail(TRIB_ERR_ARGUMENT, "%s is more than %g: nothing else would run",
		                   text, CPU_CROWD_MOST);
	return status;
}

/* "striped", "s1(0-3)", or either behind a name: "two=s1(0-3);s2(0-3)". */
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
		                   "\"%.*s\" is no name for trees: 1 to %d letters", (int)length,
		                   text, BENCH_LABEL - 1);
	snprintf(trees->label, sizeof(trees->label), "%.*s",
	         (int)(text[length] != '=' && text[length] ? 0 : length), text);
	if (!trees->label[0])
		snprintf(trees->label, sizeof(trees->label), "trees");
	trees->wanted = named ? text + length + 1 : text;
	o->n_trees++;
	return TRIB_OK;
}

static const char *options_wrong(const struct bench_options *o, bool is_switch)
{
	const struct cluster_options *net = &o->net;

	if (o->n_sizes == 0)
		return "--sizes names at least one";
	if (o->iterations < 1 || o->repeats < 1)
		return "--iterations and --repeats are at least 1";
	if (o->iterations > RUNS_MAX || o->repeats > RUNS_MAX || o->warmup > RUNS_MAX)
		return "--iterations, --repeats and --warmup are 1000000 at most";
	if (o->servers > TREES_SITES_MAX)
		return "--servers is 64 at most";
	if (o->hosts > CLUSTER_HOSTS_MAX)
		return "--hosts is 128 at most";
	if (o->mtu > 65535)
		return "--mtu is 65535 at most";
	if (is_switch && (o->is_server || o->servers))
		return "--switch and --server exclude one another";
	if (o->net_name && (net->rate_bps != RATE_DEFAULT || net->n_unlike || net->loss > 0 ||
	                    net->dup > 0 || net->reorder > 0 || net->corrupt > 0 ||
	                    net->no_offload || o->mtu || o->is_server || o->servers || o->nic))
		return "a cluster given with --net is taken as it is; links and faults are for one "
		       "that is made";
	/* Else work on packets is no thread's, and no thread could come before it. */
	if (o->busy > 0 && (!o->n_cores || !o->nic))
		return "--busy is for servers that have cores of their own, and --nic";
	if (o->nic && !o->is_server && !o->servers)
		return "--nic is for servers that have a link each (--server, --servers)";
	if (o->nic && o->copied)
		return "--nic and --copied exclude one another";
	return NULL;
}

/* Better now than after all has been measured. */
static trib_status file_try(const char *path)
{
	bool is_file = path && strcmp(path, "-") != 0;
	FILE *file = is_file ? fopen(path, "a") : NULL;

	if (is_file && (!file || fclose(file) != 0))
		return status_fail_errno("cannot write %s", path);
	return TRIB_OK;
}

/* ---- trib bench allreduce ---- */

static trib_status report_make(struct bench_report *report, struct bench_place *place)
{
	const struct bench_options *o = report->options;
	trib_status status, stopped;

	if (file_try(o->json) != TRIB_OK || file_try(o->plot) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	status = bench_systems_choose(report);
	if (status == TRIB_OK)
		status = bench_place_open(o, place);
	if (status == TRIB_OK)
		status = bench_trees_read(report);
	if (status != TRIB_OK)
		return status;
	bench_place_describe(place, report->where, sizeof(report->where));
	snprintf(report->times, sizeof(report->times), "%llu x %llu",
	         (unsigned long long)o->repeats, (unsigned long long)o->iterations);
	stopped = bench_allreduce(report);
	if (!o->json || strcmp(o->json, "-") != 0)
		bench_table_print(report);
	if (o->json)
		status = bench_json_write(report, o->json);
	if (o->plot && status == TRIB_OK)
		status = bench_plot_write(report, o->plot);
	if (status != TRIB_OK || stopped != TRIB_OK)
		return status != TRIB_OK ? status : stopped;
	/* A peer's failure is a result; ours is a failure. */
	for (unsigned i = 0; i < report->n; i++) {
		if (report->results[i].system == report->systems[0] && report->results[i].failed)
			return status_fail(TRIB_ERR_PEER, "tributary failed: %s",
			                   report->results[i].note);
	}
	return TRIB_OK;
}

/* ---- what may be asked for ---- */

static struct bench_options asked = { .net.rate_bps = RATE_DEFAULT,
	                              .sizes = { 1 << 20, 4 << 20, 16 << 20, 64 << 20 },
	                              .n_sizes = 4,
	                              .iterations = 10,
	                              .warmup = 2,
	                              .repeats = 3 };
static bool asked_switch;

static struct option_hook link_hook = { net_link_take, &asked.net },
			  sizes_hook = { sizes_take, &asked }, late_hook = { late_take, &asked },
			  trees_hook = { trees_take, &asked }, cores_hook = { cores_take, &asked },
			  busy_hook = { busy_take, &asked.busy },
			  loss_hook = { net_probability_take, &asked.net.loss },
			  dup_hook = { net_probability_take, &asked.net.dup },
			  reorder_hook = { net_probability_take, &asked.net.reorder },
			  corrupt_hook = { net_probability_take, &asked.net.corrupt };

static const struct option_row rows[] = {
	{ "hosts", 'n', OPTION_COUNT, &asked.hosts, "N", "workers (4)", "8" },
	{ "link", 0, OPTION_HOOK, &link_hook, "[HOST=]RATE",
	  "rate of every link (1gbit; 0: not shaped), or of one; repeatable", "h2=500mbit" },
	{ "switch", 0, OPTION_FLAG, &asked_switch, NULL,
	  "the aggregator has one port a worker (default)", NULL },
	{ "server", 0, OPTION_FLAG, &asked.is_server, NULL,
	  "the aggregator is a server with one link", NULL },
	{ "servers", 0, OPTION_COUNT, &asked.servers, "M", "... one of so many, s1 to sM", "4" },
	{ "trees", 0, OPTION_HOOK, &trees_hook, "[NAME=]TREES",
	  "several aggregators: star, striped, planned, a file, or trees; repeatable, see "
	  "--against",
	  "two='s1(0-3);s2(0-3)'" },
	{ "mtu", 0, OPTION_COUNT, &asked.mtu, "BYTES", "of every link (1500)", "9000" },
	{ "no-offload", 0, OPTION_FLAG, &asked.net.no_offload, NULL,
	  "packets cross one by one, as on a wire", NULL },
	{ "loss", 0, OPTION_HOOK, &loss_hook, "P", "probability that a UDP packet is lost",
	  "0.01" },
	{ "dup", 0, OPTION_HOOK, &dup_hook, "P", "... that it arrives twice", NULL },
	{ "reorder", 0, OPTION_HOOK, &reorder_hook, "P", "... that the next overtakes it", NULL },
	{ "corrupt", 0, OPTION_HOOK, &corrupt_hook, "P", "... that bits of it flip", NULL },
	{ "seed", 0, OPTION_COUNT, &asked.net.seed, "S", "of the faults (0)", "7" },
	{ "net", 0, OPTION_TEXT, &asked.net_name, "NAME",
	  "on this virtual cluster, instead of one made for it", "trib" },
	{ "cores", 0, OPTION_HOOK, &cores_hook, "HOST=LIST",
	  "cores of this host alone, for its programs and what it receives; hosts that "
	  "are not named share the others; repeatable",
	  "s1=1" },
	{ "busy", 0, OPTION_HOOK, &busy_hook, "SHARE",
	  "other work comes first on the servers' cores, and has so much of them (0.95 at most); "
	  "with --cores and --nic",
	  "50%" },
	{ "copied", 0, OPTION_FLAG, &asked.copied, NULL,
	  "packets to the aggregator are copied on every plane, as veth does it for XDP", NULL },
	{ "nic", 0, OPTION_FLAG, &asked.nic, NULL,
	  "servers get their packets as a NIC's driver has them, in pages, on every plane; one by "
	  "one, as with --no-offload",
	  NULL },
	{ "plane", 0, OPTION_TEXT, &asked.plane, "NAME",
	  "of tributary, the first in the table: udp (default), xdp or tcp", "xdp" },
	{ "late", 0, OPTION_HOOK, &late_hook, "HOST=S",
	  "this worker comes to every allreduce S seconds late; repeatable", "h2=0.1" },
	{ "to-one", 0, OPTION_FLAG, &asked.to_one, NULL, "the sum is wanted on h1 only: a reduce",
	  NULL },
	{ "sizes", 0, OPTION_HOOK, &sizes_hook, "LIST", "bytes (1M,4M,16M,64M)", "16M,64M" },
	{ "iterations", 0, OPTION_COUNT, &asked.iterations, "N", "timed, a run (10)", NULL },
	{ "warmup", 0, OPTION_COUNT, &asked.warmup, "N", "not timed, before them (2)", NULL },
	{ "repeats", 0, OPTION_COUNT, &asked.repeats, "N", "runs of every system, in turns (3)",
	  NULL },
	{ "against", 0, OPTION_TEXT, &asked.against, "LIST",
	  "compare with trib-xdp, trib-tcp, openmpi, mpich, gloo, ring, ps (a parameter "
	  "server), tcp-agg (such servers as a tree); on other trees than the first: "
	  "tributary@NAME, trib-tcp@NAME, tcp-agg@NAME",
	  "gloo,ring" },
	{ "check", 0, OPTION_FLAG, &asked.check, NULL,
	  "look at every sum, not only at each run's first and last", NULL },
	{ "pool", 0, OPTION_BYTES, &asked.pool_bytes, "SIZE", "TRIB_POOL of the workers", "64M" },
	{ "lanes", 0, OPTION_COUNT, &asked.lanes, "N", "TRIB_LANES of all", "2" },
	{ "timeout", 0, OPTION_SECONDS, &asked.timeout_s, "S",
	  "the longest a run may take; also TRIB_TIMEOUT", "60" },
	{ "json", 0, OPTION_TEXT, &asked.json, "FILE", "write the results there (-: here)", NULL },
	{ "plot", 0, OPTION_TEXT, &asked.plot, "FILE", "draw them there, as SVG", NULL },
	{ 0 },
};

static const struct options options = {
	"trib bench allreduce [OPTION]...",
	"Times f32 sums over a virtual cluster that it makes and removes (root), or over\n"
	"loopback. Others are measured on the same hosts, in turns, each with its best\n"
	"algorithm.",
	"trib bench allreduce --sizes 16M,64M --against openmpi,gloo,ring --plot bench.svg",
	rows,
};

static int bench_allreduce_run(int argc, char **argv)
{
	static struct bench_place place;
	static struct bench_report report = { .options = &asked, .place = &place };
	const char *wrong;
	trib_status status;
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
	if ((wrong = options_wrong(&asked, asked_switch)))
		return options_fail(&options, "%s", wrong);
	asked.net.no_offload |= asked.nic;
	status = report_make(&report, &place);
	if (status != TRIB_OK)
		fprintf(stderr, "trib bench allreduce: %s\n", trib_last_error());
	bench_place_close(&place);
	return status == TRIB_OK ? 0 : status == TRIB_ERR_ARGUMENT ? EXIT_USAGE : 1;
}

int cli_bench(int argc, char **argv)
{
	bool help = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);

	if (argc > 1 && strcmp(argv[1], "allreduce") == 0)
		return bench_allreduce_run(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "engine") == 0)
		return bench_engine_run(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "plane") == 0)
		return bench_plane_run(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "deploy") == 0)
		return bench_deploy_run(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "rates") == 0)
		return bench_rates_run(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "plot") == 0)
		return bench_merge_run(argc - 1, argv + 1);
	if (argc > 1 && !help)
		fprintf(stderr, "trib bench: %s is not a benchmark\n", argv[1]);
	fprintf(help ? stdout : stderr,
	        "Usage: trib bench BENCHMARK [OPTION]...\n\nBenchmarks:\n"
	        "  allreduce  time and bandwidth of sums over several hosts, also of others\n"
	        "  deploy     how long an aggregator takes to be there\n"
	        "  engine     what one packet costs where it is summed\n"
	        "  plane      what an aggregator can take, and what that costs\n"
	        "  plot       measures nothing: table and plot of what allreduce --json has "
	        "written\n"
	        "  rates      how rates are agreed on, and what becomes of them when a link slows\n"
	        "             down\n\n"
	        "Example:\n  trib bench allreduce --against gloo,ring --plot bench.svg\n");
	return help ? 0 : EXIT_USAGE;
}
