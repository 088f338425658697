/* SPDX-License-Identifier: Apache-2.0 */
/* The systems, and how those that are started rank by rank are. */
#include "cli/bench_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#ifndef TRIB_LIBEXECDIR
#define TRIB_LIBEXECDIR "/usr/libexec/tributary"
#endif

/* ---- programs ---- */

/* `name` in a folder given from the one that trib is in; `out` gets its path without any "..". */
static bool beside_find(const char *folder, const char *name, char *out, size_t room)
{
	char self[2048], path[4096], *slash, *plain;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return false;
	*slash = '\0';
	snprintf(path, sizeof(path), "%s/%s%s", self, folder, name);
	plain = access(path, X_OK) == 0 ? realpath(path, NULL) : NULL;
	if (!plain)
		return false;
	snprintf(out, room, "%s", plain);
	free(plain);
	return true;
}

bool bench_program_find(const char *name, char *out, size_t room)
{
	/* trib is in build/src or build/src/cli, or installed in bin. */
	static const char *const folders[] = { "../bench/peers/", "../../bench/peers/",
		                               "../libexec/tributary/" };

	for (unsigned i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		if (beside_find(folders[i], name, out, room))
			return true;
	}
	snprintf(out, room, TRIB_LIBEXECDIR "/%s", name);
	return access(out, X_OK) == 0;
}

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

static void tributary_env(const struct bench_run *run, uint64_t cookie, struct bench_words *env)
{
	const struct bench_options *o = run->options;

	words_add(env, "TRIB_AGGREGATOR=%s:%u", run_address(run, -1), run->port);
	words_add(env, "TRIB_COOKIE=%016" PRIx64, cookie);
	words_add(env, "TRIB_PLANE=%s", run->system->plane);
	if (o->pool_bytes)
		words_add(env, "TRIB_POOL=%" PRIu64, o->pool_bytes);
	if (o->lanes)
		words_add(env, "TRIB_LANES=%" PRIu64, o->lanes);
	if (o->timeout_s > 0)
		words_add(env, "TRIB_TIMEOUT=%.9g", o->timeout_s);
}

static trib_status tributary_prepare(const struct bench_run *run, struct bench_job *job)
{
	struct bench_task *task = job_task(job, run, -1);
	char daemon[4096];
	uint64_t cookie;

	if (getrandom(&cookie, sizeof(cookie), 0) != (ssize_t)sizeof(cookie))
		return status_fail_errno("cannot draw a random cookie");
	if (!beside_find("", "tribd", daemon, sizeof(daemon)))
		snprintf(daemon, sizeof(daemon), "tribd");
	task->service = true;
	job->ready_word = "ready on";
	words_add(&task->argv, "%s", daemon);
	words_add(&task->argv, "--listen");
	words_add(&task->argv, "%s:%u", run_address(run, -1), run->port);
	words_add(&task->argv, "--plane");
	words_add(&task->argv, "%s", run->system->plane);
	tributary_env(run, cookie, &task->env);
	for (unsigned rank = 0; rank < run->place->workers; rank++) {
		task = job_task(job, run, (int)rank);
		job_program_words(run, &task->argv);
		tributary_env(run, cookie, &task->env);
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
	{ "ring", { "--algorithm", "ring" } },
	{ "ring chunked", { "--algorithm", "ring_chunked" } },
	{ "halving doubling", { "--algorithm", "halving_doubling" } },
	{ 0 },
};

static trib_status gloo_prepare(const struct bench_run *run, struct bench_job *job)
{
	/* All hosts have this machine's files, so ranks can meet in a folder. */
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

static const struct bench_variant plain[] = { { "", { NULL } }, { 0 } };

static const struct bench_system systems[] = {
	{ "tributary", "udp", "trib_allreduce", NULL, true, false, plain, tributary_prepare },
	{ "trib-xdp", "xdp", "trib_allreduce", NULL, true, false, plain, tributary_prepare },
	{ "trib-tcp", "tcp", "trib_allreduce", NULL, true, false, plain, tributary_prepare },
	{ "ring", "tcp", "ring", NULL, false, false, plain, ring_prepare },
	{ "gloo", "tcp", "gloo", NULL, false, true, gloo_variants, gloo_prepare },
	{ "openmpi", "tcp", "openmpi", "mpirun.openmpi", false, true, bench_openmpi_variants,
	  openmpi_prepare },
	{ "openmpi-default", "tcp", "openmpi", "mpirun.openmpi", false, false,
	  bench_openmpi_variants, openmpi_prepare },
	{ "mpich", "tcp", "mpich", "mpirun.mpich", false, true, bench_mpich_variants,
	  mpich_prepare },
};

#define SYSTEMS_N (sizeof(systems) / sizeof(*systems))

static const struct bench_system *system_find(const char *name, size_t length)
{
	for (unsigned i = 0; i < SYSTEMS_N; i++) {
		if (strlen(systems[i].name) == length && memcmp(systems[i].name, name, length) == 0)
			return &systems[i];
	}
	return NULL;
}

/* Why a system cannot run; NULL: it can. */
static const char *system_missing(const struct bench_system *system)
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

static void system_add(struct bench_report *report, const struct bench_system *system)
{
	const char *why = system_missing(system);
	size_t used = strlen(report->left_out);

	for (unsigned i = 0; i < report->n_systems; i++) {
		if (report->systems[i] == system)
			return;
	}
	if (!why)
		report->systems[report->n_systems++] = system;
	else
		snprintf(report->left_out + used, sizeof(report->left_out) - used, "%s%s (%s)",
		         used ? ", " : "", system->name, why);
}

trib_status bench_systems_choose(struct bench_report *report)
{
	const char *name = report->options->against ? report->options->against : "";

	system_add(report, &systems[0]);
	if (report->n_systems == 0)
		return status_fail(TRIB_ERR_CONFIG, "tributary cannot run: %s", report->left_out);
	while (*name) {
		size_t length = strcspn(name, ",");
		const struct bench_system *system = system_find(name, length);

		if (!system || system == &systems[0])
			return status_fail(TRIB_ERR_ARGUMENT,
			                   "--against: \"%.*s\" is none of trib-xdp, trib-tcp, "
			                   "openmpi, mpich, "
			                   "gloo, ring",
			                   (int)length, name);
		if (report->options->to_one && !system->aggregates)
			return status_fail(TRIB_ERR_ARGUMENT, "--to-one is for Tributary alone");
		system_add(report, system);
		/* What its users get when they change nothing is worth a row. */
		if (strcmp(system->name, "openmpi") == 0)
			system_add(report, system_find("openmpi-default", 15));
		name += length + (name[length] == ',');
	}
	return TRIB_OK;
}
