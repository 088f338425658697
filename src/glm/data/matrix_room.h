/* SPDX-License-Identifier: Apache-2.0 */
/* matrix_room: memory of a matrix. */
#ifndef TRIB_GLM_MATRIX_ROOM_H
#define TRIB_GLM_MATRIX_ROOM_H

#include "base/status.h"
#include "glm/kernel/glm_matrix.h"

/* Bytes of a matrix of this shape. `entries` counts only if it is sparse. */
uint64_t matrix_bytes(enum glm_layout layout, uint32_t rows, uint32_t columns, uint64_t entries,
                      uint32_t bits);

/*
 * Sets the shape, and makes room for it. All is 0 at the beginning. The error says how much memory
 * is missing. `bits`: 0 for floats; a weaved matrix has 1 to 8, a dense one 0, a sparse one either.
 */
trib_status matrix_make(struct glm_matrix *matrix, enum glm_layout layout, uint32_t rows,
                        uint32_t columns, uint64_t entries, uint32_t bits);

/* Changes the room of a sparse matrix; its entries stay. */
trib_status matrix_entries_resize(struct glm_matrix *matrix, uint64_t entries);

void matrix_free(struct glm_matrix *matrix);

#endif
