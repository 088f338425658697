/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts several processes, here or on hosts of a virtual cluster, follows
 * their output line by line, and ends all of them when one fails.
 */
#ifndef TRIB_CLI_LAUNCH_H
#define TRIB_CLI_LAUNCH_H

#include "net/cluster.h"

#include <sched.h>

struct launch_task {
	const char *label;               /* "rank 2", "aggregator" */
	const struct cluster_host *host; /* NULL: in this namespace */
	char *const *argv;
	char *const *env;       /* "NAME=value" added to this process's, NULL-ended; may be NULL */
	bool service;           /* runs until the others have ended, then gets SIGTERM */
	const cpu_set_t *cores; /* that it may use; NULL: all */
};

struct launch_options {
	/* Called for every line of output, without its newline. NULL: print it with the label. */
	void (*line)(void *context, unsigned task, const char *line, bool is_stderr);
	void *context;
	double timeout_s; /* 0: none */
	/* Services are started first; the others wait until each has printed a line with this. */
	const char *ready_word;
	/* Called when they have, before the others start; NULL: nothing to do. */
	trib_status (*ready)(void *context);
};

struct launch_report {
	int first_failed;   /* index of the task, -1: none */
	char sentence[256]; /* e.g. "rank 2 ended first, with exit code 3" */
	int exit_code;      /* as a shell tells it: 128 + N for signal N; 0: all went well */
	double wall_s;      /* from the start to the end of the tasks that are no services */
};

/* TRIB_OK when every task that is no service has exited with 0. SIGINT and SIGTERM end all. */
trib_status launch_all(const struct launch_task *tasks, unsigned n,
                       const struct launch_options *options, struct launch_report *report);

#endif
