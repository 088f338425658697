/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bed/job_build.h"

#include "launch/local_daemon.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef TRIB_LIBEXECDIR
#define TRIB_LIBEXECDIR "/usr/libexec/tributary"
#endif

/* ---- words ---- */

void words_add(struct word_list *words, const char *format, ...)
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

void words_add_option(struct word_list *words, const char *option, const char *value)
{
	words_add(words, "%s", option);
	words_add(words, "%s", value);
}

void words_add_count(struct word_list *words, const char *option, unsigned long long value)
{
	words_add(words, "%s", option);
	words_add(words, "%llu", value);
}

void words_free(struct word_list *words)
{
	for (unsigned i = 0; i < words->n; i++)
		free(words->items[i]);
	free(words->items);
}

/* ---- programs ---- */

/* Finds `name` in a folder relative to that of trib; `out` gets the real path. */
static bool beside_find(const char *folder, const char *name, char *out, size_t room)
{
	char self[2048], path[4096], *slash, *plain;

	self_find(self, sizeof(self));
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

unsigned run_ranks(const struct bench_run *run)
{
	return run->system->alone || run->system->sample ? 1 : run->place->workers;
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

/* ---- hosts and tasks ---- */

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

void job_program_words(const struct bench_run *run, struct word_list *argv)
{
	const struct bench_options *o = run->options;
	char path[4096];

	if (run->system->words) {
		run->system->words(run, argv);
		return;
	}
	if (!bench_program_find(run->system->program, path, sizeof(path)))
		snprintf(path, sizeof(path), "%s", run->system->program);
	words_add(argv, "%s", path);
	words_add(argv, "--bytes");
	words_add(argv, "%llu", (unsigned long long)run->bytes);
	words_add(argv, "--iterations");
	words_add(argv, "%u", run->iterations);
	words_add(argv, "--warmup");
	words_add(argv, "%u", run->warmup);
	words_add(argv, "--type");
	words_add(argv, "%s", o->type);
	if (o->check)
		words_add(argv, "--check");
	if (o->no_cpu_time)
		words_add(argv, "--no-cpu-time");
	if (o->collective != BENCH_ALLREDUCE) {
		words_add(argv, "--collective");
		words_add(argv, "%s", bench_collective_name(o->collective));
	}
	if (o->to_one)
		words_add(argv, "--to-one");
	if (o->many > 1) {
		words_add(argv, "--many");
		words_add(argv, "%llu", (unsigned long long)o->many);
	}
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
