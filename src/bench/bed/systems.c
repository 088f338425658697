/* SPDX-License-Identifier: Apache-2.0 */
/* The list of systems, and how those that are started rank by rank are built. */
#include "bench/bed/mpi_job.h"
#include "launch/local_daemon.h"
#include "launch/mpi_launch.h"
#include "launch/nccl_plugin.h"
#include "launch/tree_rate.h"
#include "wire/packet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- launchers ---- */

static bool launcher_find(const char *name)
{
	static const char *const folders[] = { "/usr/bin", "/usr/local/bin" };
	char path[256];

	for (unsigned i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], name);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* ---- Tributary ---- */

/* Does the variant choose the way, or the user? */
static bool names_way(const struct bench_variant *variant)
{
	for (const char *const *word = variant->words; *word; word++)
		if (strncmp(*word, "TRIB_WAY=", strlen("TRIB_WAY=")) == 0)
			return true;
	return getenv("TRIB_WAY") != NULL;
}

static void tributary_env(const struct bench_run *run, uint64_t cookie, const char *where,
                          struct word_list *env)
{
	const struct bench_options *o = run->options;

	words_add(env, "%s", where);
	words_add(env, "TRIB_COOKIE=%016" PRIx64, cookie);
	words_add(env, "TRIB_PLANE=%s", run->system->plane);
	/* A user who asks for a plane or for trees wants to see those. */
	if ((o->n_trees || strcmp(run->system->plane, "udp") != 0) && !names_way(run->variant))
		words_add(env, "TRIB_WAY=aggregator");
	if (o->pool_bytes)
		words_add(env, "TRIB_POOL=%" PRIu64, o->pool_bytes);
	if (o->lanes)
		words_add(env, "TRIB_LANES=%" PRIu64, o->lanes);
	if (o->timeout_s > 0)
		words_add(env, "TRIB_TIMEOUT=%.9g", o->timeout_s);
	if (o->n_trees && run->system->trees && !getenv("TRIB_RATE"))
		words_add(
			env, "TRIB_RATE=%" PRIu64,
			layout_rate(run->system->trees, &run->place->cluster, run->place->workers));
}

/*
 * Chooses ports for this run (tribd takes one for each lane), and writes where workers find
 * them.
 */
static trib_status sites_place(const struct bench_run *run, struct tree_layout *trees, char *where,
                               size_t room)
{
	char text[LAYOUT_TEXT];

	for (unsigned i = 0; i < trees->n_sites; i++)
		if (!trees->sites[i].port)
			trees->sites[i].port = run->port + i * WIRE_LANES_MAX;
	if (run->options->n_trees == 0) {
		snprintf(where, room, "TRIB_AGGREGATOR=%s:%u", trees->sites[0].address,
		         trees->sites[0].port);
		return TRIB_OK;
	}
	if (layout_text(trees, text) != TRIB_OK)
		return TRIB_ERR_ARGUMENT;
	snprintf(where, room, "TRIB_TREES=%s", text);
	return TRIB_OK;
}

static void ranks_add(const struct bench_run *run, uint64_t cookie, const char *where,
                      struct bench_job *job)
{
	for (unsigned rank = 0; rank < run->place->workers; rank++) {
		struct bench_task *task = job_task(job, run, (int)rank);

		job_program_words(run, &task->argv);
		tributary_env(run, cookie, where, &task->env);
		for (const char *const *word = run->variant->words; *word; word++)
			words_add(&task->env, "%s", *word);
	}
}

/* Adds the aggregators. `where` says how ranks find them. */
static trib_status aggregators_add(const struct bench_run *run, uint64_t cookie, char *where,
                                   size_t room, struct bench_job *job)
{
	static struct tree_layout trees; /* too large for a stack */
	char daemon[4096];

	trees = *run->system->trees;
	if (sites_place(run, &trees, where, room) != TRIB_OK)
		return TRIB_ERR_ARGUMENT;
	daemon_find(daemon, sizeof(daemon));
	for (unsigned i = 0; i < trees.n_sites; i++) {
		const struct tree_site *site = &trees.sites[i];
		struct bench_task *task = job_service(job, run, site->host, site->name);

		words_add(&task->argv, "%s", daemon);
		words_add(&task->argv, "--listen");
		words_add(&task->argv, "%s:%u", site->address, site->port);
		words_add(&task->argv, "--plane");
		words_add(&task->argv, "%s", run->system->plane);
		words_add(&task->argv,
		          "--http"); /* the default port is left to daemons that stay */
		words_add(&task->argv, "off");
		tributary_env(run, cookie, where, &task->env);
	}
	return TRIB_OK;
}

static trib_status cookie_draw(uint64_t *cookie)
{
	if (getrandom(cookie, sizeof(*cookie), 0) != (ssize_t)sizeof(*cookie))
		return status_fail_errno("cannot draw a random cookie");
	return TRIB_OK;
}

