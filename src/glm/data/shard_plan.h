/* SPDX-License-Identifier: Apache-2.0 */
/* shard_plan: which worker holds which columns, and in which layout. Pure. */
#ifndef TRIB_GLM_SHARD_PLAN_H
#define TRIB_GLM_SHARD_PLAN_H

#include "base/status.h"
#include "glm/kernel/glm_matrix.h"

#include <stdbool.h>

/*
 * Worker w gets the columns first[w] .. first[w + 1]; `first` has workers + 1 numbers. A column
 * costs as much as it has non-zero values, and 1 for its weight. `count` NULL: all columns cost the
 * same, as in dense and weaved layouts; borders are then multiples of `align` columns where that is
 * possible. Every worker gets at least one column; more workers than columns are an error. A
 * worker's columns may have no values at all: its sums are 0, and it takes part as the others do.
 */
trib_status shard_columns(const uint32_t *count, uint32_t columns, uint32_t workers, uint32_t align,
                          uint32_t *first);

/* Rows are dealt in turn. More workers than rows are an error. */
trib_status shard_rows_check(uint64_t rows, uint32_t workers);

struct layout_shape {
	uint64_t rows;
	uint64_t entries; /* of a sparse matrix: the non-zero values, or quantize_entries */
	uint32_t columns;
	uint32_t bits; /* 0: float */
};

/*
 * The layout whose rows take the least time, among those that fit into `memory` bytes (0: no
 * limit). Floats: dense if at least a share of LAYOUT_DENSE_SHARE is not 0. Codes: weaved if a row
 * takes at most LAYOUT_WEAVED_RATIO times the bytes of a sparse one. If none fits, the error says
 * how much is needed.
 */
#define LAYOUT_DENSE_SHARE 0.25
#define LAYOUT_WEAVED_RATIO 2.0
trib_status layout_choose(const struct layout_shape *shape, uint64_t memory,
                          enum glm_layout *layout);

const char *layout_name(enum glm_layout layout);

#endif
