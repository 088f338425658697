/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sparse_bank.h"

#include "engine/cell_lock.h"

#include <pthread.h>
#include <string.h>

/* The payload of PUSH or PULL, behind its header. */
struct rows {
	uint32_t n, width;
	const sparse_number *numbers;
	const sparse_value *values;
};

static struct rows rows_of(const void *payload)
{
	const struct sparse_rows *head = payload;

	return (struct rows){ .n = head->n,
		              .width = head->width,
		              .numbers = (const sparse_number *)(head + 1),
		              .values = (const void *)((const uint8_t *)payload +
		                                       sparse_values_at(head->n)) };
}

/* ---- adding ---- */

/* Built when the first lane needs them: no lane adds before its SETUP. */
static struct float_tables tables;
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void build_tables(void)
{
	float_tables_build(&tables);
}

bool sparse_bank_has(uint32_t kind)
{
	if (kind == SPARSE_TABLE)
		pthread_once(&tables_once, build_tables);
	return kind < SPARSE_SUMS_END;
}

const struct float_tables *sparse_bank_tables(void)
{
	return &tables;
}

const char *sparse_bank_sums(const struct engine_pool *pool)
{
	const struct sparse_lane *lane = (const void *)pool->lane;

	if (!lane->setup.width)
		return "";
	return lane->setup.kind == SPARSE_TABLE ? "table" : "fixed";
}

static void add_values(uint32_t kind, sparse_value *sums, const sparse_value *values, uint32_t n)
{
	if (kind == SPARSE_TABLE)
		for (uint32_t i = 0; i < n; i++)
			sums[i] = float_table_add(&tables, sums[i], values[i]);
	else
		for (uint32_t i = 0; i < n; i++)
			sums[i] += values[i];
}

static bool ascends(const struct rows *rows, uint32_t end)
{
	for (uint32_t i = 1; i < rows->n; i++)
		if (rows->numbers[i - 1] >= rows->numbers[i])
			return false;
	return !rows->n || rows->numbers[rows->n - 1] < end;
}

static bool is_small(const struct rows *rows)
{
	bool all = true;

	for (uint32_t i = 0; i < rows->n * rows->width; i++)
		all &= sparse_is_small(rows->values[i]);
	return all;
}

bool sparse_bank_is_sound(const struct sparse_lane *lane, const void *payload, uint32_t bytes,
                          bool with_values)
{
	const struct sparse_rows *head = payload;
	struct rows rows;

	if (bytes < sizeof(*head) || head->width != lane->setup.width || head->unused ||
	    head->n > lane->payload ||
	    bytes != sparse_rows_bytes(head->n, head->width, with_values))
		return false;
	rows = rows_of(payload);
	return ascends(&rows, lane->setup.rows) &&
	       (!with_values || lane->setup.kind != SPARSE_FIXED || is_small(&rows));
}

/* The end of the rows from `i` on that are in the same block. */
static uint32_t block_end(const struct rows *rows, uint32_t i, uint32_t per_block)
{
	uint32_t end = (rows->numbers[i] / per_block + 1) * per_block;

	while (i < rows->n && rows->numbers[i] < end)
		i++;
	return i;
}

uint32_t sparse_bank_addends(const struct engine_pool *pool, const void *payload)
{
	const struct sparse_lane *lane = sparse_lane_of(pool);
	const struct rows rows = rows_of(payload);
	uint32_t most = 0;

	for (uint32_t i = 0; i < rows.n; i = block_end(&rows, i, lane->per_block)) {
		uint32_t block = rows.numbers[i] / lane->per_block;
		struct sparse_cell *state = sparse_state(sparse_block(pool, lane->bank, block));
		/* Without the block's lock: other children may add. */
		uint32_t addends = __atomic_load_n(&state->addends, __ATOMIC_RELAXED);

		most = addends > most ? addends : most;
	}
	return most;
}

/* What a cleared row holds does not matter. */
static void add_row(const struct sparse_lane *lane, struct engine_cell *cell, uint32_t row,
                    const sparse_value *values)
{
	uint32_t width = lane->setup.width;
	sparse_value *sums = (sparse_value *)cell->sum + row * width;
	struct sparse_cell *state = sparse_state(cell);

	if (!(state->dirty >> row & 1))
		memset(sums, 0, 4ull * width);
	add_values(lane->setup.kind, sums, values, width);
	state->dirty |= 1ull << row;
}

void sparse_bank_add(const struct engine_pool *pool, const void *payload)
{
	const struct sparse_lane *lane = sparse_lane_of(pool);
	const struct rows rows = rows_of(payload);

	for (uint32_t i = 0; i < rows.n;) {
		uint32_t block = rows.numbers[i] / lane->per_block;
		uint32_t end = block_end(&rows, i, lane->per_block);
		struct engine_cell *cell = sparse_block(pool, lane->bank, block);
		struct sparse_cell *state = sparse_state(cell);

		cell_lock(&cell->lock);
		__atomic_store_n(&state->addends, state->addends + 1, __ATOMIC_RELAXED);
		for (; i < end; i++)
			add_row(lane, cell, rows.numbers[i] - block * lane->per_block,
			        rows.values + i * rows.width);
		cell_unlock(&cell->lock);
	}
}

/* ---- the frozen bank ---- */

