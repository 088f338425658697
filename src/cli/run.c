/* SPDX-License-Identifier: Apache-2.0 */
#include "base/settings.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/options.h"
#include "net/accept.h"
#include "wire/packet.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define WORKERS_MAX WIRE_CHILDREN_MAX
#define ENV_MAX 11
#define ENV_BYTES 320
#define PORT_TRIES 50

/* What tribd is told, and what the workers are. */
static const struct plane_row {
	const char *name, *workers;
} planes[] = {
	{ "udp", "udp" },
	{ "xdp", "udp" },
	{ "tcp", "tcp" },
};

struct run_options {
	uint64_t workers;
	const char *net, *aggregator, *plane_name;
	const struct plane_row *plane;
	double timeout_s;
	uint64_t pool_bytes, lanes;
	bool pin;
	char **command;
};

/* What one task needs to live as long as it runs. */
struct run_slot {
	char label[32];
	char texts[ENV_MAX][ENV_BYTES];
	char *env[ENV_MAX + 1];
	unsigned n_env;
};

struct run {
	struct run_options options;
	struct cluster cluster;
	char address[272]; /* the aggregator's, host:port */
	char daemon[512];
	char *daemon_argv[8], threads[8], plane[8];
	struct run_slot *slots;
	struct launch_task *tasks;
	struct accepted accepted; /* until we end */
	unsigned n;
	uint64_t cookie, job;
};

static void __attribute__((format(printf, 2, 3)))
env_add(struct run_slot *slot, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(slot->texts[slot->n_env], ENV_BYTES, format, args);
	va_end(args);
	slot->env[slot->n_env] = slot->texts[slot->n_env];
	slot->n_env++;
}

/* What all of a job share. What was not asked for comes from this process's own environment. */
static void env_add_common(const struct run *run, struct run_slot *slot)
{
	const struct run_options *o = &run->options;

	env_add(slot, "TRIB_AGGREGATOR=%s", run->address);
	env_add(slot, "TRIB_SIZE=%" PRIu64, o->workers);
	env_add(slot, "TRIB_JOB=%" PRIu64, run->job);
	env_add(slot, "TRIB_COOKIE=%016" PRIx64, run->cookie);
	env_add(slot, "TRIB_PLANE=%s", o->plane->workers);
	if (o->timeout_s > 0)
		env_add(slot, "TRIB_TIMEOUT=%.9g", o->timeout_s);
	if (o->pool_bytes)
		env_add(slot, "TRIB_POOL=%" PRIu64, o->pool_bytes);
	if (o->lanes)
		env_add(slot, "TRIB_LANES=%" PRIu64, o->lanes);
}

/* A secret and a job of its own, unless the user has named them. */
static trib_status identity_choose(struct run *run)
{
	uint16_t random_job;
	const char *origin;

	if (setting_count(SETTING_COOKIE, &run->cookie) != TRIB_OK ||
	    setting_count(SETTING_JOB, &run->job) != TRIB_OK)
		return TRIB_ERR_CONFIG;
	if (!run->cookie && getrandom(&run->cookie, sizeof(run->cookie), 0) < 0)
		return status_fail_errno("cannot draw a random cookie");
	setting_text(SETTING_JOB, &origin);
	/* Others may run their jobs at an aggregator that is not ours. */
	if (run->options.aggregator && strcmp(origin, "default") == 0 &&
	    getrandom(&random_job, sizeof(random_job), 0) > 0)
		run->job = random_job;
	return TRIB_OK;
}

/* ---- the aggregator ---- */

/* tribd as it was built or installed with this trib, else whatever PATH has. */
static void daemon_find(char *out, size_t room)
{
	ssize_t n = readlink("/proc/self/exe", out, room - 1);
	char *slash;

	if (n > 0) {
		out[n] = '\0';
		slash = strrchr(out, '/');
		if (slash && (size_t)(slash - out) + sizeof("/tribd") <= room) {
			strcpy(slash, "/tribd");
			if (access(out, X_OK) == 0)
				return;
		}
	}
	snprintf(out, room, "tribd");
}

struct port_search {
	const struct cluster_host *host;
	const char *address;
	bool tcp;
	unsigned port; /* 0: none found */
};

/* A socket on the port, or on any with 0; -1: it is taken. */
static int port_take(const char *address, int type, unsigned port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int one = 1, fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, address, &at.sin_addr);
	if (fd >= 0 && type == SOCK_STREAM) /* as tribd does */
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Are the ports of all lanes free for connections too? */
static bool ports_are_free(const char *address, unsigned port)
{
	for (unsigned i = 0; i < WIRE_LANES_MAX; i++) {
		int fd = port_take(address, SOCK_STREAM, port + i);

		if (fd < 0)
			return false;
		close(fd);
	}
	return true;
}

