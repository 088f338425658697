/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_BENCH_STORE_STORE_MEMORY_H
#define TRIB_BENCH_STORE_STORE_MEMORY_H

#include "sparse/store/table_options.h"

/* From so many rows on, the parts of a store that do not grow with its rows do not matter. */
#define STORE_ROWS_MANY 100000u

struct store_memory {
	uint64_t needed;   /* bytes of rows and state */
	uint64_t counted;  /* bytes of the store, as it counts them */
	uint64_t resident; /* bytes by which the process has grown, as the kernel counts them */
	double most;       /* the largest counted / needed since STORE_ROWS_MANY; 0: fewer rows */
};

/*
 * Fills a store with rows of random keys, in a process of its own: memory that was freed before
 * would hide what a new store takes.
 */
trib_status store_memory_measure(const struct sparse_table_options *options, uint32_t rows,
                                 struct store_memory *out);

#endif
