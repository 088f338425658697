/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bed/peer_job.h"

#include "base/log.h"
#include "bench/bed/stray_processes.h"
#include "launch/launch.h"
#include "bench/report/cpu_time.h"
#include "net/accept.h"
#include "net/relay.h"
#include "plane/xdp/xdp.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NIC_WAIT_US 100 /* typical delay of a NIC with adaptive interrupt moderation */

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

#define TASKS_MAX (CLUSTER_HOSTS_MAX + LAYOUT_SITES_MAX)

struct collector {
	const struct bench_run *run;
	struct bench_outcome *outcome;
	double *samples; /* NaN: no time has come */
	size_t n_samples;
	uint64_t networks[CLUSTER_HOSTS_MAX]; /* that ranks run in, each once */
	unsigned n_networks;
	char last[TASKS_MAX][240]; /* each task's last line on stderr, to explain a failure */
	unsigned complainer;       /* the first task that wrote one */
	bool complained;
};

#define OCCUPY_SLACK 0.02 /* tolerance of the share that other work gets */

/* CPU times from when all services are ready until the last time is printed. */
static struct cpu_sample cpu_before, cpu_after;
static double occupied_before, occupied_after;

static void look(struct cpu_sample *sample, double *occupied)
{
	cpu_look(sample);
	*occupied = cpu_occupied_time();
}

static double number_after(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	return at ? strtod(at + strlen(key), NULL) : 0;
}

/* An aggregator that cannot have its plane falls back to udp: the row is not what it says. */
static void plane_check(const struct bench_run *run, const char *line)
{
	char plane[16] = "", why[128] = "";
	const char *at = strstr(line, "\"plane\":\""), *reason = strstr(line, "\"why\":\"");

	if (at)
		sscanf(at, "\"plane\":\"%15[^\"]", plane);
	if (reason)
		sscanf(reason, "\"why\":\"%127[^\"]", why);
	if (plane[0] && strcmp(plane, run->system->plane) != 0)
		log_warn("%s ran on the plane %s, not %s: %s", run->system->name, plane,
		         run->system->plane, why);
}

static void network_take(struct collector *c, uint64_t network)
{
	for (unsigned i = 0; i < c->n_networks; i++)
		if (c->networks[i] == network)
			return;
	if (c->n_networks < CLUSTER_HOSTS_MAX)
		c->networks[c->n_networks++] = network;
}

static bool sample_take(const struct bench_run *run, const char *line, unsigned *rank,
                        unsigned *iteration, double *seconds)
{
	*rank = 0;
	if (run->system->sample)
		return run->system->sample(run, line, iteration, seconds);
	return sscanf(line, "SAMPLE %u %u %lf", rank, iteration, seconds) == 3;
}

static void line_take(void *context, unsigned task, const char *line, bool is_stderr)
{
	struct collector *c = context;
	struct bench_packets *packets = &c->outcome->packets;
	unsigned rank, iteration;
	double seconds, sent, again;
	uint64_t network;

	if (!is_stderr && sample_take(c->run, line, &rank, &iteration, &seconds)) {
		if (rank < run_ranks(c->run) && iteration < c->run->iterations)
			c->samples[(size_t)rank * c->run->iterations + iteration] = seconds;
		if (++c->n_samples == (size_t)run_ranks(c->run) * c->run->iterations)
			look(&cpu_after, &occupied_after);
	} else if (strncmp(line, "{\"tribd\":", 9) == 0) {
		c->outcome->cpu_s +=
			number_after(line, "\"cpu_s\":") + number_after(line, "\"kernel_s\":");
		c->outcome->payload_bytes += number_after(line, "\"payload_bytes\":");
		packets->results_again += number_after(line, "\"repeats\":");
		plane_check(c->run, line);
	} else if (sscanf(line, "CPU %lf", &seconds) == 1) {
		c->outcome->worker_cpu_s += seconds;
	} else if (sscanf(line, "PACKETS %lf %lf", &sent, &again) == 2) {
		packets->fragments += sent;
		packets->fragments_again += again;
	} else if (sscanf(line, "NETWORK %" SCNu64, &network) == 1) {
		network_take(c, network);
	} else if (is_stderr && *line) {
		snprintf(c->last[task], sizeof(c->last[task]), "%s", line);
		if (!c->complained)
			c->complainer = task;
		c->complained = true;
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
		status = cpu_occupy(&servers, c->run->options->busy);
	}
	look(&cpu_before, &occupied_before);
	return status;
}

/* CPU time of the aggregators, if they have cores of their own. */
static void cores_count(const struct bench_run *run, struct bench_outcome *outcome)
{
	double others = occupied_after - occupied_before, all;
	cpu_set_t servers;

	cores_of_servers(run->place->cores, &run->place->cluster, &servers);
	if (CPU_COUNT(&servers) == 0)
		return;
	all = (cpu_after.at - cpu_before.at) * CPU_COUNT(&servers);
	outcome->cpu_s = -others;
	for (unsigned core = 0; core < CPU_CORES_MAX; core++)
		if (CPU_ISSET(core, &servers))
			outcome->cpu_s += cpu_busy(&cpu_before, &cpu_after, core);
	if (outcome->cpu_s <
	    0) /* busy time is counted in ticks, so that the difference may be below 0 */
		outcome->cpu_s = 0;
	if (others < (run->options->busy - OCCUPY_SLACK) * all)
		log_warn("other work had %.0f %% of the servers' cores, not %.0f: see "
		         "kernel.sched_rt_runtime_us",
		         100 * others / all, 100 * run->options->busy);
}