static trib_status tributary_prepare(const struct bench_run *run, struct bench_job *job)
{
	char where[LAYOUT_TEXT + 32];
	uint64_t cookie;
	trib_status status = cookie_draw(&cookie);

	if (status == TRIB_OK)
		status = aggregators_add(run, cookie, where, sizeof(where), job);
	if (status == TRIB_OK)
		ranks_add(run, cookie, where, job);
	return status;
}

/* No aggregator: ranks meet at the first one. */
static trib_status around_prepare(const struct bench_run *run, struct bench_job *job)
{
	char where[64];
	uint64_t cookie;
	trib_status status = cookie_draw(&cookie);

	snprintf(where, sizeof(where), "TRIB_RENDEZVOUS=%s:%u", run_address(run, 0), run->port);
	if (status == TRIB_OK)
		ranks_add(run, cookie, where, job);
	return status;
}

/* ---- Open MPI, its collectives by Tributary ---- */

/* Every rank preloads the adapter. */
static trib_status preloaded(const struct bench_run *run, struct word_list *env,
                             struct bench_job *job)
{
	trib_status status;
	char adapter[4096];

	if (!mpi_adapter_find("openmpi", adapter, sizeof(adapter)))
		status = status_fail(TRIB_ERR_CONFIG, "libtribmpi-openmpi.so was not built");
	else
		status = TRIB_OK;
	words_add(env, "LD_PRELOAD=%s", adapter);
	if (status == TRIB_OK)
		status = openmpi_prepare_with(run, job, env);
	words_free(env);
	return status;
}

static trib_status adapter_prepare(const struct bench_run *run, struct bench_job *job)
{
	char where[LAYOUT_TEXT + 32];
	struct word_list env = { 0 };
	uint64_t cookie;
	trib_status status = cookie_draw(&cookie);

	if (status == TRIB_OK)
		status = aggregators_add(run, cookie, where, sizeof(where), job);
	if (status != TRIB_OK)
		return status;
	tributary_env(run, cookie, where, &env);
	words_add(&env, "TRIB_MPI=on"); /* an error if it cannot be used */
	return preloaded(run, &env, job);
}

static trib_status adapter_around_prepare(const struct bench_run *run, struct bench_job *job)
{
	struct word_list env = { 0 };

	return preloaded(run, &env, job);
}

/* ---- NCCL's allreduces over our plugin ---- */

/* Ranks meet at the first one, as those of NCCL do. */
static void nccl_words(const struct bench_run *run, const char *algorithm, struct bench_job *job)
{
	char plugin[4096];

	nccl_plugin_find(plugin, sizeof(plugin));
	for (unsigned i = 0; i < job->n; i++) {
		struct bench_task *task = &job->tasks[i];

		if (task->service)
			continue;
		words_add_option(&task->argv, "--algorithm", algorithm);
		words_add(&task->env, "NCCL_NET_PLUGIN=%s", plugin);
		words_add(&task->env, "MASTER_ADDR=%s", run_address(run, 0));
		words_add(&task->env, "MASTER_PORT=%u", run->port);
	}
}

static trib_status nccl_tree_prepare(const struct bench_run *run, struct bench_job *job)
{
	trib_status status = tributary_prepare(run, job);

	if (status == TRIB_OK)
		nccl_words(run, "collnet", job);
	return status;
}

static trib_status nccl_ring_prepare(const struct bench_run *run, struct bench_job *job)
{
	for (unsigned rank = 0; rank < run->place->workers; rank++)
		job_program_words(run, &job_task(job, run, (int)rank)->argv);
	nccl_words(run, "ring", job);
	return TRIB_OK;
}

/* ---- a parameter server ---- */

static trib_status ps_prepare(const struct bench_run *run, struct bench_job *job)
{
	struct bench_task *task = job_service(job, run, run_host(run, -1), "server");
	char program[4096];

	if (!bench_program_find(run->system->program, program, sizeof(program)))
		return status_fail(TRIB_ERR_CONFIG, "the program %s was not found",
		                   run->system->program);
	words_add(&task->argv, "%s", program);
	words_add(&task->argv, "--serve");
	words_add(&task->argv, "%u", run->place->workers);
	words_add(&task->env, "PS_SERVER=%s:%u", run_address(run, -1), run->port);
	for (unsigned rank = 0; rank < run->place->workers; rank++) {
		task = job_task(job, run, (int)rank);
		job_program_words(run, &task->argv);
		words_add(&task->env, "PS_SERVER=%s:%u", run_address(run, -1), run->port);
	}
	return TRIB_OK;
}

