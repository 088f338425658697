/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit owns the proof that a shard applied each gradient exactly once. It applies all entries of
 * the logs again, from the first one on, with plain loops of its own, and compares the rows bit for
 * bit with those of the server. It must not use the code that it checks: sparse_state.c, the store
 * and the optimizers. Only the comparison reads the server's state.
 */
#ifndef TRIB_SPARSE_AUDIT_H
#define TRIB_SPARSE_AUDIT_H

#include "base/status.h"

#include <stdint.h>
#include <stdio.h>

struct sparse_audit {
	uint64_t entries;
	uint64_t pushes, flushes; /* applied */
	uint64_t repeats;         /* pushes and flushes that were in the log, and applied before */
	uint64_t packets;         /* of hot rows, applied by flushes or pushed after a loss */
	uint64_t rows;            /* compared */
	uint64_t torn;            /* offset of a torn tail in the last log; UINT64_MAX: none */
	uint64_t faults;          /* rows that differ, and gradients that were lost or twice */
};

/*
 * Audits the folder of a shard whose server has ended. Each fault is a line in `out`. The logs have
 * to be complete, so the server needs the option --keep-logs. An error means that the audit could
 * not be done. `out` may be NULL.
 */
trib_status sparse_audit(const char *folder, FILE *out, struct sparse_audit *audit);

#endif