/* In a thread, since a namespace, once entered, is not left again. */
static void *port_search(void *context)
{
	struct port_search *search = context;

	if (search->host && cluster_enter(search->host) != TRIB_OK)
		return NULL;
	for (unsigned i = 0; i < PORT_TRIES && !search->port; i++) {
		struct sockaddr_in at = { 0 };
		socklen_t length = sizeof(at);
		int fd = port_take(search->address, SOCK_DGRAM, 0);

		if (fd < 0)
			return NULL;
		if (getsockname(fd, (struct sockaddr *)&at, &length) == 0 &&
		    (!search->tcp || ports_are_free(search->address, ntohs(at.sin_port))))
			search->port = ntohs(at.sin_port);
		close(fd);
	}
	return NULL;
}

static unsigned port_find(const struct cluster_host *host, const char *address, bool tcp)
{
	struct port_search search = { host, address, tcp, 0 };
	pthread_t thread;

	if (pthread_create(&thread, NULL, port_search, &search) != 0)
		return 0;
	pthread_join(thread, NULL);
	return search.port;
}

/* The first server of the cluster, else its first worker. NULL without a cluster. */
static const struct cluster_host *aggregator_host(const struct run *run)
{
	for (unsigned i = 0; i < run->cluster.n; i++) {
		if (run->cluster.hosts[i].is_server)
			return &run->cluster.hosts[i];
	}
	return run->cluster.n ? &run->cluster.hosts[0] : NULL;
}

static trib_status aggregator_add(struct run *run)
{
	struct run_slot *slot = &run->slots[run->n];
	const struct cluster_host *host = aggregator_host(run);
	const char *address = host ? host->address : "127.0.0.1";
	bool tcp = strcmp(run->options.plane->workers, "tcp") == 0;
	unsigned port = port_find(host, address, tcp);

	if (!port)
		return status_fail(TRIB_ERR_SYSTEM, "there is no free port on %s", address);
	snprintf(run->address, sizeof(run->address), "%s:%u", address, port);
	daemon_find(run->daemon, sizeof(run->daemon));
	run->daemon_argv[0] = run->daemon;
	run->daemon_argv[1] = "--listen";
	run->daemon_argv[2] = run->address;
	run->daemon_argv[3] = "--threads";
	run->daemon_argv[4] = run->threads;
	run->daemon_argv[5] = "--plane";
	run->daemon_argv[6] = run->plane;
	snprintf(run->threads, sizeof(run->threads), "%u", WIRE_LANES_MAX);
	snprintf(run->plane, sizeof(run->plane), "%s", run->options.plane->name);
	env_add_common(run, slot);
	snprintf(slot->label, sizeof(slot->label), "aggregator");
	run->tasks[run->n++] = (struct launch_task){ .label = slot->label,
		                                     .host = host,
		                                     .argv = run->daemon_argv,
		                                     .env = slot->env,
		                                     .service = true,
		                                     .cpu = -1 };
	return TRIB_OK;
}

/* ---- the workers ---- */

static void workers_add(struct run *run)
{
	unsigned n_hosts = 0;

	while (n_hosts < run->cluster.n && !run->cluster.hosts[n_hosts].is_server)
		n_hosts++;
	for (unsigned rank = 0; rank < run->options.workers; rank++) {
		struct run_slot *slot = &run->slots[run->n];

		env_add(slot, "TRIB_RANK=%u", rank);
		env_add_common(run, slot);
		snprintf(slot->label, sizeof(slot->label), "rank %u", rank);
		run->tasks[run->n++] = (struct launch_task){
			.label = slot->label,
			.host = n_hosts ? &run->cluster.hosts[rank % n_hosts] : NULL,
			.argv = run->options.command,
			.env = slot->env,
			.cpu = -1,
		};
	}
}

/* One task after the other on the cores that this process may use. */
static void tasks_pin(struct run *run)
{
	int core = -1;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) == 0)
		return;
	for (unsigned i = 0; i < run->n; i++) {
		do {
			core = (core + 1) % CPU_SETSIZE;
		} while (!CPU_ISSET((unsigned)core, &set));
		run->tasks[i].cpu = core;
	}
}