uint32_t sparse_bank_read(const struct engine_pool *pool, uint32_t block, sparse_word *out)
{
	const struct sparse_lane *lane = sparse_lane_of(pool);
	struct engine_cell *cell = sparse_block(pool, sparse_frozen_bank(lane), block);
	const sparse_value *sums = (const sparse_value *)cell->sum;
	sparse_value *values = (sparse_value *)(out + 1);
	uint32_t width = lane->setup.width, n = 0, bytes;

	out[0] = sparse_state(cell)->dirty;
	for (uint64_t left = out[0]; left; left &= left - 1, n++)
		memcpy(values + n * width, sums + (unsigned)__builtin_ctzll(left) * width,
		       4ull * width);
	bytes = sparse_block_bytes(n, width);
	if (n * width % 2)
		values[n * width] = 0;
	return bytes;
}

uint32_t sparse_bank_read_bits(const struct engine_pool *pool, uint32_t i, sparse_word *out)
{
	const struct sparse_lane *lane = sparse_lane_of(pool);
	uint32_t first = i * sparse_page_bits(lane->payload);
	uint32_t bytes = sparse_bits_bytes(lane->payload, lane->blocks, i);

	memset(out, 0, bytes);
	for (uint32_t k = 0; k < bytes * 8 && first + k < lane->blocks; k++)
		if (sparse_state(sparse_block(pool, sparse_frozen_bank(lane), first + k))->dirty)
			out[k / 64] |= 1ull << k % 64;
	return bytes;
}

void sparse_bank_clear(const struct engine_pool *pool)
{
	const struct sparse_lane *lane = sparse_lane_of(pool);

	for (uint32_t block = 0; block < lane->blocks; block++) {
		struct sparse_cell *state =
			sparse_state(sparse_block(pool, sparse_frozen_bank(lane), block));

		if (!state->addends)
			continue;
		state->dirty = 0;
		state->addends = 0;
	}
}

/* ---- values for workers ---- */

/* Rows that this block has. */
static uint64_t rows_in(const struct sparse_lane *lane, uint32_t block)
{
	uint32_t left = lane->setup.rows - block * lane->per_block;
	uint32_t n = left < lane->per_block ? left : lane->per_block;

	return n < 64 ? (1ull << n) - 1 : ~0ull;
}

bool sparse_bank_write(const struct engine_pool *pool, uint32_t block, uint32_t number,
                       const sparse_word *payload, uint32_t bytes)
{
	const struct sparse_lane *lane = sparse_lane_of(pool);
	const sparse_value *values = (const sparse_value *)(payload + 1);
	uint32_t width = lane->setup.width;
	struct engine_cell *cell;
	struct sparse_cell *state;

	if (!(lane->setup.layout & SPARSE_VALUES) || block >= lane->blocks || bytes < 8 ||
	    payload[0] & ~rows_in(lane, block) ||
	    bytes != sparse_block_bytes((unsigned)__builtin_popcountll(payload[0]), width))
		return false;
	cell = sparse_block(pool, sparse_banks(lane->setup.layout), block);
	state = sparse_state(cell);
	cell_lock(&cell->lock);
	if (state->addends != lane->generation) /* values of an older map */
		state->dirty = 0;
	if (!state->dirty || (int32_t)(number - state->more) > 0) { /* else it is a late copy */
		state->addends = lane->generation;
		state->more = number;
		state->dirty |= payload[0];
		for (uint64_t left = payload[0]; left; left &= left - 1, values += width)
			memcpy((sparse_value *)cell->sum + (unsigned)__builtin_ctzll(left) * width,
			       values, 4ull * width);
	}
	cell_unlock(&cell->lock);
	return true;
}

/* Copies the row's values. False: there are none. */
static bool copy_values(const struct engine_pool *pool, uint32_t number, sparse_value *to)
{
	const struct sparse_lane *lane = sparse_lane_of(pool);
	uint32_t block = number / lane->per_block, row = number % lane->per_block;
	struct engine_cell *cell = sparse_block(pool, sparse_banks(lane->setup.layout), block);
	const struct sparse_cell *state = sparse_state(cell);
	bool has;

	cell_lock(&cell->lock);
	has = state->addends == lane->generation && state->dirty >> row & 1;
	if (has)
		memcpy(to, (const sparse_value *)cell->sum + row * lane->setup.width,
		       4ull * lane->setup.width);
	cell_unlock(&cell->lock);
	return has;
}

uint32_t sparse_bank_pull(const struct engine_pool *pool, const void *wanted, void *out)
{
	const struct sparse_lane *lane = sparse_lane_of(pool);
	const struct rows rows = rows_of(wanted);
	uint32_t width = rows.width, n = 0, bytes;
	sparse_number *numbers = sparse_numbers(out);
	sparse_value *values = sparse_values(out, rows.n);

	for (uint32_t i = 0; i < rows.n && lane->setup.layout & SPARSE_VALUES; i++)
		if (copy_values(pool, rows.numbers[i], values + n * width))
			numbers[n++] = rows.numbers[i];
	bytes = sparse_rows_bytes(n, width, 1);
	/* Fewer row numbers than were wanted: the values move up. */
	memmove(sparse_values(out, n), values, 4ull * n * width);
	for (uint32_t i = n; i % 4; i++)
		numbers[i] = 0;
	if (n * width % 2)
		sparse_values(out, n)[n * width] = 0;
	*(struct sparse_rows *)out =
		(struct sparse_rows){ .n = (uint16_t)n, .width = (uint16_t)width };
	return bytes;
}
