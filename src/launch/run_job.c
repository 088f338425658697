/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/run_job.h"

#include "base/log.h"
#include "base/settings.h"
#include "launch/local_daemon.h"
#include "launch/mpi_task.h"
#include "launch/nccl_plugin.h"
#include "launch/server_shards.h"
#include "launch/tree_rate.h"
#include "wire/packet.h"

#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define ENV_MAX (12 + NCCL_SETTINGS_MAX)
#define ENV_BYTES NCCL_SETTING_BYTES
#define SITE_TRIES 20

_Static_assert(RUN_WORKERS_MAX == WIRE_CHILDREN_MAX, "an aggregator has a child for each worker");

/* A plane: the name for tribd, and the name for workers. */
static const struct run_plane planes[] = {
	{ "auto", "udp" }, { "udp", "udp" }, { "xdp", "udp" },
	{ "tc", "udp" },   { "tcp", "tcp" }, { "pisa", "udp" },
};

/* Memory that a task needs as long as it runs. */
struct run_slot {
	char label[32];
	char texts[ENV_MAX][ENV_BYTES];
	char *env[ENV_MAX + 3]; /* NULL-ended; the last two entries are shared by all tasks */
	unsigned n_env;
	char address[64], *argv[10]; /* of an aggregator */
	cpu_set_t cores;
};