/* Runs the same server at each node of a tree. */
static trib_status tcp_agg_prepare(const struct bench_run *run, struct bench_job *job)
{
	const struct tree_layout *trees = run->system->trees;
	const struct tree *tree = &trees->forest.trees[0];
	char program[4096];

	if (trees->forest.n_trees > 1)
		return status_fail(TRIB_ERR_ARGUMENT, "tcp-agg runs on one tree, not on several");
	if (!bench_program_find(run->system->program, program, sizeof(program)))
		return status_fail(TRIB_ERR_CONFIG, "the program %s was not found",
		                   run->system->program);
	for (unsigned i = 0; i < tree->n_nodes; i++) {
		const struct tree_site *site = layout_site(trees, tree->nodes[i].name), *parent;
		struct bench_task *task = job_service(job, run, site->host, site->name);

		words_add(&task->argv, "%s", program);
		words_add(&task->argv, "--serve");
		words_add(&task->argv, "%u", tree_children(tree, (int)i));
		words_add(&task->env, "PS_SERVER=%s:%u", site->address, run->port + i);
		if (tree->nodes[i].parent < 0)
			continue;
		parent = layout_site(trees, tree->nodes[tree->nodes[i].parent].name);
		words_add(&task->env, "PS_PARENT=%s:%u", parent->address,
		          run->port + (unsigned)tree->nodes[i].parent);
	}
	for (unsigned rank = 0; rank < run->place->workers; rank++) {
		struct bench_task *task = job_task(job, run, (int)rank);
		unsigned leaf = (unsigned)tree_leaf(tree, rank);

		job_program_words(run, &task->argv);
		words_add(&task->env, "PS_SERVER=%s:%u",
		          layout_site(trees, tree->nodes[leaf].name)->address, run->port + leaf);
	}
	return TRIB_OK;
}

/* ---- ring and Gloo ---- */

static trib_status ring_prepare(const struct bench_run *run, struct bench_job *job)
{
	char hosts[CLUSTER_HOSTS_MAX * 48] = "RING_HOSTS=";

	for (unsigned rank = 0; rank < run->place->workers; rank++) {
		size_t used = strlen(hosts);

		snprintf(hosts + used, sizeof(hosts) - used, "%s%s:%u", rank ? "," : "",
		         run_address(run, (int)rank), run->port + rank);
	}
	for (unsigned rank = 0; rank < run->place->workers; rank++) {
		struct bench_task *task = job_task(job, run, (int)rank);

		job_program_words(run, &task->argv);
		words_add(&task->env, "%s", hosts);
	}
	return TRIB_OK;
}

static const struct bench_variant gloo_variants[] = {
	{ .name = "ring", .words = { "--algorithm", "ring" } },
	{ .name = "ring chunked", .words = { "--algorithm", "ring_chunked" } },
	{ .name = "halving doubling", .words = { "--algorithm", "halving_doubling" } },
	{ 0 },
};

/* Gloo's older algorithms, which are objects, sum no 16-bit floats here. */
static const struct bench_variant gloo_short_variants[] = {
	{ .name = "ring", .words = { "--algorithm", "ring" } },
	{ .name = "bcube", .words = { "--algorithm", "bcube" } },
	{ 0 },
};

static const struct bench_variant gloo_scatter[] = {
	{ .name = "halving doubling" },
	{ 0 },
};

