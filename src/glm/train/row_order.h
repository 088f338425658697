/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_order: in which order an epoch visits the rows, and which of them belong to a mini-batch. The
 * order follows from the seed and the epoch alone, so all workers agree on it. Pure.
 */
#ifndef TRIB_GLM_TRAIN_ROW_ORDER_H
#define TRIB_GLM_TRAIN_ROW_ORDER_H

#include <stdint.h>

struct row_share {
	uint32_t rows;       /* of the data */
	uint32_t batch;      /* rows of a mini-batch; the last one of an epoch may have fewer */
	uint32_t rank, size; /* data parallel: this worker has the rows r with r % size == rank */
};

uint32_t row_batches(const struct row_share *share);
/* Rows of mini-batch `b`, of all workers together. */
uint32_t row_batch_size(const struct row_share *share, uint32_t b);

/*
 * Fills `order` with the worker's rows, by their number in its shard, and `start` with the begin of
 * each mini-batch in `order`. `order` has space for all rows of the worker, `start` for
 * row_batches() + 1.
 */
void row_order_fill(const struct row_share *share, uint64_t seed, uint32_t epoch, uint32_t *scratch,
                    uint32_t *order, uint32_t *start);

#endif