struct run {
	struct run_options options;
	struct cluster cluster;
	struct tree_layout trees;
	char where[LAYOUT_TEXT + 32]; /* TRIB_AGGREGATOR, TRIB_TREES or TRIB_RENDEZVOUS */
	char daemon[512], threads[8], plane[8];
	struct run_slot *slots;
	struct launch_task *tasks;
	struct accepted accepted; /* closed when this process ends */
	struct host_lease *lease;
	struct server_shards servers;
	struct mpi_task mpirun; /* with --mpi */
	unsigned n, nccl_port;  /* 0: not chosen yet */
	uint64_t cookie, job;
	bool is_placed; /* `where` is the user's: no aggregator is started */
	bool is_served; /* aggregators of the user are there, perhaps for other jobs, too */
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

/*
 * Environment of all tasks of a job. What was not given as an option comes from this process's
 * environment.
 */
static void env_add_common(struct run *run, struct run_slot *slot)
{
	const struct run_options *o = &run->options;

	env_add(slot, "TRIB_SIZE=%" PRIu64, o->workers);
	env_add(slot, "TRIB_JOB=%" PRIu64, run->job);
	env_add(slot, "TRIB_COOKIE=%016" PRIx64, run->cookie);
	env_add(slot, "TRIB_PLANE=%s", o->plane->workers);
	env_add(slot, "TRIB_TREES="); /* would win over `where` */
	if (o->ring) {
		env_add(slot, "TRIB_AGGREGATOR=");
		env_add(slot, "TRIB_CONTROLLER=");
	}
	if (o->timeout_s > 0)
		env_add(slot, "TRIB_TIMEOUT=%.9g", o->timeout_s);
	if (o->pool_bytes)
		env_add(slot, "TRIB_POOL=%" PRIu64, o->pool_bytes);
	if (o->lanes)
		env_add(slot, "TRIB_LANES=%" PRIu64, o->lanes);
	if (o->trees && !getenv("TRIB_RATE"))
		env_add(slot, "TRIB_RATE=%" PRIu64,
		        layout_rate(&run->trees, &run->cluster, (unsigned)o->workers));
	/* Too long for a copy in each task. */
	slot->env[slot->n_env] = run->where;
	if (run->servers.n)
		slot->env[slot->n_env + 1] = run->servers.where;
}

/*
 * Chooses a random cookie and job, unless the user has given them. Aggregators that are there
 * already could not know a random cookie: if the user has given none, they have none either.
 */
static trib_status identity_choose(struct run *run)
{
	uint16_t random_job;
	const char *origin;

	if (run->lease) {
		run->cookie = lease_cookie(run->lease);
		run->job = lease_job(run->lease);
		return TRIB_OK;
	}
	if (setting_count(SETTING_COOKIE, &run->cookie) != TRIB_OK ||
	    setting_count(SETTING_JOB, &run->job) != TRIB_OK)
		return TRIB_ERR_CONFIG;
	if (!run->cookie && !run->is_served && getrandom(&run->cookie, sizeof(run->cookie), 0) < 0)
		return status_fail_errno("cannot draw a random cookie");
	setting_text(SETTING_JOB, &origin);
	if (run->is_served && strcmp(origin, "default") == 0 &&
	    getrandom(&random_job, sizeof(random_job), 0) > 0)
		run->job = random_job;
	return TRIB_OK;
}

/* ---- the aggregators ---- */

static trib_status site_choose_port(struct tree_layout *trees, struct tree_site *site, bool tcp)
{
	for (unsigned tries = 0; !site->port && tries < SITE_TRIES; tries++) {
		unsigned port = daemon_port(site->host, site->address, tcp);

		for (const struct tree_site *other = trees->sites; port && other < site; other++)
			if (other->host == site->host &&
			    (port < other->port ? other->port - port : port - other->port) <
			            WIRE_LANES_MAX)
				port = 0;
		site->port = port;
	}
	if (site->port)
		return TRIB_OK;
	return status_fail(TRIB_ERR_SYSTEM, "there is no free port on %s", site->address);
}

static void aggregator_add(struct run *run, const struct tree_site *site)
{
	struct run_slot *slot = &run->slots[run->n];
	char **argv = slot->argv;

	snprintf(slot->address, sizeof(slot->address), "%s:%u", site->address, site->port);
	*argv++ = run->daemon;
	*argv++ = "--listen";
	*argv++ = slot->address;
	*argv++ = "--threads";
	*argv++ = run->threads;
	*argv++ = "--plane";
	*argv++ = run->plane;
	*argv++ = "--http"; /* the default port is left to daemons that stay */
	*argv++ = "off";
	*argv = NULL;
	env_add_common(run, slot);
	snprintf(slot->label, sizeof(slot->label), "%.15s%s%.12s", "aggregator",
	         run->trees.n_sites > 1 ? " " : "", run->trees.n_sites > 1 ? site->name : "");
	run->tasks[run->n++] = (struct launch_task){ .label = slot->label,
		                                     .host = site->host,
		                                     .argv = slot->argv,
		                                     .env = slot->env,
		                                     .service = true };
}

/* Without --trees it is one star, and workers get its address alone. */
static trib_status aggregators_place(struct run *run)
{
	bool tcp = strcmp(run->options.plane->workers, "tcp") == 0;
	trib_status status = TRIB_OK;

	for (unsigned i = 0; status == TRIB_OK && i < run->trees.n_sites; i++)
		status = site_choose_port(&run->trees, &run->trees.sites[i], tcp);
	if (status != TRIB_OK)
		return status;
	daemon_find(run->daemon, sizeof(run->daemon));
	snprintf(run->threads, sizeof(run->threads), "%u", WIRE_LANES_MAX);
	snprintf(run->plane, sizeof(run->plane), "%s", run->options.plane->name);
	if (run->options.trees) {
		snprintf(run->where, sizeof(run->where), "TRIB_TREES=");
		status = layout_text(&run->trees, run->where + strlen(run->where));
	} else {
		snprintf(run->where, sizeof(run->where), "TRIB_AGGREGATOR=%s:%u",
		         run->trees.sites[0].address, run->trees.sites[0].port);
	}
	return status;
}

/* No aggregator: the ranks meet at rank 0. */
static trib_status rendezvous_place(struct run *run)
{
	const struct cluster_host *host = run->cluster.n ? &run->cluster.hosts[0] : NULL;
	const char *address = host ? host->address : "127.0.0.1";
	unsigned port = daemon_port(host, address, true);

	if (!port)
		return status_fail(TRIB_ERR_SYSTEM, "there is no free port on %s", address);
	snprintf(run->where, sizeof(run->where), "TRIB_RENDEZVOUS=%s:%u", address, port);
	return TRIB_OK;
}

static void aggregators_add(struct run *run)
{
	for (unsigned i = 0; i < run->trees.n_sites; i++)
		aggregator_add(run, &run->trees.sites[i]);
}

/* ---- the parameter servers ---- */

/* Where hot rows may be summed: at the aggregators of the job, in their order. */
static void servers_aggregators(const struct run *run, char *out, size_t room)
{
	size_t used = 0;

	*out = '\0';
	if (run->lease || strcmp(run->options.plane->workers, "udp"))
		return;
	if (run->options.aggregator) {
		snprintf(out, room, "%s", run->options.aggregator);
		return;
	}
	for (unsigned i = 0; i < run->trees.n_sites && used + 64 < room; i++)
		used += (size_t)snprintf(out + used, room - used, "%s%.48s:%u", i ? "," : "",
		                         run->trees.sites[i].address, run->trees.sites[i].port);
}

static void servers_add(struct run *run)
{
	char aggregators[512];

	servers_aggregators(run, aggregators, sizeof(aggregators));
	shards_command(&run->servers, aggregators);
	for (unsigned i = 0; i < run->servers.n; i++) {
		struct server_shard *shard = &run->servers.shards[i];
		struct run_slot *slot = &run->slots[run->n];

		env_add_common(run, slot);
		run->tasks[run->n++] = (struct launch_task){ .label = shard->label,
			                                     .host = shard->host,
			                                     .argv = shard->argv,
			                                     .env = slot->env,
			                                     .service = true };
	}
}

/* ---- the workers ---- */

/* The host of a rank: where the controller has placed it, else the hosts in turn. */
static const struct cluster_host *worker_host(const struct run *run, unsigned rank,
                                              unsigned n_hosts)
{
	if (!run->lease)
		return n_hosts ? &run->cluster.hosts[rank % n_hosts] : NULL;
	for (unsigned i = 0; i < run->cluster.n; i++)
		if (!strcmp(run->cluster.hosts[i].address,
		            lease_address(run->lease,
		                          rank / (unsigned)run->options.request.per_host)))
			return &run->cluster.hosts[i];
	return NULL;
}

/* MPI's launcher starts the ranks. On one machine, MPI would use its memory instead of Tributary.
 */
static trib_status mpirun_add(struct run *run, unsigned n_hosts)
{
	struct run_slot *slot = &run->slots[run->n];
	const char *mpirun = run->options.mpirun;
	trib_status status;

	if (n_hosts > run->options.workers)
		n_hosts = (unsigned)run->options.workers;
	if (!n_hosts && !getenv("TRIB_MPI"))
		env_add(slot, "TRIB_MPI=on");
	env_add_common(run, slot);
	snprintf(slot->label, sizeof(slot->label), "mpirun");
	status = mpi_task_build(&run->mpirun, mpirun ? mpirun : "mpirun",
	                        (unsigned)run->options.workers, &run->cluster, n_hosts, slot->env,
	                        run->options.command);
	run->tasks[run->n++] =
		(struct launch_task){ .label = slot->label,
		                      .host = n_hosts ? &run->cluster.hosts[0] : NULL,
		                      .argv = run->mpirun.argv,
		                      .env = slot->env };
	return status;
}

static void env_add_nccl(struct run *run, struct run_slot *slot, unsigned rank, unsigned n_hosts)
{
	const struct cluster_host *first = worker_host(run, 0, n_hosts);
	struct nccl_job job = { .size = (unsigned)run->options.workers,
		                .address = first ? first->address : "127.0.0.1",
		                .is_local = !first };
	char texts[NCCL_SETTINGS_MAX][NCCL_SETTING_BYTES];
	unsigned n;

	if (!run->nccl_port)
		run->nccl_port = daemon_port(first, job.address, true);
	job.port = run->nccl_port;
	n = nccl_settings(&job, rank, texts);
	for (unsigned i = 0; i < n; i++)
		env_add(slot, "%s", texts[i]);
}

static trib_status workers_add(struct run *run)
{
	unsigned n_hosts = 0;

	while (n_hosts < run->cluster.n && !run->cluster.hosts[n_hosts].is_server)
		n_hosts++;
	if (run->options.mpi)
		return mpirun_add(run, n_hosts);
	for (unsigned rank = 0; rank < run->options.workers; rank++) {
		struct run_slot *slot = &run->slots[run->n];

		env_add(slot, "TRIB_RANK=%u", rank);
		if (run->options.nccl)
			env_add_nccl(run, slot, rank, n_hosts);
		env_add_common(run, slot);
		snprintf(slot->label, sizeof(slot->label), "rank %u", rank);
		run->tasks[run->n++] = (struct launch_task){
			.label = slot->label,
			.host = worker_host(run, rank, n_hosts),
			.argv = run->options.command,
			.env = slot->env,
		};
		if (run->lease && !run->tasks[run->n - 1].host)
			return status_fail(
				TRIB_ERR_CONFIG,
				"rank %u was placed on %s, which is not a host of the cluster %s",
				rank,
				lease_address(run->lease,
			                      rank / (unsigned)run->options.request.per_host),
				run->cluster.name);
	}
	return TRIB_OK;
}

/* Puts tasks one after the other on the cores that this process may use. */
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
		CPU_ZERO(&run->slots[i].cores);
		CPU_SET((unsigned)core, &run->slots[i].cores);
		run->tasks[i].cores = &run->slots[i].cores;
	}
}

