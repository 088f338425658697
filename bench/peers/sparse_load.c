/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse_load.h"

#include <err.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH_MAX 4096u
#define ROWS_MAX (1u << 24) /* of a batch */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files of tensors are little-endian");

static void *memory_get(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);

	if (!memory)
		errx(1, "no memory for %zu times %zu bytes", count, size);
	return memory;
}

void load_free(struct load *load)
{
	for (size_t i = 0; i < load->n; i++) {
		free(load->batches[i].keys);
		free(load->batches[i].rows);
	}
	free(load->batches);
	*load = (struct load){ 0 };
}

/* ---- made batches ---- */

static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static double *zipf_make(const struct load_shape *shape)
{
	double *sums = memory_get(shape->table_rows, sizeof(*sums)), sum = 0;

	for (uint64_t k = 0; k < shape->table_rows; k++)
		sums[k] = sum += pow((double)(k + 1), -shape->zipf);
	return sums;
}

static uint64_t zipf_draw(const double *sums, uint64_t n, uint64_t *state)
{
	double wanted = (double)(random_next(state) >> 11) * 0x1p-53 * sums[n - 1];
	uint64_t low = 0, high = n - 1;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (sums[middle] < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int key_compare(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static void batch_make(struct load_batch *batch, const struct load_shape *shape, const double *sums,
                       uint64_t *state)
{
	batch->keys = memory_get(shape->rows, sizeof(*batch->keys));
	for (uint32_t i = 0; i < shape->rows; i++)
		batch->keys[i] = (zipf_draw(sums, shape->table_rows, state) + shape->shift) %
		                 shape->table_rows;
	qsort(batch->keys, shape->rows, sizeof(*batch->keys), key_compare);
	for (uint32_t i = 0; i < shape->rows; i++)
		if (!i || batch->keys[i] != batch->keys[i - 1])
			batch->keys[batch->n++] = batch->keys[i];
	batch->rows = memory_get((size_t)batch->n * shape->width, sizeof(float));
	for (size_t i = 0; i < (size_t)batch->n * shape->width; i++)
		batch->rows[i] = ((float)(random_next(state) >> 40) * 0x1p-23f - 1) * 0.01f;
}

void load_make(struct load *load, const struct load_shape *shape)
{
	double *sums = zipf_make(shape);
	uint64_t state = shape->seed * 0x9e3779b97f4a7c15ull + 1;

	*load = (struct load){ .width = shape->width,
		               .table_rows = shape->table_rows,
		               .batches = memory_get(shape->batches, sizeof(*load->batches)),
		               .n = shape->batches };
	for (size_t i = 0; i < load->n; i++)
		batch_make(&load->batches[i], shape, sums, &state);
	free(sums);
}

/* ---- files ---- */

/* 1: there, 0: the file is at its end. A part of it is an error. */
static int bytes_read(FILE *file, const char *path, void *bytes, size_t size)
{
	size_t n = fread(bytes, 1, size, file);

	if (ferror(file))
		err(1, "%s", path);
	if (n && n != size)
		errx(1, "%s: the file is cut off", path);
	return n == size;
}

static int batch_read(struct load *load, FILE *file, const char *path)
{
	struct load_batch *batch = &load->batches[load->n];
	size_t floats;

	if (!bytes_read(file, path, &batch->n, sizeof(batch->n)))
		return 0;
	if (batch->n == 0 || batch->n > ROWS_MAX)
		errx(1, "%s: step %zu has %u rows", path, load->n, batch->n);
	floats = (size_t)batch->n * load->width;
	batch->keys = memory_get(batch->n, sizeof(*batch->keys));
	batch->rows = memory_get(floats, sizeof(float));
	if (!bytes_read(file, path, batch->keys, batch->n * sizeof(*batch->keys)) ||
	    !bytes_read(file, path, batch->rows, floats * sizeof(float)))
		errx(1, "%s: the file is cut off", path);
	load->n++;
	return 1;
}

void load_read(struct load *load, const char *path, size_t most)
{
	struct {
		char magic[8];
		uint32_t version, width;
		uint64_t table_rows;
	} head;
	FILE *file = fopen(path, "r");

	if (!file)
		err(1, "%s", path);
	if (!bytes_read(file, path, &head, sizeof(head)) ||
	    memcmp(head.magic, "TRIBROWS", sizeof(head.magic)) != 0 || head.version != 1 ||
	    head.width < 1 || head.width > WIDTH_MAX || head.table_rows < 1)
		errx(1, "%s: not a file that an example wrote with --tensors", path);
	*load = (struct load){ .width = head.width, .table_rows = head.table_rows };
	load->batches = memory_get(most, sizeof(*load->batches));
	while (load->n < most && batch_read(load, file, path))
		;
	if (load->n == 0)
		errx(1, "%s: it has no steps", path);
	fclose(file);
}
