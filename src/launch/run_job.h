/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_job: starts the workers of a job, and its aggregators if none are given, as `trib run` and
 * `trib glm train` do. Ranks get their place in the job from environment variables (TRIB_RANK,
 * TRIB_SIZE, TRIB_AGGREGATOR, ...).
 */
#ifndef TRIB_LAUNCH_RUN_JOB_H
#define TRIB_LAUNCH_RUN_JOB_H

#include "launch/host_lease_client.h"
#include "launch/launch.h"

/* An aggregator takes no more workers. */
#define RUN_WORKERS_MAX 64u

/* A plane: the name for tribd, and the name for workers. */
struct run_plane {
	const char *name, *workers;
};

/* NULL: there is no plane of this name. */
const struct run_plane *run_plane_find(const char *name);

struct run_options {
	uint64_t workers;
	struct lease_request request; /* its `hosts` is 0: no controller is asked */
	const char *net, *aggregator, *trees, *plane_name;
	const struct run_plane *plane;
	double timeout_s;
	uint64_t pool_bytes, lanes;
	uint64_t servers;       /* parameter servers to start for the job */
	const char *server_dir; /* their folder; NULL: a temporary one */
	bool ring;              /* no aggregator: the ranks sum among themselves */
	bool nccl;              /* the workers call NCCL, which shall use the plugin */
	bool pin;
	bool mpi;           /* an MPI program: mpirun starts the ranks, with the adapter */
	const char *mpirun; /* NULL: "mpirun" */
	char **command;
	/* Called for every line of output; `rank` is -1 for an aggregator. NULL: print it with its
	 * label. */
	void (*line)(void *context, int rank, const char *line, bool is_stderr);
	void *context;
};

/* Runs the job to its end. Prints errors; returns an exit code. */
int run_job(const struct run_options *options);

#endif