/* Aggregators and servers are the first tasks, then come the ranks in order. */
static void line_pass(void *context, unsigned task, const char *line, bool is_stderr)
{
	const struct run *run = context;
	unsigned services = run->n - (unsigned)run->options.workers;

	run->options.line(run->options.context, task < services ? -1 : (int)(task - services), line,
	                  is_stderr);
}

/* Aggregators to start, or where the ranks find what is there. */
static trib_status run_place(struct run *run)
{
	if (run->is_placed)
		return TRIB_OK;
	return run->options.ring ? rendezvous_place(run) : aggregators_place(run);
}

static int run_all(struct run *run)
{
	struct launch_options launch = { .ready_word = "ready on", .context = run };
	struct launch_report report;

	if (run_place(run) != TRIB_OK)
		goto failed;
	if (run->options.servers &&
	    shards_plan(&run->servers, (unsigned)run->options.servers, run->options.server_dir,
	                &run->cluster, &run->trees) != TRIB_OK)
		goto failed;
	/* All tasks hear where the servers are. */
	if (!run->is_placed && !run->options.ring)
		aggregators_add(run);
	servers_add(run);
	if (!run->lease && run->cluster.n && !strcmp(run->options.plane->name, "xdp") &&
	    layout_accept(&run->trees, &run->cluster, false, &run->accepted) != TRIB_OK)
		fprintf(stderr, "%s: %s\n", run->options.request.command, trib_last_error());
	if (workers_add(run) != TRIB_OK)
		goto failed;
	if (run->options.pin)
		tasks_pin(run);
	if (run->options.line)
		launch.line = line_pass;
	if (launch_all(run->tasks, run->n, &launch, &report) == TRIB_OK)
		return 0;
	if (report.exit_code) {
		fprintf(stderr, "%s: %s\n", run->options.request.command, report.sentence);
		return report.exit_code;
	}
failed:
	fprintf(stderr, "%s: %s\n", run->options.request.command, trib_last_error());
	return 1;
}

