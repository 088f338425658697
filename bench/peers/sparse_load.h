/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse_load: what a worker of `trib bench sparse` pushes. Batches of rows are made with a skew
 * (Zipf's law), or read from a file that an example wrote with --tensors. All memory is there
 * before the measurement begins.
 */
#ifndef TRIB_BENCH_SPARSE_LOAD_H
#define TRIB_BENCH_SPARSE_LOAD_H

#include <stddef.h>
#include <stdint.h>

struct load_batch {
	uint32_t n;
	uint64_t *keys;
	float *rows;
};

struct load {
	uint32_t width;
	uint64_t table_rows; /* of the whole model */
	struct load_batch *batches;
	size_t n;
};

struct load_shape {
	uint64_t table_rows;
	uint32_t width, rows; /* rows: drawn for a batch; equal ones are one row */
	double zipf;          /* the k-th popular key has a chance of 1 / k^zipf */
	size_t batches;
	uint64_t seed;
	uint64_t shift; /* added to each key: other keys are popular */
};

/* Both exit with a sentence if it cannot be done. A file's batches are the first `most`. */
void load_make(struct load *load, const struct load_shape *shape);
void load_read(struct load *load, const char *path, size_t most);
void load_free(struct load *load);

#endif
