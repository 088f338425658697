/* SPDX-License-Identifier: Apache-2.0 */
/* One run of one system: its processes, put together word by word, and what came out. */
#ifndef TRIB_CLI_BENCH_JOB_H
#define TRIB_CLI_BENCH_JOB_H

#include "cli/bench.h"

struct bench_run {
	const struct bench_options *options;
	const struct bench_place *place;
	const struct bench_system *system;
	const struct bench_variant *variant;
	uint64_t bytes;
	unsigned iterations, warmup;
	double timeout_s;
	unsigned port; /* the first of one a worker that nobody else should have */
};

struct bench_words {
	char **items; /* NULL-ended */
	unsigned n;
};

struct bench_task {
	char label[24];
	const struct cluster_host *host;
	struct bench_words argv, env;
	bool service;
};

struct bench_job {
	struct bench_task tasks[CLUSTER_HOSTS_MAX + TREES_SITES_MAX];
	unsigned n;
	char folder[64]; /* removed after the run with all in it; "": none was made */
	const char *ready_word;
	bool strays; /* processes may leave our process groups: look for them */
};

struct bench_outcome {
	double *times; /* a time for each iteration */
	double cpu_s, payload_bytes;
	struct bench_packets packets;
	bool stopped;  /* by a signal: the whole benchmark ends */
	char why[400]; /* it failed */
};

void words_add(struct bench_words *words, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A task on the host of this rank. */
struct bench_task *job_task(struct bench_job *job, const struct bench_run *run, int rank);
/* One that serves the others: on that host, NULL being this machine. */
struct bench_task *job_service(struct bench_job *job, const struct bench_run *run,
                               const struct cluster_host *host, const char *label);
/* --bytes, --iterations and so on, as every program in bench/peers takes them. */
void job_program_words(const struct bench_run *run, struct bench_words *argv);
/* Makes job->folder. */
trib_status job_folder(struct bench_job *job);

/* That of this rank, or for -1 the server; NULL: this machine. */
const struct cluster_host *run_host(const struct bench_run *run, int rank);
const char *run_address(const struct bench_run *run, int rank);
/* Where a program of bench/peers is: in the build folder, or installed. False: nowhere. */
bool bench_program_find(const char *name, char *out, size_t room);

trib_status bench_run_once(const struct bench_run *run, struct bench_outcome *outcome);

trib_status openmpi_prepare(const struct bench_run *run, struct bench_job *job);
trib_status mpich_prepare(const struct bench_run *run, struct bench_job *job);

#endif
