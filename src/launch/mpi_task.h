/* SPDX-License-Identifier: Apache-2.0 */
/* mpirun as one task of a job: it starts the ranks, and each preloads the adapter (adapters/mpi).
 */
#ifndef TRIB_LAUNCH_MPI_TASK_H
#define TRIB_LAUNCH_MPI_TASK_H

#include "launch/mpi_launch.h"

#include <stdint.h>

#define MPI_WORDS 96u

struct mpi_task {
	char **argv; /* NULL-ended */
	char *words[MPI_WORDS];
	unsigned n;
	char folder[64]; /* of the agent; "": none was made */
};

/*
 * `mpirun`: the launcher, of Open MPI or MPICH. `n_hosts` is 0 on this machine. Ranks get the
 * variables of `env`. mpi_task_end frees the task, also if this fails.
 */
trib_status mpi_task_build(struct mpi_task *task, const char *mpirun, unsigned workers,
                           const struct cluster *cluster, unsigned n_hosts, char *const *env,
                           char *const *command);
void mpi_task_end(struct mpi_task *task);

#endif