/* Trees may have hosts of their own, so a host is found by its name. NULL: a server, which has all
 * cores. mpirun is on the first host, and its agent binds the ranks of the others. */
static const cpu_set_t *core_of_worker(const struct bench_place *place,
                                       const struct cluster_host *host)
{
	for (unsigned i = 0; i < place->workers; i++)
		if (strcmp(place->cluster.hosts[i].name, host->name) == 0)
			return &place->cores[i];
	return NULL;
}

/* An MPI launcher starts ranks on all workers, so it gets the cores of all. */
static const cpu_set_t *task_cores(const struct bench_run *run, const struct bench_job *job,
                                   const struct cluster_host *host)
{
	const struct bench_place *place = run->place;
	static cpu_set_t workers;

	if (place->spread)
		return core_of_worker(place, host);
	if (!run->options->n_cores)
		return NULL;
	if (!job->has_strays)
		return &place->cores[host - place->cluster.hosts];
	CPU_ZERO(&workers);
	for (unsigned i = 0; i < place->workers; i++)
		CPU_OR(&workers, &workers, &place->cores[i]);
	return &workers;
}

/* What the task that failed first says. If it is mute or none has failed, the first one that
 * complained knows the cause; later ones complain about its end. */
static const char *cause_of(const struct collector *c, int failed)
{
	return c->last[failed >= 0 && c->last[failed][0] ? (unsigned)failed : c->complainer];
}

static trib_status job_launch(const struct bench_run *run, struct bench_job *job,
                              struct collector *collector)
{
	struct launch_task tasks[TASKS_MAX] = { 0 };
	struct launch_options options = { .line = line_take,
		                          .context = collector,
		                          .ready = ready_take,
		                          .timeout_s = run->timeout_s,
		                          .stop = run->stop,
		                          .ready_word = job->ready_word };
	struct launch_report report;
	struct bench_outcome *outcome = collector->outcome;
	const char *cause;
	char mark[64];
	trib_status status;

	stray_processes_mark(mark, sizeof(mark), run->port);
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
	cpu_occupy_end();
	if (job->has_strays)
		stray_processes_end(mark);
	/* A signal also counts if it came when the tasks had ended, or were about to end. */
	outcome->stopped = report.signalled;
	if (status == TRIB_OK)
		return TRIB_OK;
	cause = cause_of(collector, report.first_failed);
	snprintf(outcome->why, sizeof(outcome->why), "%.150s%s%s", report.sentence,
	         *cause ? ": " : "", cause);
	return status;
}

/* Programs at the aggregators' links during a run. */
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
		status = layout_accept(run->system->trees, cluster, run->options->nic,
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

/* A launcher that starts all ranks in one place would measure that place, and not the links. */
static trib_status networks_check(const struct collector *c)
{
	const struct bench_run *run = c->run;
	unsigned wanted = run->place->cluster.n ? run_ranks(run) : 1;

	/* Programs that are no peers do not print their network. */
	if (c->n_networks >= wanted || run->system->sample)
		return TRIB_OK;
	snprintf(c->outcome->why, sizeof(c->outcome->why),
	         "its ranks ran on %u of %u hosts: look for settings of its launcher in the "
	         "environment",
	         c->n_networks, wanted);
	return TRIB_ERR_PEER;
}

trib_status bench_run_once(const struct bench_run *run, struct bench_outcome *outcome)
{
	size_t n = (size_t)run_ranks(run) * run->iterations;
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
	outcome->cpu_s = outcome->payload_bytes = outcome->worker_cpu_s = 0;
	outcome->packets = (struct bench_packets){ 0 };
	status = run->system->prepare(run, job);
	/* tribd can then tell how long its XDP programs ran. It makes them slower. */
	if (strcmp(run->system->plane, "xdp") == 0 && !run->options->n_cores &&
	    !run->options->no_cpu_time)
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
	complete = (run->options->mean_of_ranks ? stats_mean : stats_slowest)(
		collector.samples, run_ranks(run), run->iterations, outcome->times);
	if (status == TRIB_OK && !complete) {
		snprintf(outcome->why, sizeof(outcome->why),
		         "it exited with 0, but not every rank has printed its times");
		status = TRIB_ERR_PEER;
	}
	/*
	 * MPI's times are printed after every rank has checked its sums. mpirun's
	 * exit code does not matter after that: MPICH fails at the end if a rank
	 * hangs in MPI_Finalize.
	 */
	if (complete && run->system->launcher && !outcome->stopped)
		status = TRIB_OK;
	if (status == TRIB_OK)
		status = networks_check(&collector);
	if (status == TRIB_OK && run->system->succeeded)
		run->system->succeeded(run);
	job_free(job);
	free(job);
	free(collector.samples);
	return status;
}
