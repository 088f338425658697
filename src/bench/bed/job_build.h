/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of one run of one system, put together argument by argument:
 * which program runs on which host, with which arguments and environment.
 * Nothing is started here: peer_job.h does that.
 */
#ifndef TRIB_BENCH_BED_JOB_BUILD_H
#define TRIB_BENCH_BED_JOB_BUILD_H

#include "bench/bed/bench_bed.h"

#include <signal.h>

struct bench_run {
	const struct bench_options *options;
	const struct bench_place *place;
	const struct bench_system *system;
	const struct bench_variant *variant;
	uint64_t bytes;
	unsigned iterations, warmup;
	double timeout_s;
	const volatile sig_atomic_t *stop; /* set by a signal: the run shall not begin */
	unsigned port; /* the first of a range of ports, one a worker, for this run alone */
};

struct word_list {
	char **items; /* NULL-ended */
	unsigned n;
};

struct bench_task {
	char label[24];
	const struct cluster_host *host;
	struct word_list argv, env;
	bool service;
};

struct bench_job {
	struct bench_task tasks[CLUSTER_HOSTS_MAX + LAYOUT_SITES_MAX];
	unsigned n;
	char folder[64]; /* removed after the run with all its files; "": none was made */
	const char *ready_word;
	bool has_strays; /* processes may leave our process groups: look for them */
};

void words_add(struct word_list *words, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* An option and its value. */
void words_add_option(struct word_list *words, const char *option, const char *value);
void words_add_count(struct word_list *words, const char *option, unsigned long long value);
void words_free(struct word_list *words);

/* A task on the host of this rank. */
struct bench_task *job_task(struct bench_job *job, const struct bench_run *run, int rank);
/* A task that serves the others: on that host, NULL being this machine. */
struct bench_task *job_service(struct bench_job *job, const struct bench_run *run,
                               const struct cluster_host *host, const char *label);
/*
 * --bytes, --iterations and so on, as every program in bench/peers takes them; or what the system's
 * own hook adds.
 */
void job_program_words(const struct bench_run *run, struct word_list *argv);
/* Makes job->folder. */
trib_status job_folder(struct bench_job *job);

/* The host of this rank, or for -1 the server; NULL: this machine. */
const struct cluster_host *run_host(const struct bench_run *run, int rank);
/* How many ranks run and print times. */
unsigned run_ranks(const struct bench_run *run);
const char *run_address(const struct bench_run *run, int rank);
/* Finds a program of bench/peers in the build folder or where it is installed. False: nowhere. */
bool bench_program_find(const char *name, char *out, size_t room);

#endif
