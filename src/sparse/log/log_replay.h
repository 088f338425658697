/* SPDX-License-Identifier: Apache-2.0 */
/* From the files of a folder to the state. */
#ifndef TRIB_SPARSE_LOG_REPLAY_H
#define TRIB_SPARSE_LOG_REPLAY_H

#include "sparse/log/log_folder.h"
#include "sparse/log/sparse_state.h"

struct log_replay {
	struct log_file_head head; /* of the last log */
	uint64_t end;              /* of its entries */
	uint64_t snapshot;         /* number of the snapshot that was read; 0: none */
	uint64_t bytes;            /* of the logs behind the snapshot */
	uint64_t entries;          /* of these logs */
	uint64_t rows;             /* of the snapshot */
	bool is_new;               /* the folder has no log yet */
};

/*
 * Reads the newest snapshot, and all logs behind it. A torn tail is cut off, with a notice. Damage
 * is an error that names file and offset. With `repair` the log is cut there, and later logs are
 * renamed to lost-N.
 */
trib_status log_replay(const struct log_folder *folder, uint32_t shard, uint32_t shards,
                       bool repair, struct sparse_state *state, struct log_replay *replay);

#endif
