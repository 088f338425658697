/* SPDX-License-Identifier: Apache-2.0 */
/* One training of `trib bench glm`: its shape, and what its output says. Pure. */
#ifndef TRIB_BENCH_GLM_GLM_CASE_H
#define TRIB_BENCH_GLM_GLM_CASE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GLM_DATA_BYTES (512u << 20) /* dense data of all workers together, at most */

struct glm_shape {
	uint64_t features, rows, batch;
	uint64_t nonzeros; /* of a row; 0: dense */
	unsigned bits;     /* 0: float */
};

/* What a line of `trib glm train --json -` says about an epoch. */
struct glm_epoch {
	unsigned number; /* from 1 */
	double loss, seconds,
		at_s; /* at_s: from the begin of the training to the end of the epoch */
};

/* False: the line is about something else. */
bool glm_epoch_read(const char *line, struct glm_epoch *epoch);

/* `rows`, or as many rows as fit GLM_DATA_BYTES if the data are dense; a mini-batch at least. */
uint64_t glm_rows_fit(const struct glm_shape *shape);

/* The name under which `trib glm train` makes such data. */
void glm_data_name(const struct glm_shape *shape, char *out, size_t room);

/* "float,4" as bits, 0 for float; none twice. */
trib_status glm_bits_parse(const char *text, unsigned *bits, unsigned most, unsigned *n);
/* "4 bits", "float" */
void glm_bits_text(unsigned bits, char *out, size_t room);

#endif
