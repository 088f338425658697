/* SPDX-License-Identifier: Apache-2.0 */
/* What mpirun needs: how it reaches the hosts of a virtual cluster, and the adapter to preload. */
#ifndef TRIB_LAUNCH_MPI_LAUNCH_H
#define TRIB_LAUNCH_MPI_LAUNCH_H

#include "base/status.h"
#include "net/cluster.h"

#include <sched.h>
#include <stdbool.h>

/*
 * Writes the script FOLDER/agent, which mpirun calls in place of ssh: agent [-x] ADDRESS COMMAND...
 * runs the command on the host that has this address, one of the first `n`.
 * `cores` has one core for each of them, to which the command is bound; NULL: it may use all.
 */
trib_status mpi_agent_write(const char *folder, const struct cluster *cluster, unsigned n,
                            const cpu_set_t *cores);
/* The adapter for this MPI ("openmpi", "mpich"), as built or installed with this trib. False: none.
 */
bool mpi_adapter_find(const char *mpi, char *out, size_t room);
/* The subnet of all hosts of a cluster, such as 10.84.7.0/24; of loopback, if there is none. */
void mpi_subnet_text(const struct cluster *cluster, char *out, size_t room);

#endif
