/* SPDX-License-Identifier: Apache-2.0 */
/* A shard of the data in memory: some rows, some columns, in one of three layouts. */
#ifndef TRIB_GLM_MATRIX_H
#define TRIB_GLM_MATRIX_H

#include <stdint.h>

enum glm_layout { GLM_SPARSE, GLM_DENSE, GLM_WEAVED };

struct glm_matrix {
	enum glm_layout layout;
	uint32_t rows;    /* of the shard */
	uint32_t columns; /* of the shard */
	uint32_t bits;    /* 0: float */
	/* GLM_SPARSE: row r has the entries start[r] to start[r + 1], sorted by column, with either
	 * a value or a code each. */
	uint64_t *start;
	uint32_t *column;
	float *value;
	uint8_t *code;
	/* GLM_DENSE: rows of `stride` floats, 64-byte aligned, padded with zeros. */
	float *dense;
	uint64_t stride;
	/* GLM_WEAVED: see glm/kernel/weave.h; rows of `weave_stride` bytes. */
	uint8_t *weave;
	uint64_t weave_stride;
};

#endif
