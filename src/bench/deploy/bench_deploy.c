/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times how long an aggregator takes until it is ready (XAgg reports 0.34 s).
 *
 * The first time is from the start of the process on one host until another host
 * has an answer to a QUERY. The second is for an aggregator that already runs: from
 * the first JOIN of a job until its lane, with its pool, answers the workers.
 */
#include "base/clock.h"
#include "bench/deploy/bench_deploy.h"
#include "bench/load/join_children.h"
#include "bench/report/samples.h"
#include "bench/report/table.h"
#include "launch/local_daemon.h"
#include "options/options.h"
#include "query/query.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_S 10.0
#define REPEATS_MAX 100000
#define JOB_WORKERS 4
#define JOB_POOL (64u << 20)
#define JOB_ELEMENTS 362

struct deploy_options {
	uint64_t repeats;
	const char *plane, *json;
};

struct deploy {
	struct deploy_options options;
	struct cluster cluster; /* a worker and a server; its n is 0 on loopback */
	char daemon[512], address[64];
	unsigned port;
	double *starts, *joins; /* seconds; no joins on loopback */
	unsigned done;
	trib_status status; /* of the thread that asks */
	char why[256];
};

static const struct cluster_host *deploy_host(const struct deploy *deploy, const char *name)
{
	return deploy->cluster.n ? cluster_find(&deploy->cluster, name) : NULL;
}

static void __attribute__((noreturn)) daemon_exec(const struct deploy *deploy, pid_t parent)
{
	const struct cluster_host *host = deploy_host(deploy, "s1");
	int null = open("/dev/null", O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || (host && cluster_enter(host) != TRIB_OK))
		_exit(126);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO); /* stderr stays: errors are shown */
	execlp(deploy->daemon, deploy->daemon, "--listen", deploy->address, "--plane",
	       deploy->options.plane, NULL);
	_exit(127);
}