const struct run_plane *run_plane_find(const char *name)
{
	for (unsigned i = 0; i < sizeof(planes) / sizeof(*planes); i++) {
		if (strcmp(planes[i].name, name) == 0)
			return &planes[i];
	}
	return NULL;
}

static trib_status hosts_lease(const struct lease_request *request, struct host_lease **out)
{
	return lease_start ? lease_start(request, out)
	                   : status_fail(TRIB_ERR_CONFIG,
	                                 "--hosts needs the control plane, which was left out of "
	                                 "this build");
}

/* The controller plans only jobs that it knows. Says so where a user might expect it. */
static void controller_unused(const struct run_options *o)
{
	if (setting_text(SETTING_CONTROLLER, NULL))
		log_notice("TRIB_CONTROLLER is not used: this job gets an aggregator of its own; "
		           "for the controller, run eval \"$(trib job new --size %" PRIu64
		           ")\" first",
		           o->workers);
}

/* Sets `where` if the job sums at a place that options or settings name. Options win. */
static void place_read(struct run *run)
{
	static const enum setting_id places[] = { SETTING_TREES, SETTING_AGGREGATOR,
		                                  SETTING_RENDEZVOUS };
	struct run_options *o = &run->options;
	const char *text = run->lease ? lease_controller(run->lease) : o->aggregator;
	enum setting_id id = SETTING_AGGREGATOR;

	for (unsigned i = 0; !text && !o->trees && !o->ring && i < 3; i++) {
		id = places[i];
		text = setting_text(id, NULL);
	}
	run->is_placed = text != NULL;
	if (!text && !o->trees && !o->ring)
		controller_unused(o);
	if (!text)
		return;
	run->is_served = id != SETTING_RENDEZVOUS;
	snprintf(run->where, sizeof(run->where), "%s=%s", settings[id].name, text);
	if (id == SETTING_AGGREGATOR && !run->lease)
		o->aggregator = text;
}

/* Finds the cluster, leases hosts, and places the aggregators. */
static trib_status run_prepare(struct run *run)
{
	struct run_options *o = &run->options;
	trib_status status = TRIB_OK;

	if (o->request.hosts)
		o->workers = o->request.hosts * o->request.per_host;
	if (o->net)
		status = cluster_load(o->net, &run->cluster);
	if (status == TRIB_OK && o->request.hosts)
		status = hosts_lease(&o->request, &run->lease);
	if (status == TRIB_OK)
		place_read(run);
	if (status == TRIB_OK)
		status = layout_read(&run->trees, o->trees ? o->trees : "star", &run->cluster,
		                     (unsigned)o->workers);
	return status == TRIB_OK ? identity_choose(run) : status;
}

int run_job(const struct run_options *options)
{
	struct run *run = calloc(1, sizeof(*run));
	int code = 1;

	if (!run) {
		fprintf(stderr, "%s: no memory\n", options->request.command);
		return 1;
	}
	run->options = *options;
	if (run_prepare(run) != TRIB_OK) {
		fprintf(stderr, "%s: %s\n", options->request.command, trib_last_error());
	} else {
		size_t most = run->options.workers + LAYOUT_SITES_MAX + SHARDS_RUN_MAX;

		run->slots = calloc(most, sizeof(*run->slots));
		run->tasks = calloc(most, sizeof(*run->tasks));
		code = run->slots && run->tasks ? run_all(run) : 1;
	}
	shards_end(&run->servers);
	mpi_task_end(&run->mpirun);
	if (run->lease)
		lease_end(run->lease);
	free(run->slots);
	free(run->tasks);
	free(run);
	return code;
}
