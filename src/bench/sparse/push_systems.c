/* SPDX-License-Identifier: Apache-2.0 */
/* The systems of `trib bench sparse`, and how a run of each is started. */
#include "bench/sparse/push_bench.h"

#include "bench/bed/job_build.h"
#include "bench/sparse/link_bytes.h"
#include "launch/local_daemon.h"
#include "wire/packet.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define PROGRAM "sparse" /* in bench/peers */
#define HOT_WAIT_S 10    /* for the first hot rows: without them a run is all cold, and shows it */

static const char *const names[] = {
	[PUSH_HOT] = "hot", [PUSH_SERVERS] = "servers", [PUSH_DENSE] = "dense", NULL
};

/* ---- a run ---- */

static struct push_told running; /* what the present run has told so far */
static char gate[80];            /* its workers wait for this file */

static const struct push_case *case_of(const struct bench_run *run)
{
	return (const struct push_case *)run->system;
}

static void load_words(const struct push_options *o, struct word_list *argv)
{
	if (o->tensors) {
		words_add_option(argv, "--tensors", o->tensors);
		words_add_count(argv, "--files", o->files);
		return;
	}
	words_add_count(argv, "--keys", o->keys);
	words_add_count(argv, "--width", o->width);
	words_add_count(argv, "--rows", o->rows);
	words_add(argv, "--zipf");
	words_add(argv, "%.9g", o->zipf);
}

static void worker_words(const struct bench_run *run, struct word_list *argv)
{
	const struct push_case *row = case_of(run);
	const struct push_options *o = row->options;
	char path[4096];

	if (!bench_program_find(PROGRAM, path, sizeof(path)))
		snprintf(path, sizeof(path), "%s", PROGRAM);
	words_add(argv, "%s", path);
	words_add_option(argv, "--way", row->of->way == PUSH_DENSE ? "dense" : "push");
	words_add_option(argv, "--path", row->of->way == PUSH_SERVERS ? "servers" : "auto");
	words_add_option(argv, "--sums", o->sums);
	words_add_count(argv, "--iterations", run->iterations);
	words_add_count(argv, "--warmup", run->warmup);
	words_add_count(argv, "--steps", o->steps);
	words_add(argv, "--timeout");
	words_add(argv, "%.9g", run->timeout_s);
	if (o->drift)
		words_add_count(argv, "--drift", run->iterations / 2);
	if (row->of->way == PUSH_HOT)
		words_add_count(argv, "--hot-wait", HOT_WAIT_S);
	if (o->pulls)
		words_add(argv, "--pull");
	load_words(o, argv);
}

static const struct cluster_host *shard_host(const struct push_case *row, unsigned shard)
{
	return row->servers ? &row->servers[shard] : NULL;
}

static unsigned shard_port(const struct bench_run *run, unsigned shard)
{
	return run->port + WIRE_LANES_MAX + shard;
}

static const char *host_address(const struct cluster_host *host)
{
	return host ? host->address : "127.0.0.1";
}

static void aggregator_add(const struct bench_run *run, struct bench_job *job, const char *cookie)
{
	const struct tree_site *site = &run->system->trees->sites[0];
	struct bench_task *task = job_service(job, run, site->host, site->name);
	char daemon[4096];

	daemon_find(daemon, sizeof(daemon));
	words_add(&task->argv, "%s", daemon);
	words_add(&task->argv, "--listen");
	words_add(&task->argv, "%s:%u", site->address, run->port);
	words_add_option(&task->argv, "--plane", run->system->plane);
	words_add_option(&task->argv, "--http", "off");
	words_add(&task->env, "%s", cookie);
	if (run->options->pool_bytes)
		words_add(&task->env, "TRIB_POOL=%" PRIu64, run->options->pool_bytes);
}

static void shard_add(const struct bench_run *run, struct bench_job *job, unsigned shard,
                      const char *cookie)
{
	const struct push_case *row = case_of(run);
	const struct cluster_host *host = shard_host(row, shard);
	struct bench_task *task;
	char label[24], self[2048];

	self_find(self, sizeof(self));
	snprintf(label, sizeof(label), "shard %u", shard);
	task = job_service(job, run, host, label);
	words_add(&task->argv, "%s", self);
	words_add_option(&task->argv, "sparse", "serve");
	words_add(&task->argv, "--listen");
	words_add(&task->argv, "%s:%u", host_address(host), shard_port(run, shard));
	words_add(&task->argv, "--dir");
	words_add(&task->argv, "%s/shard-%u", job->folder, shard);
	words_add(&task->argv, "--shard");
	words_add(&task->argv, "%u/%u", shard, (unsigned)row->options->shards);
	words_add_option(&task->argv, "--sync", row->options->sync);
	if (row->of->way == PUSH_HOT) {
		words_add(&task->argv, "--aggregators");
		words_add(&task->argv, "%s:%u", run->system->trees->sites[0].address, run->port);
		words_add_count(&task->argv, "--memory", run->options->pool_bytes);
	}
	words_add(&task->env, "%s", cookie);
}