static int run_all(struct run *run)
{
	struct launch_options launch = { .ready_word = "ready on" };
	struct launch_report report;

	if (run->options.aggregator)
		snprintf(run->address, sizeof(run->address), "%s", run->options.aggregator);
	else if (aggregator_add(run) != TRIB_OK)
		goto failed;
	if (run->cluster.n && !strcmp(run->options.plane->name, "xdp") &&
	    accept_frames(&run->cluster, &run->accepted) != TRIB_OK)
		fprintf(stderr, "trib run: %s\n", trib_last_error());
	workers_add(run);
	if (run->options.pin)
		tasks_pin(run);
	if (launch_all(run->tasks, run->n, &launch, &report) == TRIB_OK)
		return 0;
	if (report.exit_code) {
		fprintf(stderr, "trib run: %s\n", report.sentence);
		return report.exit_code;
	}
failed:
	fprintf(stderr, "trib run: %s\n", trib_last_error());
	return 1;
}

/* ---- the command line ---- */

static const struct plane_row *plane_find(const char *name)
{
	for (unsigned i = 0; i < sizeof(planes) / sizeof(*planes); i++) {
		if (strcmp(planes[i].name, name) == 0)
			return &planes[i];
	}
	return NULL;
}

static const char *options_wrong(const struct run_options *o)
{
	if (!o->workers)
		return "say how many workers with -n";
	if (o->workers > WORKERS_MAX)
		return "-n is 64 at most: one aggregator takes no more";
	if (!o->plane)
		return "--plane is udp, xdp or tcp";
	if (o->aggregator && (!strchr(o->aggregator, ':') || strlen(o->aggregator) > 256))
		return "--aggregator has to be HOST:PORT";
	if (o->lanes > WIRE_LANES_MAX)
		return "--lanes is 16 at most";
	if (!o->command[0])
		return "there is no command to run";
	return NULL;
}

int cli_run(int argc, char **argv)
{
	static struct run run;
	struct run_options *o = &run.options;
	const struct option_row rows[] = {
		{ "workers", 'n', OPTION_COUNT, &o->workers, "N", "how many workers to start",
		  "4" },
		{ "net", 0, OPTION_TEXT, &o->net, "NAME",
		  "on the hosts of this virtual cluster, in turn; else here", "trib" },
		{ "aggregator", 0, OPTION_TEXT, &o->aggregator, "HOST:PORT",
		  "use this one; else start a tribd (on the cluster's s1 or h1)", "10.0.0.9:7700" },
		{ "plane", 0, OPTION_TEXT, &o->plane_name, "PLANE",
		  "where sums are made: udp, xdp (in the kernel), or tcp to compare with (default: "
		  "TRIB_PLANE, udp)",
		  "xdp" },
		{ "timeout", 0, OPTION_SECONDS, &o->timeout_s, "S", "TRIB_TIMEOUT of the workers",
		  "30" },
		{ "pool", 0, OPTION_BYTES, &o->pool_bytes, "SIZE", "TRIB_POOL of the workers",
		  "64M" },
		{ "lanes", 0, OPTION_COUNT, &o->lanes, "N", "TRIB_LANES of all", "2" },
		{ "pin", 0, OPTION_FLAG, &o->pin, NULL,
		  "each process on a core of its own, in turn", NULL },
		{ 0 },
	};
	const struct options options = {
		"trib run [OPTION]... -- COMMAND [ARGUMENT]...",
		"Starts workers, and an aggregator where none is given; shows their output behind\n"
		"their names. When one fails, all are ended, and its exit code is the exit code.",
		"trib run -n 4 --net trib -- ./train --epochs 3",
		rows,
	};
	int code, first = options_parse(&options, argc, argv, &code);
	const char *wrong;

	if (first < 0)
		return code;
	o->command = argv + first;
	o->plane = plane_find(o->plane_name ? o->plane_name : setting_text(SETTING_PLANE, NULL));
	wrong = options_wrong(o);
	if (wrong)
		return options_fail(&options, "%s", wrong);
	if ((o->net && cluster_load(o->net, &run.cluster) != TRIB_OK) ||
	    identity_choose(&run) != TRIB_OK) {
		fprintf(stderr, "trib run: %s\n", trib_last_error());
		return 1;
	}
	run.slots = calloc(o->workers + 1, sizeof(*run.slots));
	run.tasks = calloc(o->workers + 1, sizeof(*run.tasks));
	code = run.slots && run.tasks ? run_all(&run) : 1;
	free(run.slots);
	free(run.tasks);
	return code;
}
