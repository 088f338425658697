/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse_batch: the rows that a step uses. Each key has a slot, and each slot a row and a gradient,
 * so a key that occurs often in a step is pulled and pushed once.
 */
#ifndef EXAMPLES_SPARSE_BATCH_H
#define EXAMPLES_SPARSE_BATCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct batch {
	size_t width;
	size_t n; /* keys */
	uint64_t *keys;
	uint64_t *counts;        /* how often batch_slot was called for each key */
	float *rows, *gradients; /* n * width each; NULL with width 0 */
	float scale;             /* of gradients: the part of the learning rate that is left */
	size_t room;             /* for keys */
	uint32_t *places;        /* a hash table: slot + 1; 0: free */
};

void batch_open(struct batch *batch, size_t width);
void batch_close(struct batch *batch);
/* Forgets all keys. */
void batch_clear(struct batch *batch);
/* The slot of a key, with a gradient of zeros if the key is new. */
size_t batch_slot(struct batch *batch, uint64_t key);

static inline float *batch_row(const struct batch *batch, size_t slot)
{
	return batch->rows + slot * batch->width;
}

static inline float *batch_gradient(const struct batch *batch, size_t slot)
{
	return batch->gradients + slot * batch->width;
}

/*
 * Pushes in a file, all little-endian: the bytes "TRIBROWS", uint32_t version (1), uint32_t width,
 * uint64_t rows of the whole table; then for each step uint32_t n, n keys (uint64_t), and n rows
 * of `width` floats (f32).
 */
FILE *tensors_open(const char *path, int rank, size_t width, uint64_t table_rows);
/* Both exit with a sentence if the file cannot be written. */
void tensors_write(FILE *file, const char *path, const struct batch *batch);
void tensors_close(FILE *file, const char *path);

#endif
