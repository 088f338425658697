/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots: a state as a file of entries. The process that writes one was forked from a server
 * that may have threads. So it allocates nothing, and prints nothing.
 */
#ifndef TRIB_SPARSE_LOG_SNAPSHOT_H
#define TRIB_SPARSE_LOG_SNAPSHOT_H

#include "sparse/log/log_folder.h"
#include "sparse/log/sparse_state.h"

/* Memory to write a snapshot, allocated before the fork. */
struct snapshot_room;
struct snapshot_room *snapshot_room_make(void);
void snapshot_room_free(struct snapshot_room *room);

/* Writes the snapshot of `head`; when it is on the disk, it gets its name. */
trib_status sparse_snapshot_write(const struct log_folder *folder, const struct log_file_head *head,
                                  const struct sparse_state *state, struct snapshot_room *room);

/* Fills an empty state. Each fault is an error that names file and offset. */
trib_status sparse_snapshot_read(struct log_reader *reader, struct sparse_state *state,
                                 uint64_t *rows);

#endif
