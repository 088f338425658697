/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct_row: a long allreduce as a row of direct calls (ring/direct.h), which flow in a pipeline.
 * The vector is cut into segments. Each segment is a DIRECT_SHARE and a DIRECT_BACK; of two ranks,
 * a DIRECT_ALLREDUCE. Calls end in their order. So the share of the next segment comes before the
 * sums of this one, and travels while they are made:
 *
 *   share 0, share 1, back 0, share 2, back 1, ..., back N
 *
 * A short vector may be summed at one rank instead: 2 (N - 1) messages, where shares and sums take
 * up to 2 N (N - 1). But that rank's link carries N - 1 times the vector.
 */
#ifndef TRIB_WORKER_RING_DIRECT_ROW_H
#define TRIB_WORKER_RING_DIRECT_ROW_H

#include "worker/ring/direct.h"

/* The calls in the order in which all ranks have to post them, linked by `next`; *n: their number.
 * `segment`: bytes. A segment has whole blocks, at least one, so that sums have the same bits on
 * all ways. NULL: no memory. */
struct direct_call *direct_row_new(const struct round_spec *whole, unsigned size, uint32_t payload,
                                   size_t segment, void *owner, unsigned *n);
/* The vector is summed at the rank `root`: a DIRECT_REDUCE and a DIRECT_BROADCAST. *n: their
 * number. NULL: no memory. */
struct direct_call *direct_row_at(const struct round_spec *whole, unsigned root, void *owner,
                                  unsigned *n);
void direct_row_free(struct direct_call *row);

#endif
