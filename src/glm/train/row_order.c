/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/train/row_order.h"

#include "base/random_bits.h"

uint32_t row_batches(const struct row_share *share)
{
	return (uint32_t)(((uint64_t)share->rows + share->batch - 1) / share->batch);
}

uint32_t row_batch_size(const struct row_share *share, uint32_t b)
{
	uint64_t from = (uint64_t)b * share->batch, left = share->rows - from;

	return left < share->batch ? (uint32_t)left : share->batch;
}

/* Fisher and Yates. */
static void rows_shuffle(uint32_t *rows, uint32_t n, uint64_t seed, uint32_t epoch)
{
	uint64_t state = seed, mixed;

	mixed = random_next(&state) ^ epoch;
	for (uint32_t i = 0; i < n; i++)
		rows[i] = i;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t other = (uint32_t)((random_next(&mixed) >> 32) * i >> 32);
		uint32_t kept = rows[i - 1];

		rows[i - 1] = rows[other];
		rows[other] = kept;
	}
}

void row_order_fill(const struct row_share *share, uint64_t seed, uint32_t epoch, uint32_t *scratch,
                    uint32_t *order, uint32_t *start)
{
	uint32_t n = 0, batches = row_batches(share);

	rows_shuffle(scratch, share->rows, seed, epoch);
	for (uint32_t b = 0; b < batches; b++) {
		const uint32_t *rows = scratch + (uint64_t)b * share->batch;

		start[b] = n;
		for (uint32_t i = 0; i < row_batch_size(share, b); i++)
			if (rows[i] % share->size == share->rank)
				order[n++] = rows[i] / share->size;
	}
	start[batches] = n;
}
