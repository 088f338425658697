/* SPDX-License-Identifier: Apache-2.0 */
/* row_store: fills a worker's matrix row by row, in any layout. */
#ifndef TRIB_GLM_ROW_STORE_H
#define TRIB_GLM_ROW_STORE_H

#include "base/status.h"
#include "glm/data/glm_load.h"

struct row_store {
	struct glm_matrix *matrix;
	const struct glm_shard *shard;
	uint32_t rows;    /* stored */
	uint64_t entries; /* stored, if sparse */
	uint64_t room;    /* for entries */
	uint8_t *zero;    /* codes only: the code of 0, one a column */
	uint32_t *offset; /* sparse codes only: the columns where the code of 0 is not 0 */
	uint32_t n_offset;
	uint8_t *codes; /* weaved only: one row */
};

/* `entries` is a guess: the store makes more room if it needs to. The shard must stay. */
trib_status row_store_begin(struct row_store *store, struct glm_matrix *matrix,
                            const struct glm_shard *shard, uint32_t rows, uint64_t entries);

/* The columns are those of the whole data, ascending. Values outside of the shard are ignored. */
trib_status row_store_add(struct row_store *store, const uint32_t *column, const float *value,
                          uint32_t n);

/* Frees the store, not the matrix. `done`: all rows are there, so the room is cut to what they
 * need. */
void row_store_end(struct row_store *store, bool done);

#endif