static void daemon_end(pid_t pid)
{
	kill(pid, SIGTERM);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* The workers of a job join, all from h1. */
static trib_status job_join(struct deploy *deploy)
{
	const struct cluster_host *host = deploy_host(deploy, "h1");
	struct load_options load = { .children = JOB_WORKERS,
		                     .lanes = 1,
		                     .elements = JOB_ELEMENTS,
		                     .pool_bytes = JOB_POOL,
		                     .port = (uint16_t)deploy->port,
		                     .address = deploy_host(deploy, "s1")->address };
	struct wire_welcome welcome;
	uint64_t started;
	trib_status status;

	for (unsigned i = 0; i < JOB_WORKERS; i++)
		load.hosts[0][i] = host;
	started = clock_now();
	status = plane_join(&load, &welcome);
	deploy->joins[deploy->done] = (double)(clock_now() - started) / 1e9;
	for (unsigned i = 0; i < JOB_WORKERS; i++)
		if (load.fds[0][i] >= 0)
			close(load.fds[0][i]);
	return status;
}

static trib_status deploy_once(struct deploy *deploy)
{
	char page[QUERY_PAGE];
	uint64_t started = clock_now();
	pid_t parent = getpid(), pid = fork();
	trib_status status;

	if (pid < 0)
		return status_fail_errno("cannot fork");
	if (pid == 0)
		daemon_exec(deploy, parent);
	status = query_page(deploy->address, 0, PATIENCE_S, page, sizeof(page));
	deploy->starts[deploy->done] = (double)(clock_now() - started) / 1e9;
	if (status == TRIB_OK && deploy->cluster.n)
		status = job_join(deploy);
	deploy->done += status == TRIB_OK;
	daemon_end(pid);
	return status;
}

/* Runs in a thread of its own, since a thread cannot leave a namespace that it has entered. */
static void *deploy_all(void *context)
{
	struct deploy *deploy = context;
	const struct cluster_host *host = deploy_host(deploy, "h1");

	deploy->status = host ? cluster_enter(host) : TRIB_OK;
	while (deploy->status == TRIB_OK && deploy->done < deploy->options.repeats)
		deploy->status = deploy_once(deploy);
	if (deploy->status != TRIB_OK)
		snprintf(deploy->why, sizeof(deploy->why), "%s", trib_last_error());
	return NULL;
}

static trib_status cluster_make(struct deploy *deploy)
{
	static char name[32];
	struct cluster_options options = { .name = name, .workers = 1, .servers = 1 };

	snprintf(name, sizeof(name), "deploy%d", (int)getpid());
	return geteuid() == 0 ? cluster_up(&options, &deploy->cluster) : TRIB_OK;
}

static trib_status deploy_run(struct deploy *deploy)
{
	const struct cluster_host *host;
	const char *address;
	char cookie[24];
	pthread_t thread;

	if (cluster_make(deploy) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	host = deploy_host(deploy, "s1");
	address = host ? host->address : "127.0.0.1";
	deploy->port = daemon_port(host, address, false);
	snprintf(deploy->address, sizeof(deploy->address), "%s:%u", address, deploy->port);
	daemon_find(deploy->daemon, sizeof(deploy->daemon));
	snprintf(cookie, sizeof(cookie), "%016llx", (unsigned long long)PLANE_COOKIE);
	setenv("TRIB_COOKIE", cookie, 1);
	setenv("TRIB_LOG", "error", 0); /* tribd ends again and again while a job is joined:
	                                   warnings about that would be noise */
	if (pthread_create(&thread, NULL, deploy_all, deploy) != 0)
		return status_fail(TRIB_ERR_SYSTEM, "cannot start a thread");
	pthread_join(thread, NULL);
	if (deploy->cluster.n && cluster_down(deploy->cluster.name) != TRIB_OK)
		fprintf(stderr, "trib bench deploy: %s\n", trib_last_error());
	return deploy->status == TRIB_OK ? TRIB_OK : status_fail(deploy->status, "%s", deploy->why);
}

#define PERCENTS 4u

static const double percents[PERCENTS] = { 10, 50, 90, 99 };

#define TIME(name)                                                              \
	{                                                                       \
		.header = (name), .format = "%.1f", .scale = 1e3, .unit = " ms" \
	}
static const struct table_column columns[] = { { .header = "" }, TIME("min"),  TIME("10 %"),
	                                       TIME("50 %"),     TIME("90 %"), TIME("99 %"),
	                                       TIME("max") };

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void times_fill(struct table *table, const char *what, const double *sorted, unsigned n)
{
	table_add(table);
	table_text(table, 0, what);
	table_number(table, 1, sorted[0]);
	for (unsigned i = 0; i < PERCENTS; i++)
		table_number(table, 2 + i, stats_percentile(sorted, n, percents[i]));
	table_number(table, COLUMNS - 1, sorted[n - 1]);
}

static void deploy_print(const struct deploy *deploy)
{
	bool hosts = deploy->cluster.n > 0;
	struct table table;

	table_open(&table, columns, COLUMNS);
	times_fill(&table, "start of the process to answer", deploy->starts, deploy->done);
	if (hosts)
		times_fill(&table, "a job's JOIN to its lane's answer", deploy->joins,
		           deploy->done);
	printf("a tribd, plane %s, %s, %u times\n\n", deploy->options.plane,
	       hosts ? "seen from another host" : "on loopback", deploy->done);
	table_print(&table, stdout);
	table_close(&table);
}

static trib_status deploy_write(const struct deploy *deploy, const char *path)
{
	struct json_writer json;
	trib_status status = json_start(&json, path);

	if (status != TRIB_OK)
		return status;
	json_put_text(&json, "plane", deploy->options.plane);
	json_put_numbers(&json, "start_s", "%.6f", deploy->starts, deploy->done);
	if (deploy->cluster.n > 0)
		json_put_numbers(&json, "join_s", "%.6f", deploy->joins, deploy->done);
	return json_finish(&json, path);
}

static trib_status deploy_show(const struct deploy *deploy)
{
	const char *path = deploy->options.json;

	if (!path || strcmp(path, "-") != 0)
		deploy_print(deploy);
	return path ? deploy_write(deploy, path) : TRIB_OK;
}

int bench_deploy_run(int argc, char **argv)
{
	static struct deploy deploy = { .options = { .repeats = 100, .plane = "udp" } };
	struct deploy_options *o = &deploy.options;
	const struct option_row rows[] = {
		{ "repeats", 0, OPTION_COUNT, &o->repeats, "N", "number of times (default 100)",
		  "20" },
		{ "plane", 0, OPTION_TEXT, &o->plane, "PLANE", "udp or xdp (default udp)", "xdp" },
		{ "json", 0, OPTION_JSON_FILE, &o->json, "FILE",
		  "write all times to FILE as JSON (-: standard output)", NULL },
		{ 0 },
	};
	const struct options options = {
		"trib bench deploy [OPTION]...",
		"Starts a tribd again and again on a host of a virtual cluster (without root: on\n"
		"loopback), and times how long it takes until another host has an answer from it.",
		"trib bench deploy --plane xdp",
		rows,
	};
	int code, first = options_parse(&options, argc, argv, &code);
	trib_status status;

	if (first < 0)
		return code;
	if (first < argc || o->repeats < 1 || o->repeats > REPEATS_MAX)
		return options_fail(&options,
		                    first < argc
		                            ? "unexpected argument; this command takes only options"
		                            : "--repeats is 1 to 100000");
	if (strcmp(o->plane, "udp") && strcmp(o->plane, "xdp"))
		return options_fail(&options, "--plane is udp or xdp");
	deploy.starts = calloc(2 * o->repeats, sizeof(*deploy.starts));
	if (!deploy.starts) {
		fprintf(stderr, "trib bench deploy: no memory for the times\n");
		return 1;
	}
	deploy.joins = deploy.starts + o->repeats;
	status = deploy_run(&deploy);
	if (status == TRIB_OK) {
		stats_median(deploy.starts, deploy.done); /* sorts them */
		stats_median(deploy.joins, deploy.done);
		status = deploy_show(&deploy);
	}
	free(deploy.starts);
	if (status != TRIB_OK)
		fprintf(stderr, "trib bench deploy: %s\n", trib_last_error());
	return status == TRIB_OK ? 0 : 1;
}
