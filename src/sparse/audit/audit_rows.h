/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a table in an audit, and the optimizers once more, written as plainly as possible. */
#ifndef TRIB_SPARSE_AUDIT_ROWS_H
#define TRIB_SPARSE_AUDIT_ROWS_H

#include "sparse/audit/audit_set.h"
#include "sparse/store/table_options.h"

struct audit_rows {
	struct sparse_table_options options;
	struct audit_set index; /* key: number of the row */
	float *values;          /* `floats` for each row: w, then the optimizer's state */
	uint64_t room;
	uint32_t floats;
};

void audit_rows_begin(struct audit_rows *rows, const struct sparse_table_options *options);
void audit_rows_end(struct audit_rows *rows);
/* False: there is no memory. */
bool audit_rows_apply(struct audit_rows *rows, uint64_t key, const float *gradient);
/* NULL: there is no such row. */
const float *audit_rows_find(const struct audit_rows *rows, uint64_t key);

#endif