static trib_status gloo_prepare(const struct bench_run *run, struct bench_job *job)
{
	/* All hosts share this machine's files, so ranks can meet in a folder. */
	if (job_folder(job) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	for (unsigned rank = 0; rank < run->place->workers; rank++) {
		struct bench_task *task = job_task(job, run, (int)rank);

		job_program_words(run, &task->argv);
		for (const char *const *word = run->variant->words; *word; word++)
			words_add(&task->argv, "%s", *word);
		words_add(&task->env, "GLOO_ADDRESS=%s", run_address(run, (int)rank));
		words_add(&task->env, "GLOO_STORE=%s", job->folder);
	}
	return TRIB_OK;
}

/* ---- the table ---- */

const struct bench_variant bench_plain_variants[] = { { .name = "" }, { 0 } };
static const struct bench_variant no_ring[] = {
	{ .name = "", .words = { "TRIB_RING=off" } },
	{ 0 },
};

#define SAME(algorithms) \
	.variants = (algorithms), .scatter_variants = (algorithms), .gather_variants = (algorithms)
#define OURS(label, way)                                                                          \
	{                                                                                         \
		.name = (label), .plane = (way), .program = "trib_allreduce", .aggregates = true, \
		SAME(bench_plain_variants), .prepare = tributary_prepare                          \
	}
#define MPI(label, own, all)                                                                  \
	{                                                                                     \
		.name = (label), .plane = "tcp", .program = #own, .launcher = "mpirun." #own, \
		.tuned = (all), .variants = bench_##own##_variants,                           \
		.scatter_variants = bench_##own##_scatter,                                    \
		.gather_variants = bench_##own##_gather, .prepare = own##_prepare             \
	}

#define ADAPTER(label, has_aggregator, how)                                   \
	{                                                                     \
		.name = (label), .plane = "udp", .program = "openmpi",        \
		.launcher = "mpirun.openmpi", .aggregates = (has_aggregator), \
		SAME(bench_plain_variants), .prepare = (how)                  \
	}

static const struct bench_system systems[] = {
	OURS("tributary", "udp"),
	OURS("trib-xdp", "xdp"),
	OURS("trib-tcp", "tcp"),
	{ .name = "trib-star",
	  .plane = "udp",
	  .program = "trib_allreduce",
	  .aggregates = true,
	  .aggregates_all = true,
	  SAME(no_ring),
	  .prepare = tributary_prepare },
	{ .name = "trib-ring",
	  .plane = "udp",
	  .program = "trib_allreduce",
	  SAME(bench_plain_variants),
	  .prepare = around_prepare },
	{ .name = "nccl-collnet",
	  .plane = "udp",
	  .program = "nccl",
	  .aggregates = true,
	  .variants = bench_plain_variants,
	  .prepare = nccl_tree_prepare },
	{ .name = "nccl-ring",
	  .plane = "tcp",
	  .program = "nccl",
	  .variants = bench_plain_variants,
	  .prepare = nccl_ring_prepare },
	{ .name = "ring",
	  .plane = "tcp",
	  .program = "ring",
	  SAME(bench_plain_variants),
	  .prepare = ring_prepare },
	{ .name = "ps",
	  .plane = "tcp",
	  .program = "ps",
	  .aggregates = true,
	  .variants = bench_plain_variants,
	  .prepare = ps_prepare },
	{ .name = "tcp-agg",
	  .plane = "tcp",
	  .program = "ps",
	  .aggregates = true,
	  .variants = bench_plain_variants,
	  .prepare = tcp_agg_prepare },
	{ .name = "gloo",
	  .plane = "tcp",
	  .program = "gloo",
	  .tuned = true,
	  .variants = gloo_variants,
	  .scatter_variants = gloo_scatter,
	  .gather_variants = bench_plain_variants,
	  .prepare = gloo_prepare },
	MPI("openmpi", openmpi, true),
	MPI("openmpi-default", openmpi, false),
	MPI("mpich", mpich, true),
	ADAPTER("mpi-trib", true, adapter_prepare),
	ADAPTER("mpi-trib-ring", false, adapter_around_prepare),
};

#define SYSTEMS_N (sizeof(systems) / sizeof(*systems))

const struct bench_system *bench_system_find(const char *name, size_t length)
{
	for (unsigned i = 0; i < SYSTEMS_N; i++) {
		if (strlen(systems[i].name) == length && memcmp(systems[i].name, name, length) == 0)
			return &systems[i];
	}
	return NULL;
}

const char *bench_system_missing(const struct bench_system *system)
{
	static char why[128];
	char path[4096];

	if (!bench_program_find(system->program, path, sizeof(path)))
		snprintf(why, sizeof(why), "bench/peers/%s was not built", system->program);
	else if (system->launcher && !launcher_find(system->launcher))
		snprintf(why, sizeof(why), "%s is not installed", system->launcher);
	else
		return NULL;
	return why;
}

bool bench_system_is_ours(const struct bench_system *system)
{
	return system->prepare == tributary_prepare || system->prepare == around_prepare;
}

bool bench_system_has_trees(const struct bench_system *system)
{
	return system->prepare == tributary_prepare || system->prepare == nccl_tree_prepare ||
	       system->prepare == tcp_agg_prepare || system->prepare == adapter_prepare;
}

const struct bench_variant *bench_system_variants(const struct bench_system *system,
                                                  const struct bench_options *options)
{
	bool is_short = strcmp(options->type, "f16") == 0 || strcmp(options->type, "bf16") == 0;
	bool is_gloo = system->variants == gloo_variants;

	if (options->collective == BENCH_REDUCE_SCATTER)
		return is_short && is_gloo ? NULL : system->scatter_variants;
	if (options->collective == BENCH_ALLGATHER)
		return system->gather_variants;
	return is_short && is_gloo ? gloo_short_variants : system->variants;
}

const char *bench_collective_name(enum bench_collective collective)
{
	static const char *const names[] = { [BENCH_ALLREDUCE] = "allreduce",
		                             [BENCH_REDUCE_SCATTER] = "reduce-scatter",
		                             [BENCH_ALLGATHER] = "allgather" };

	return names[collective];
}

void bench_name_text(const struct bench_result *result, char *out, size_t room)
{
	bool shown = result->system->tuned && result->variant->name[0];

	snprintf(out, room, shown ? "%s (%s)" : "%s", result->system->name,
	         shown ? result->variant->name : "");
}
