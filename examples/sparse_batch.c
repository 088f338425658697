/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse_batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files of tensors are little-endian");

enum { ROOM_FIRST = 1024, PLACES_PER_KEY = 4 };

static void *grown(void *old, size_t count, size_t size)
{
	void *memory = reallocarray(old, count, size);

	if (!memory) {
		fprintf(stderr, "no memory for %zu rows\n", count);
		exit(EXIT_FAILURE);
	}
	return memory;
}

static size_t place_first(const struct batch *batch, uint64_t key)
{
	uint64_t z = (key ^ key >> 32) * 0x9e3779b97f4a7c15ull;

	return (z >> 20) & (batch->room * PLACES_PER_KEY - 1);
}

/* The place of the key, or the free one where it belongs. */
static uint32_t *place_find(const struct batch *batch, uint64_t key)
{
	size_t mask = batch->room * PLACES_PER_KEY - 1, at = place_first(batch, key);

	while (batch->places[at] && batch->keys[batch->places[at] - 1] != key)
		at = (at + 1) & mask;
	return &batch->places[at];
}

static void room_set(struct batch *batch, size_t room)
{
	batch->room = room;
	batch->keys = grown(batch->keys, room, sizeof(*batch->keys));
	batch->counts = grown(batch->counts, room, sizeof(*batch->counts));
	if (batch->width) {
		batch->rows = grown(batch->rows, room * batch->width, sizeof(float));
		batch->gradients = grown(batch->gradients, room * batch->width, sizeof(float));
	}
	free(batch->places);
	batch->places = grown(NULL, room * PLACES_PER_KEY, sizeof(*batch->places));
	memset(batch->places, 0, room * PLACES_PER_KEY * sizeof(*batch->places));
	for (size_t i = 0; i < batch->n; i++)
		*place_find(batch, batch->keys[i]) = (uint32_t)i + 1;
}

void batch_open(struct batch *batch, size_t width)
{
	*batch = (struct batch){ .width = width, .scale = 1 };
	room_set(batch, ROOM_FIRST);
}

void batch_close(struct batch *batch)
{
	free(batch->keys);
	free(batch->counts);
	free(batch->rows);
	free(batch->gradients);
	free(batch->places);
	*batch = (struct batch){ 0 };
}

void batch_clear(struct batch *batch)
{
	batch->n = 0;
	memset(batch->places, 0, batch->room * PLACES_PER_KEY * sizeof(*batch->places));
}

size_t batch_slot(struct batch *batch, uint64_t key)
{
	uint32_t *place = place_find(batch, key);

	if (*place) {
		batch->counts[*place - 1]++;
		return *place - 1;
	}
	if (batch->n == batch->room) {
		room_set(batch, 2 * batch->room);
		place = place_find(batch, key);
	}
	batch->keys[batch->n] = key;
	batch->counts[batch->n] = 1;
	if (batch->width)
		memset(batch_gradient(batch, batch->n), 0, batch->width * sizeof(float));
	*place = (uint32_t)++batch->n;
	return batch->n - 1;
}

/* ---- files ---- */

static void file_fail(const char *path)
{
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	exit(EXIT_FAILURE);
}

static void bytes_write(FILE *file, const char *path, const void *bytes, size_t size)
{
	if (size && fwrite(bytes, 1, size, file) != size)
		file_fail(path);
}

FILE *tensors_open(const char *path, int rank, size_t width, uint64_t table_rows)
{
	uint32_t numbers[2] = { 1, (uint32_t)width };
	char own[4096];
	FILE *file;

	snprintf(own, sizeof(own), "%s.%d", path, rank);
	file = fopen(own, "w");
	if (!file)
		file_fail(own);
	bytes_write(file, own, "TRIBROWS", 8);
	bytes_write(file, own, numbers, sizeof(numbers));
	bytes_write(file, own, &table_rows, sizeof(table_rows));
	return file;
}

void tensors_write(FILE *file, const char *path, const struct batch *batch)
{
	uint32_t n = (uint32_t)batch->n;

	bytes_write(file, path, &n, sizeof(n));
	bytes_write(file, path, batch->keys, batch->n * sizeof(*batch->keys));
	bytes_write(file, path, batch->gradients, batch->n * batch->width * sizeof(float));
}

void tensors_close(FILE *file, const char *path)
{
	if (fclose(file) != 0)
		file_fail(path);
}
