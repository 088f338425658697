/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store owns the rows of a table at a parameter server: values, the optimizer's state and a count
 * of use, by 64-bit key. It must not touch files, networks, clocks or threads.
 *
 * Memory follows what was touched, not how many keys there are. Rows lie in chunks of about 1 MB
 * that never move. The index has 4 bytes a slot, and is divided into segments that grow one by
 * one. So growth is cheap, and needs little memory beside the old one. A row costs its floats,
 * 12 bytes for key and heat, and 5 to 11 bytes of the index.
 *
 * A row has a number: the first one made is 0, and no row is ever removed.
 */
#ifndef TRIB_SPARSE_STORE_H
#define TRIB_SPARSE_STORE_H

#include "sparse/store/table_options.h"

#include <stddef.h>

#define SPARSE_ROW_NONE UINT32_MAX

struct sparse_store;

/* `options` have passed sparse_table_options_check. */
trib_status sparse_store_open(const struct sparse_table_options *options,
                              struct sparse_store **store);
void sparse_store_close(struct sparse_store *store);

const struct sparse_table_options *sparse_store_options(const struct sparse_store *store);

/* The number of a key's row. SPARSE_ROW_NONE: the row was not made yet. */
uint32_t sparse_store_find(const struct sparse_store *store, uint64_t key);
/* Finds a row, or makes it. SPARSE_ROW_NONE: there is no memory. The key has to fit the options. */
uint32_t sparse_store_row(struct sparse_store *store, uint64_t key);

/* Reads a row's values. A row that was not made yet has its first values, and is not made. */
void sparse_store_read(const struct sparse_store *store, uint64_t key, float *values);

/* Applies a gradient with the optimizer. SPARSE_ROW_NONE: there is no memory for the row. */
uint32_t sparse_store_apply(struct sparse_store *store, uint64_t key, const float *gradient);

/*
 * Hints that a key's row is needed soon, for loops over many keys: memory is the bottleneck of a
 * large table. The first one is for a key that comes later than that of the second one.
 */
void sparse_store_expect(const struct sparse_store *store, uint64_t key);
void sparse_store_expect_soon(const struct sparse_store *store, uint64_t key);

/* ---- rows by number; iteration goes from 0 to sparse_store_rows() - 1 ---- */

uint32_t sparse_store_rows(const struct sparse_store *store);
uint64_t sparse_store_key(const struct sparse_store *store, uint32_t row);
/* `width` values, and behind them the optimizer's state. */
float *sparse_store_floats(const struct sparse_store *store, uint32_t row);
/* Values and state together. */
uint32_t sparse_store_floats_per_row(const struct sparse_store *store);

/*
 * How often a row was used. It stops at its largest value. Heat is a hint for the choice of hot
 * rows: it is in snapshots, but two servers with the same rows may differ in it.
 */
uint32_t sparse_store_heat(const struct sparse_store *store, uint32_t row);
void sparse_store_heat_add(struct sparse_store *store, uint32_t row, uint32_t count);
void sparse_store_heat_set(struct sparse_store *store, uint32_t row, uint32_t count);

/* All memory of the store, in bytes. */
uint64_t sparse_store_bytes(const struct sparse_store *store);
/* Of these, rows and optimizer state alone. */
uint64_t sparse_store_floats_bytes(const struct sparse_store *store);

#endif
