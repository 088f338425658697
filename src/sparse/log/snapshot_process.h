/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that writes a snapshot. It is a copy of the server as of its start, so the server
 * may go on and change its rows. It dies with the server.
 */
#ifndef TRIB_SPARSE_LOG_SNAPSHOT_PROCESS_H
#define TRIB_SPARSE_LOG_SNAPSHOT_PROCESS_H

#include "sparse/log/sparse_snapshot.h"

#include <sys/types.h>

struct snapshot_process {
	pid_t pid; /* 0: none */
	int words; /* the process writes its error here */
	uint64_t number;
};

enum snapshot_progress {
	SNAPSHOT_NONE, /* no process, or it is not at its end */
	SNAPSHOT_DONE,
	SNAPSHOT_FAILED,
};

void snapshot_process_begin(struct snapshot_process *process);
trib_status snapshot_process_start(struct snapshot_process *process,
                                   const struct log_folder *folder,
                                   const struct log_file_head *head,
                                   const struct sparse_state *state);
bool snapshot_process_runs(const struct snapshot_process *process);
/* Does not wait. `why` gets the error's sentence after SNAPSHOT_FAILED. */
enum snapshot_progress snapshot_process_look(struct snapshot_process *process, uint64_t *number,
                                             char *why, size_t room);
/* Ends a process that still runs. */
void snapshot_process_end(struct snapshot_process *process);

#endif
