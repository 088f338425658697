/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch: starts the processes of a job. launch.h starts several processes, here or
 * on hosts of a virtual cluster, follows their output line by line, and ends all of
 * them when one fails. tree_layout.h says where aggregators run, tree_rate.h how
 * fast their trees can be, local_daemon.h finds tribd and free ports,
 * host_lease_client.h leases hosts from a controller.
 *
 * This room knows no command and no benchmark: it must not include src/cli or
 * src/bench.
 */
#ifndef TRIB_LAUNCH_LAUNCH_H
#define TRIB_LAUNCH_LAUNCH_H

#include "net/cluster.h"

#include <sched.h>
#include <signal.h>

struct launch_task {
	const char *label;               /* "rank 2", "aggregator" */
	const struct cluster_host *host; /* NULL: in this namespace */
	char *const *argv;
	char *const *env;       /* "NAME=value" added to this process's, NULL-ended; may be NULL */
	bool service;           /* runs until all other tasks have ended, then gets SIGTERM */
	const cpu_set_t *cores; /* cores that it may use; NULL: all */
};

struct launch_options {
	/* Called for every line of output, without its newline. NULL: print it with the label. */
	void (*line)(void *context, unsigned task, const char *line, bool is_stderr);
	void *context;
	double timeout_s; /* 0: none */
	/* Set by the caller's signal handler: launch_all() then starts nothing. NULL: none. */
	const volatile sig_atomic_t *stop;
	/*
	 * Services start first. The other tasks wait until each service has printed a line with
	 * this.
	 */
	const char *ready_word;
	/*
	 * Called when all services are ready, before the other tasks start; NULL: nothing to
	 * do.
	 */
	trib_status (*ready)(void *context);
};

struct launch_report {
	bool signalled;     /* a signal came, in time to end the tasks or not */
	int first_failed;   /* index of the task, -1: none */
	char sentence[256]; /* e.g. "rank 2 ended first, with exit code 3" */
	int exit_code;      /* as in a shell: 128 + N for signal N; 0: all tasks succeeded */
	double wall_s;      /* from the start to the end of the tasks that are not services */
};

/*
 * TRIB_OK if every task that is not a service has exited with 0. SIGINT and SIGTERM end all
 * tasks.
 */
trib_status launch_all(const struct launch_task *tasks, unsigned n,
                       const struct launch_options *options, struct launch_report *report);

#endif
