/* SPDX-License-Identifier: Apache-2.0 */
/* Inside kernel only: runs of entries of sparse rows. */
#ifndef TRIB_GLM_SPARSE_ROWS_H
#define TRIB_GLM_SPARSE_ROWS_H

#include "glm/kernel/glm_loops.h"

struct sparse_run {
	uint64_t first, end; /* entries of the matrix */
};

/* The entries of a row in the columns [from, to). */
struct sparse_run sparse_run_find(const struct glm_matrix *matrix, uint32_t row, uint32_t from,
                                  uint32_t to);
struct sparse_run sparse_run_of_part(const struct glm_matrix *matrix, uint32_t row,
                                     const struct glm_index *index, uint32_t part);

/* The processor may fetch the first entries of a run that comes soon. */
void sparse_run_prefetch(const struct glm_matrix *matrix, struct sparse_run run);
uint64_t sparse_run_forward(const struct glm_loops *loops, const struct glm_matrix *matrix,
                            const struct glm_weights *weights, struct sparse_run run,
                            int64_t *activation);
uint64_t sparse_run_backward(const struct glm_loops *loops, const struct glm_matrix *matrix,
                             struct sparse_run run, float scale_f, int32_t scale_i, int64_t *g);

#endif
