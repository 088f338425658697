/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums and values of the sparse engine (sparse.h): adds rows of a packet to a bank, makes pages
 * of a frozen bank, keeps values for workers. It knows no records and no answers. Callers hold the
 * child's lock, or all of them; the locks of blocks are taken here.
 */
#ifndef TRIB_ENGINE_SPARSE_BANK_H
#define TRIB_ENGINE_SPARSE_BANK_H

#include "engine/sparse.h"
#include "number/float_table.h"

#include <stdbool.h>

static inline struct sparse_lane *sparse_lane_of(const struct engine_pool *pool)
{
	return (struct sparse_lane *)pool->lane;
}

static inline struct sparse_cell *sparse_state(struct engine_cell *cell)
{
	return (struct sparse_cell *)cell->own;
}

static inline struct engine_cell *sparse_block(const struct engine_pool *pool, uint32_t bank,
                                               uint32_t block)
{
	return engine_cell(pool, sparse_index(sparse_lane_of(pool), bank, block));
}

/* Can values be summed this way? */
bool sparse_bank_has(uint32_t kind);
/* The tables of sums by table, once sparse_bank_has() was asked for them. */
const struct float_tables *sparse_bank_tables(void);
/* "fixed" or "table", see struct engine. */
const char *sparse_bank_sums(const struct engine_pool *pool);

/* Are these rows of the lane, ascending, in a payload of their length? PULL has no values. */
bool sparse_bank_is_sound(const struct sparse_lane *lane, const void *payload, uint32_t bytes,
                          bool with_values);
/* The most packets that a block of these rows has in the live bank. The payload is sound. */
uint32_t sparse_bank_addends(const struct engine_pool *pool, const void *payload);
/* Adds all rows to the live bank. The payload is sound, and no block is full. */
void sparse_bank_add(const struct engine_pool *pool, const void *payload);

/*
 * Pages of the frozen bank: the bytes written to `out`, which has room for the lane's payload.
 * `block` is below `blocks`; `i` is the number of a page of bits.
 */
uint32_t sparse_bank_read(const struct engine_pool *pool, uint32_t block, sparse_word *out);
uint32_t sparse_bank_read_bits(const struct engine_pool *pool, uint32_t i, sparse_word *out);
/* Empties the frozen bank. */
void sparse_bank_clear(const struct engine_pool *pool);

/* Keeps values of a block for workers. False: the payload has another form. */
bool sparse_bank_write(const struct engine_pool *pool, uint32_t block, uint32_t number,
                       const sparse_word *payload, uint32_t bytes);
/* The rows of `wanted`, which is sound, that have values: bytes of the payload in `out`. */
uint32_t sparse_bank_pull(const struct engine_pool *pool, const void *wanted, void *out);

#endif
