/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/store/sparse_store.h"

#include "sparse/store/sparse_optimizer.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (1u << 20)
#define SEGMENTS 4096u
#define SEGMENT_BITS 12
#define SEGMENT_FIRST 8u /* slots that a segment begins with */
#define EXPECT_BYTES 256u
#define ROW_HEAD 12u /* key and heat */

/*
 * A part of the index: row numbers, at most 3/4 full, SPARSE_ROW_NONE is free. A key's place is
 * found by linear probing. The keys are in the rows: who finds a key needs its row next.
 */
struct segment {
	uint32_t *slots;
	uint32_t room; /* a power of two; 0: no row yet */
	uint32_t n;
};

struct sparse_store {
	struct sparse_table_options options;
	uint32_t floats;      /* of a row, with state */
	uint32_t row_bytes;   /* of a row in a chunk */
	uint32_t chunk_shift; /* a chunk has 2^chunk_shift rows */
	uint32_t rows;
	uint8_t **chunks;
	uint32_t n_chunks, chunk_room;
	uint64_t index_bytes;
	struct segment segments[SEGMENTS];
};

static uint64_t key_hash(uint64_t key)
{
	key = (key ^ key >> 32) * 0xd6e8feb86659fd93ull;
	key = (key ^ key >> 32) * 0xd6e8feb86659fd93ull;
	return key ^ key >> 32;
}

/* The lowest bits may be the same in all keys of a shard, and the highest ones in a segment. */
static uint32_t hash_slot(uint64_t hash)
{
	return (uint32_t)(hash >> 16);
}

static uint8_t *row_at(const struct sparse_store *store, uint32_t row)
{
	uint32_t within = row & ((1u << store->chunk_shift) - 1);

	return store->chunks[row >> store->chunk_shift] + (size_t)within * store->row_bytes;
}

/* Rows are aligned to 4 bytes only. */
static uint64_t row_key(const uint8_t *row)
{
	uint64_t key;

	memcpy(&key, row, sizeof(key));
	return key;
}

trib_status sparse_store_open(const struct sparse_table_options *options, struct sparse_store **out)
{
	struct sparse_store *store = calloc(1, sizeof(*store));

	*out = store;
	if (!store)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for table %s", options->name);
	store->options = *options;
	store->floats = options->width + optimizer_state_floats(options);
	store->row_bytes = ROW_HEAD + 4 * store->floats;
	while ((uint64_t)store->row_bytes << (store->chunk_shift + 1) <= CHUNK_BYTES)
		store->chunk_shift++;
	return TRIB_OK;
}

void sparse_store_close(struct sparse_store *store)
{
	if (!store)
		return;
	for (uint32_t i = 0; i < store->n_chunks; i++)
		free(store->chunks[i]);
	free(store->chunks);
	for (uint32_t i = 0; i < SEGMENTS; i++)
		free(store->segments[i].slots);
	free(store);
}

const struct sparse_table_options *sparse_store_options(const struct sparse_store *store)
{
	return &store->options;
}

/* ---- the index ---- */

static struct segment *segment_of(const struct sparse_store *store, uint64_t hash)
{
	return (struct segment *)&store->segments[hash >> (64 - SEGMENT_BITS)];
}

/* The slot of a key: it has the key's row, or is free. */
static uint32_t *slot_find(const struct sparse_store *store, const struct segment *segment,
                           uint64_t key, uint64_t hash)
{
	uint32_t mask = segment->room - 1;
	uint32_t i = hash_slot(hash) & mask;

	while (segment->slots[i] != SPARSE_ROW_NONE &&
	       row_key(row_at(store, segment->slots[i])) != key)
		i = (i + 1) & mask;
	return &segment->slots[i];
}

static void slot_put(uint32_t *slots, uint32_t room, uint64_t hash, uint32_t row)
{
	uint32_t i = hash_slot(hash) & (room - 1);

	while (slots[i] != SPARSE_ROW_NONE)
		i = (i + 1) & (room - 1);
	slots[i] = row;
}

static bool segment_grow(struct sparse_store *store, struct segment *segment)
{
	uint32_t room = segment->room ? 2 * segment->room : SEGMENT_FIRST;
	uint32_t *slots = malloc(room * sizeof(*slots));

	if (!slots)
		return false;
	memset(slots, 0xff, room * sizeof(*slots));
	for (uint32_t i = 0; i < segment->room; i++) {
		uint32_t row = segment->slots[i];

		if (row != SPARSE_ROW_NONE)
			slot_put(slots, room, key_hash(row_key(row_at(store, row))), row);
	}
	free(segment->slots);
	store->index_bytes += (uint64_t)(room - segment->room) * sizeof(*slots);
	segment->slots = slots;
	segment->room = room;
	return true;
}

/* ---- rows ---- */

static bool chunks_grow(struct sparse_store *store)
{
	uint8_t *chunk;

	if (store->n_chunks == store->chunk_room) {
		uint32_t room = store->chunk_room ? 2 * store->chunk_room : 16;
		uint8_t **chunks = realloc(store->chunks, room * sizeof(*chunks));

		if (!chunks)
			return false;
		store->chunks = chunks;
		store->chunk_room = room;
	}
	chunk = malloc((size_t)store->row_bytes << store->chunk_shift);
	if (!chunk)
		return false;
	store->chunks[store->n_chunks++] = chunk;
	return true;
}

