/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_job.h"

#include "base/log.h"
#include "cli/bench_strays.h"
#include "cli/launch.h"
#include "cli/plane_cpu.h"
#include "net/accept.h"
#include "net/relay.h"
#include "plane/xdp/xdp.h"

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NIC_WAIT_US 100 /* of the order that NICs' adaptive moderation comes to */

void words_add(struct bench_words *words, const char *format, ...)
{
	char **items = realloc(words->items, (words->n + 2) * sizeof(*items));
	va_list args;

	if (!items)
		abort();
	words->items = items;
	va_start(args, format);
	if (vasprintf(&items[words->n], format, args) < 0)
		abort();
	va_end(args);
	items[++words->n] = NULL;
}

static void words_free(struct bench_words *words)
{
	for (unsigned i = 0; i < words->n; i++)
		free(words->items[i]);
	free(words->items);
}

/* ---- putting it together ---- */

const struct cluster_host *run_host(const struct bench_run *run, int rank)
{
	const struct cluster *cluster = &run->place->cluster;

	if (cluster->n == 0)
		return NULL;
	if (rank >= 0)
		return &cluster->hosts[rank];
	for (unsigned i = 0; i < cluster->n; i++) {
		if (cluster->hosts[i].is_server)
			return &cluster->hosts[i];
	}
	return &cluster->hosts[0];
}

const char *run_address(const struct bench_run *run, int rank)
{
	const struct cluster_host *host = run_host(run, rank);

	return host ? host->address : "127.0.0.1";
}

struct bench_task *job_task(struct bench_job *job, const struct bench_run *run, int rank)
{
	struct bench_task *task = &job->tasks[job->n++];

	task->host = run_host(run, rank);
	snprintf(task->label, sizeof(task->label), "rank %d", rank);
	words_add(&task->env, "TRIB_SIZE=%u", run->place->workers);
	words_add(&task->env, "TRIB_RANK=%d", rank);
	return task;
}

struct bench_task *job_service(struct bench_job *job, const struct bench_run *run,
                               const struct cluster_host *host, const char *label)
{
	struct bench_task *task = &job->tasks[job->n++];

	task->host = host;
	task->service = true;
	job->ready_word = "ready on";
	snprintf(task->label, sizeof(task->label), "%.23s", label);
	words_add(&task->env, "TRIB_SIZE=%u", run->place->workers);
	return task;
}

void job_program_words(const struct bench_run *run, struct bench_words *argv)
{
	const struct bench_options *o = run->options;
	char path[4096];

	if (!bench_program_find(run->system->program, path, sizeof(path)))
		snprintf(path, sizeof(path), "%s", run->system->program);
	words_add(argv, "%s", path);
	words_add(argv, "--bytes");
	words_add(argv, "%llu", (unsigned long long)run->bytes);
	words_add(argv, "--iterations");
	words_add(argv, "%u", run->iterations);
	words_add(argv, "--warmup");
	words_add(argv, "%u", run->warmup);
	if (o->check)
		words_add(argv, "--check");
	if (o->to_one)
		words_add(argv, "--to-one");
	for (unsigned i = 0; i < o->n_late; i++) {
		const struct cluster *cluster = &run->place->cluster;
		const struct cluster_host *host = cluster_find(cluster, o->late[i].host);

		words_add(argv, "--late");
		words_add(argv, "%td=%.9g", host - cluster->hosts, o->late[i].seconds);
	}
}

trib_status job_folder(struct bench_job *job)
{
	snprintf(job->folder, sizeof(job->folder), "/tmp/trib-bench-XXXXXX");
	if (mkdtemp(job->folder))
		return TRIB_OK;
	job->folder[0] = '\0';
	return status_fail_errno("cannot make a folder in /tmp");
}

static int entry_remove(const char *path, const struct stat *info, int type, struct FTW *walk)
{
	(void)info;
	(void)type;
	(void)walk;
	return remove(path);
}