static void workers_add(const struct bench_run *run, struct bench_job *job, const char *cookie)
{
	const struct push_case *row = case_of(run);
	char servers[PUSH_SHARDS_MAX * 64] = "";

	for (unsigned i = 0; i < row->options->shards; i++) {
		size_t used = strlen(servers);

		snprintf(servers + used, sizeof(servers) - used, "%s%s:%u", i ? "," : "",
		         host_address(shard_host(row, i)), shard_port(run, i));
	}
	for (unsigned rank = 0; rank < run->place->workers; rank++) {
		struct bench_task *task = job_task(job, run, (int)rank);

		job_program_words(run, &task->argv);
		words_add(&task->env, "%s", cookie);
		if (row->of->way != PUSH_DENSE) {
			words_add(&task->env, "TRIB_SPARSE_SERVERS=%s", servers);
			words_add_option(&task->argv, "--gate", gate);
			continue;
		}
		words_add(&task->env, "TRIB_AGGREGATOR=%s:%u", run->system->trees->sites[0].address,
		          run->port);
		words_add(&task->env, "TRIB_PLANE=%s", run->system->plane);
		words_add(&task->env, "TRIB_TIMEOUT=%.9g", run->timeout_s);
		if (run->options->pool_bytes)
			words_add(&task->env, "TRIB_POOL=%" PRIu64, run->options->pool_bytes);
	}
}

static trib_status run_prepare(const struct bench_run *run, struct bench_job *job)
{
	const struct push_case *row = case_of(run);
	char cookie[48];
	uint64_t drawn;

	if (getrandom(&drawn, sizeof(drawn), 0) != (ssize_t)sizeof(drawn))
		return status_fail_errno("cannot draw a random cookie");
	snprintf(cookie, sizeof(cookie), "TRIB_COOKIE=%016" PRIx64, drawn);
	running = (struct push_told){ .link_bytes = NAN };
	if (row->of->way != PUSH_SERVERS)
		aggregator_add(run, job, cookie);
	if (row->of->way != PUSH_DENSE) {
		trib_status status = job_folder(job);

		if (status != TRIB_OK)
			return status;
		snprintf(gate, sizeof(gate), "%s/gate", job->folder);
		for (unsigned i = 0; i < row->options->shards; i++)
			shard_add(run, job, i, cookie);
	}
	workers_add(run, job, cookie);
	return TRIB_OK;
}

static double links_read(const struct push_case *row)
{
	double sum = 0;

	for (unsigned i = 0; i < row->options->shards; i++)
		sum += link_bytes_received(shard_host(row, i));
	return sum;
}

static bool line_take(const struct bench_run *run, const char *line, unsigned *iteration,
                      double *seconds)
{
	const struct push_case *row = case_of(run);
	double share;

	if (push_figures_read(line, &running.figures))
		return false;
	if (strcmp(line, "BEGIN") == 0) {
		running.link_bytes = -links_read(row);
		if (row->of->way != PUSH_DENSE) /* no worker has pushed since */
			close(open(gate, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	}
	if (!push_sample_read(line, iteration, seconds, &share))
		return false;
	if (*iteration < PUSH_ITERATIONS_MAX) {
		running.curve.seconds[*iteration] = *seconds;
		running.curve.hot_share[*iteration] = share;
		running.curve.n = *iteration + 1;
	}
	if (*iteration + 1 == run->iterations)
		running.link_bytes += links_read(row);
	return true;
}

static void run_keep(const struct bench_run *run)
{
	struct push_told *told = case_of(run)->told;

	told->runs++;
	push_figures_add(&told->figures, &running.figures);
	told->link_bytes += running.link_bytes;
	told->curve = running.curve;
}

void push_case_place(struct push_case *row, const struct tree_layout *trees)
{
	row->system = (struct bench_system){ .name = row->of->name,
		                             .plane = row->of->plane,
		                             .program = PROGRAM,
		                             .aggregates = true,
		                             .variants = bench_plain_variants,
		                             .prepare = run_prepare,
		                             .words = worker_words,
		                             .sample = line_take,
		                             .succeeded = run_keep,
		                             .trees = trees };
}

/* ---- the choice ---- */

static const char *reason_find(const struct push_system *system)
{
	if (system->way == PUSH_SERVERS)
		return NULL;
	if (system->way == PUSH_DENSE && strcmp(system->plane, "pisa") == 0)
		return "the switch has no program for long vectors";
	return plane_missing(system->plane);
}

static trib_status system_add(void *context, unsigned way, const char *plane)
{
	struct push_report *report = context;
	struct push_system system = { .way = (enum push_way)way,
		                      .name = names[way],
		                      .plane = way == PUSH_SERVERS ? "tcp" : plane };
	const char *why = reason_find(&system);

	if (why)
		left_out_add(report->left_out, system.name, system.plane, why);
	else if (report->n_systems == PUSH_SYSTEMS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "more than %u systems", PUSH_SYSTEMS_MAX);
	else
		report->systems[report->n_systems++] = system;
	return TRIB_OK;
}

trib_status push_systems_choose(struct push_report *report)
{
	static const char *const planes[] = { "xdp", "udp", "pisa", NULL };
	static const struct plane_ways ways = { names, planes, system_add };
	trib_status status;
	char path[4096];

	if (!bench_program_find(PROGRAM, path, sizeof(path)))
		return status_fail(TRIB_ERR_CONFIG, "bench/peers/" PROGRAM " was not built");
	status =
		plane_ways_choose(&ways, report->options->systems, report->options->planes, report);
	if (status == TRIB_OK && report->n_systems == 0)
		return status_fail(TRIB_ERR_CONFIG, "no system can run here: %s", report->left_out);
	return status;
}

/* ---- comparing rows ---- */

double push_updates(const struct push_report *report, unsigned row)
{
	const struct push_told *told = &report->told[row];

	return told->runs ? told->figures.rows / told->runs / report->results[row].iterations : NAN;
}

double push_rate(const struct push_report *report, unsigned row)
{
	return push_updates(report, row) / report->results[row].stats.of_runs.median;
}

double push_gain(const struct push_report *report, unsigned row)
{
	for (unsigned i = 0; i < report->n; i++)
		if (report->cases[i].of->way == PUSH_SERVERS &&
		    report->cases[i].place == report->cases[row].place)
			return push_rate(report, row) / push_rate(report, i);
	return NAN;
}