/* Room for one more row, in the chunks and in a segment. */
static bool room_make(struct sparse_store *store, struct segment *segment)
{
	if (store->rows == SPARSE_ROW_NONE)
		return false;
	if (store->rows >> store->chunk_shift == store->n_chunks && !chunks_grow(store))
		return false;
	return 4 * (uint64_t)(segment->n + 1) <= 3 * (uint64_t)segment->room ||
	       segment_grow(store, segment);
}

static void row_begin(struct sparse_store *store, uint32_t row, uint64_t key)
{
	uint8_t *at = row_at(store, row);
	float *floats = (float *)(at + ROW_HEAD);

	memcpy(at, &key, sizeof(key));
	memset(at + sizeof(key), 0, ROW_HEAD - sizeof(key));
	optimizer_values_begin(&store->options, key, floats);
	optimizer_state_begin(&store->options, floats + store->options.width);
}

uint32_t sparse_store_find(const struct sparse_store *store, uint64_t key)
{
	uint64_t hash = key_hash(key);
	const struct segment *segment = segment_of(store, hash);

	return segment->room ? *slot_find(store, segment, key, hash) : SPARSE_ROW_NONE;
}

uint32_t sparse_store_row(struct sparse_store *store, uint64_t key)
{
	uint64_t hash = key_hash(key);
	struct segment *segment = segment_of(store, hash);
	uint32_t row = sparse_store_find(store, key);

	if (row != SPARSE_ROW_NONE)
		return row;
	if (!room_make(store, segment))
		return SPARSE_ROW_NONE;
	row = store->rows++;
	row_begin(store, row, key);
	slot_put(segment->slots, segment->room, hash, row);
	segment->n++;
	return row;
}

void sparse_store_read(const struct sparse_store *store, uint64_t key, float *values)
{
	uint32_t row = sparse_store_find(store, key);

	if (row == SPARSE_ROW_NONE)
		optimizer_values_begin(&store->options, key, values);
	else
		memcpy(values, sparse_store_floats(store, row),
		       store->options.width * sizeof(*values));
}

uint32_t sparse_store_apply(struct sparse_store *store, uint64_t key, const float *gradient)
{
	uint32_t row = sparse_store_row(store, key);
	float *floats;

	if (row == SPARSE_ROW_NONE)
		return row;
	floats = sparse_store_floats(store, row);
	optimizer_apply(&store->options, floats, floats + store->options.width, gradient);
	return row;
}

/* The index. */
void sparse_store_expect(const struct sparse_store *store, uint64_t key)
{
	uint64_t hash = key_hash(key);
	const struct segment *segment = segment_of(store, hash);

	if (segment->room)
		__builtin_prefetch(&segment->slots[hash_slot(hash) & (segment->room - 1)]);
}

/* The row that the index has there: most often it is the right one. */
void sparse_store_expect_soon(const struct sparse_store *store, uint64_t key)
{
	uint64_t hash = key_hash(key);
	const struct segment *segment = segment_of(store, hash);
	uint32_t row = SPARSE_ROW_NONE;

	if (segment->room)
		row = segment->slots[hash_slot(hash) & (segment->room - 1)];
	if (row == SPARSE_ROW_NONE)
		return;
	for (uint32_t i = 0; i < store->row_bytes && i < EXPECT_BYTES; i += 64)
		__builtin_prefetch(row_at(store, row) + i, 1);
}

uint32_t sparse_store_rows(const struct sparse_store *store)
{
	return store->rows;
}

uint64_t sparse_store_key(const struct sparse_store *store, uint32_t row)
{
	return row_key(row_at(store, row));
}

float *sparse_store_floats(const struct sparse_store *store, uint32_t row)
{
	return (float *)(row_at(store, row) + ROW_HEAD);
}

uint32_t sparse_store_floats_per_row(const struct sparse_store *store)
{
	return store->floats;
}

/* ---- heat ---- */

static uint32_t *row_heat(const struct sparse_store *store, uint32_t row)
{
	return (uint32_t *)(row_at(store, row) + sizeof(uint64_t));
}

uint32_t sparse_store_heat(const struct sparse_store *store, uint32_t row)
{
	return *row_heat(store, row);
}

void sparse_store_heat_set(struct sparse_store *store, uint32_t row, uint32_t count)
{
	*row_heat(store, row) = count;
}

void sparse_store_heat_add(struct sparse_store *store, uint32_t row, uint32_t count)
{
	uint32_t *heat = row_heat(store, row);

	*heat = *heat > UINT32_MAX - count ? UINT32_MAX : *heat + count;
}

/* ---- memory ---- */

uint64_t sparse_store_bytes(const struct sparse_store *store)
{
	return sizeof(*store) + (uint64_t)store->chunk_room * sizeof(*store->chunks) +
	       ((uint64_t)store->n_chunks * store->row_bytes << store->chunk_shift) +
	       store->index_bytes;
}

uint64_t sparse_store_floats_bytes(const struct sparse_store *store)
{
	return (uint64_t)store->rows * store->floats * sizeof(float);
}