static void job_free(struct bench_job *job)
{
	for (unsigned i = 0; i < job->n; i++) {
		words_free(&job->tasks[i].argv);
		words_free(&job->tasks[i].env);
	}
	if (job->folder[0])
		nftw(job->folder, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- running it ---- */

struct collector {
	const struct bench_run *run;
	struct bench_outcome *outcome;
	double *samples; /* NaN where none came */
	size_t n_samples;
	char last[240]; /* the last line that was no sample, for what failed */
	unsigned last_from;
};

#define CROWD_SLACK 0.02 /* of a share that other work was to have */

/* From the moment when all services are there until the last time is told. */
static struct cpu_sample cpu_before, cpu_after;
static double crowd_before, crowd_after;

static void look(struct cpu_sample *sample, double *crowd)
{
	cpu_look(sample);
	*crowd = cpu_crowd_time();
}

static double number_after(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	return at ? strtod(at + strlen(key), NULL) : 0;
}

static void line_take(void *context, unsigned task, const char *line, bool is_stderr)
{
	struct collector *c = context;
	struct bench_packets *packets = &c->outcome->packets;
	unsigned rank, iteration;
	double seconds, sent, again;

	if (sscanf(line, "SAMPLE %u %u %lf", &rank, &iteration, &seconds) == 3) {
		if (rank < c->run->place->workers && iteration < c->run->iterations)
			c->samples[(size_t)rank * c->run->iterations + iteration] = seconds;
		if (++c->n_samples == (size_t)c->run->place->workers * c->run->iterations)
			look(&cpu_after, &crowd_after);
	} else if (strncmp(line, "{\"tribd\":", 9) == 0) {
		c->outcome->cpu_s +=
			number_after(line, "\"cpu_s\":") + number_after(line, "\"kernel_s\":");
		c->outcome->payload_bytes += number_after(line, "\"payload_bytes\":");
		packets->results_again += number_after(line, "\"repeats\":");
	} else if (sscanf(line, "PACKETS %lf %lf", &sent, &again) == 2) {
		packets->fragments += sent;
		packets->fragments_again += again;
	} else if (is_stderr && *line && (!c->last[0] || c->last_from == task)) {
		/* The first to complain knows best; the others complain about it. */
		snprintf(c->last, sizeof(c->last), "%s", line);
		c->last_from = task;
	}
}

static trib_status ready_take(void *context)
{
	const struct collector *c = context;
	const struct bench_place *place = c->run->place;
	trib_status status = TRIB_OK;
	cpu_set_t servers;

	if (c->run->options->n_cores)
		status = cores_receive(place->cores, &place->cluster, c->run->options->nic);
	if (status == TRIB_OK && c->run->options->busy > 0) {
		cores_of_servers(place->cores, &place->cluster, &servers);
		status = cpu_crowd(&servers, c->run->options->busy);
	}
	look(&cpu_before, &crowd_before);
	return status;
}

/* Of the aggregators, where they have cores of their own. */
static void cores_count(const struct bench_run *run, struct bench_outcome *outcome)
{
	double others = crowd_after - crowd_before, all;
	cpu_set_t servers;

	cores_of_servers(run->place->cores, &run->place->cluster, &servers);
	if (CPU_COUNT(&servers) == 0)
		return;
	all = (cpu_after.at - cpu_before.at) * CPU_COUNT(&servers);
	outcome->cpu_s = -others;
	for (unsigned core = 0; core < CPU_CORES_MAX; core++)
		if (CPU_ISSET(core, &servers))
			outcome->cpu_s += cpu_busy(&cpu_before, &cpu_after, core);
	if (outcome->cpu_s < 0) /* nothing but others, and cores are counted in ticks */
		outcome->cpu_s = 0;
	if (others < (run->options->busy - CROWD_SLACK) * all)
		log_warn("other work had %.0f %% of the servers' cores, not %.0f: see "
		         "kernel.sched_rt_runtime_us",
		         100 * others / all, 100 * run->options->busy);
}

/* An MPI's launcher starts ranks on all workers. */
static const cpu_set_t *task_cores(const struct bench_run *run, const struct bench_job *job,
                                   const struct cluster_host *host)
{
	const struct bench_place *place = run->place;
	static cpu_set_t workers;

	if (!run->options->n_cores)
		return NULL;
	if (!job->strays)
		return &place->cores[host - place->cluster.hosts];
	CPU_ZERO(&workers);
	for (unsigned i = 0; i < place->workers; i++)
		CPU_OR(&workers, &workers, &place->cores[i]);
	return &workers;
}

static trib_status job_launch(const struct bench_run *run, struct bench_job *job,
                              struct collector *collector)
{
	struct launch_task tasks[CLUSTER_HOSTS_MAX + TREES_SITES_MAX] = { 0 };
	struct launch_options options = { .line = line_take,
		                          .context = collector,
		                          .ready = ready_take,
		                          .timeout_s = run->timeout_s,
		                          .ready_word = job->ready_word };
	struct launch_report report;
	struct bench_outcome *outcome = collector->outcome;
	char mark[64];
	trib_status status;

	strays_mark(mark, sizeof(mark), run->port);
	for (unsigned i = 0; i < job->n; i++) {
		words_add(&job->tasks[i].env, "%s", mark);
		tasks[i] =
			(struct launch_task){ .label = job->tasks[i].label,
			                      .host = job->tasks[i].host,
			                      .argv = job->tasks[i].argv.items,
			                      .env = job->tasks[i].env.items,
			                      .service = job->tasks[i].service,
			                      .cores = task_cores(run, job, job->tasks[i].host) };
	}
	status = launch_all(tasks, job->n, &options, &report);
	cpu_crowd_end();
	if (job->strays)
		strays_end(mark);
	if (status == TRIB_OK)
		return TRIB_OK;
	outcome->stopped = status == TRIB_ERR_CLOSED;
	snprintf(outcome->why, sizeof(outcome->why), "%.150s%s%s", report.sentence,
	         collector->last[0] ? ": " : "", collector->last);
	return status;
}

/* What is at the links of aggregators while it runs. */
struct ends {
	struct accepted accepted;
	struct relay relay;
};

static trib_status ends_begin(const struct bench_run *run, struct ends *out)
{
	const struct cluster *cluster = &run->place->cluster;
	bool by_xdp = strcmp(run->system->plane, "xdp") == 0;
	trib_status status = TRIB_OK;

	if (!cluster->n)
		return TRIB_OK;
	if (run->options->nic)
		status = relay_start(cluster, !by_xdp, NIC_WAIT_US, &out->relay);
	if (status == TRIB_OK && by_xdp)
		status = trees_accept(run->system->trees, cluster, run->options->nic,
		                      &out->accepted);
	else if (status == TRIB_OK && run->options->copied)
		status = accept_at_servers(cluster, &out->accepted);
	return status;
}

static void ends_end(struct ends *ends)
{
	accept_end(&ends->accepted);
	relay_end(&ends->relay);
}

trib_status bench_run_once(const struct bench_run *run, struct bench_outcome *outcome)
{
	size_t n = (size_t)run->place->workers * run->iterations;
	struct bench_job *job = calloc(1, sizeof(*job));
	struct collector collector = { .run = run, .outcome = outcome };
	struct ends ends = { .accepted.n = 0 };
	int statistics = -1;
	trib_status status;
	bool complete;

	collector.samples = malloc(n * sizeof(double));
	if (!job || !collector.samples)
		abort();
	for (size_t i = 0; i < n; i++)
		collector.samples[i] = NAN;
	outcome->why[0] = '\0';
	outcome->cpu_s = outcome->payload_bytes = 0;
	outcome->packets = (struct bench_packets){ 0 };
	status = run->system->prepare(run, job);
	/* So that tribd can tell how long its programs ran. It makes them slower. */
	if (strcmp(run->system->plane, "xdp") == 0 && !run->options->n_cores)
		statistics = xdp_stats_open();
	if (status == TRIB_OK)
		status = ends_begin(run, &ends);
	if (status != TRIB_OK)
		snprintf(outcome->why, sizeof(outcome->why), "%s", trib_last_error());
	else
		status = job_launch(run, job, &collector);
	ends_end(&ends);
	if (statistics >= 0)
		close(statistics);
	if (status == TRIB_OK && run->options->n_cores)
		cores_count(run, outcome);
	complete = stats_slowest(collector.samples, run->place->workers, run->iterations,
	                         outcome->times);
	if (status == TRIB_OK && !complete) {
		snprintf(outcome->why, sizeof(outcome->why),
		         "it ended well, but not every rank has printed its times");
		status = TRIB_ERR_PEER;
	}
	/*
	 * MPI's times are printed after every rank has found its sums right. How mpirun ends
	 * after that is no matter: MPICH's does so badly when a rank is stuck in MPI_Finalize.
	 */
	if (complete && run->system->launcher && !outcome->stopped)
		status = TRIB_OK;
	job_free(job);
	free(job);
	free(collector.samples);
	return status;
}
