/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of the sparse engine: every refusal, the window of a record, news, values for workers;
 * random packets against a plain model; and threads that push while another one flushes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "number/float_table.h"
#include "short.h"
#include "sparse_packets.h"

#include <pthread.h>
#include <stdbool.h>

static struct engine_lane lane_state;
static struct engine_pool pool;
static union sparse_packet packet;
static struct engine_packet out[2];
static uint8_t server;

static struct sparse_lane *lane(void)
{
	return (struct sparse_lane *)&lane_state;
}

/* Takes the packet; 0: done; else why it was refused. */
static int give(uint32_t bytes)
{
	engine_sparse.take(&pool, &packet.header, bytes, out);
	return sparse_refused(&out[0]);
}

static void start(uint32_t children, uint32_t cells, uint32_t payload)
{
	free(pool.cells);
	pool = sparse_pool(&lane_state, children, cells, payload);
	assert_non_null(pool.cells);
	assert_true(engine_sparse.open(&pool));
	server = (uint8_t)(children - 1);
}

static void start_with(uint32_t children, uint32_t cells, uint32_t width, uint32_t rows,
                       uint32_t caches)
{
	start(children, cells, WIRE_PAYLOAD_MIN);
	assert_int_equal(give(sparse_set(&packet, server, width, rows, caches)), 0);
}

static int push(uint8_t child, uint32_t sequence, const uint16_t *rows, uint32_t n,
                const uint32_t *values)
{
	sparse_bare(&packet, SPARSE_PUSH, child, sequence, (uint16_t)lane()->generation);
	return give(sparse_fill(&packet, rows, n, lane()->setup.width, values));
}

static int push_one(uint8_t child, uint32_t sequence, uint16_t row, uint32_t value)
{
	return push(child, sequence, &row, 1, &value);
}

static int ask(enum sparse_kind kind, uint32_t pos, uint32_t ack)
{
	sparse_bare(&packet, kind, server, pos, (uint16_t)lane()->generation);
	packet.header.ack = ack;
	return give(0);
}

static int freeze(uint32_t epoch, uint16_t generation)
{
	sparse_bare(&packet, SPARSE_FREEZE, server, epoch, generation);
	return give(0);
}

/* ---- what is refused ---- */

static int set(struct sparse_setup setup)
{
	sparse_bare(&packet, SPARSE_SETUP, server, 0, 0);
	*(struct sparse_setup *)sparse_payload(&packet) = setup;
	return give(sizeof(setup));
}

static void test_setup(void **state)
{
	const struct sparse_setup good = { .width = 4, .rows = 64, .layout = 1, .generation = 7 };
	struct sparse_setup bad[14];

	(void)state;
	for (unsigned i = 0; i < 14; i++)
		bad[i] = good;
	bad[0].width = 0;
	bad[1].width = 61; /* a PUSH of one row has 16 bytes before the values */
	bad[2].width = 0x40000000;
	bad[3].rows = 0;
	bad[4].rows = 65537;
	bad[5].rows = 15 * 5 + 1; /* 15 rows in a block, 5 blocks in 16 cells */
	bad[6].kind = SPARSE_SUMS_END;
	bad[7].layout = 4;
	bad[8].generation = 65536;
	bad[9].unused[0] = 1;
	bad[10].unused[2] = 1;
	bad[11].rows = 0xffffffff;
	bad[12].width = 0xffffffff;
	bad[13].width = 0x3fffffff;
	start(3, 16, WIRE_PAYLOAD_MIN);
	assert_int_equal(ask(SPARSE_FREEZE, 1, 0), SPARSE_UNREADY);
	assert_int_equal(push_one(0, 0, 0, 1), SPARSE_UNREADY);
	for (unsigned i = 0; i < 14; i++)
		assert_int_equal(set(bad[i]), SPARSE_BAD);
	sparse_set(&packet, server, 4, 64, 1);
	assert_int_equal(give(24), SPARSE_BAD);
	assert_int_equal(set(good), 0);
	assert_int_equal(set(good), 0); /* a repeat */
	assert_int_equal(sparse_head(&out[0])->scale, 7);
	for (unsigned i = 0; i < 14; i++)
		assert_int_equal(set(bad[i]), SPARSE_BAD);
	bad[0] = good;
	bad[0].rows = 63; /* sound, but another one */
	assert_int_equal(set(bad[0]), SPARSE_BAD);
	/* Each child needs a cell in both banks. */
	start(9, 16, WIRE_PAYLOAD_MIN);
	assert_int_equal(set((struct sparse_setup){ .width = 1, .rows = 1 }), SPARSE_BAD);
	start(8, 16, WIRE_PAYLOAD_MIN);
	assert_int_equal(set((struct sparse_setup){ .width = 1, .rows = 1 }), 0);
	start(64, 2, WIRE_PAYLOAD_MIN);
	assert_int_equal(set((struct sparse_setup){ .width = 1, .rows = 1 }), SPARSE_UNREADY);
}

static enum engine_verdict verdict(enum sparse_kind kind, uint8_t child)
{
	sparse_bare(&packet, kind, child, 0, 0);
	return engine_sparse.take(&pool, &packet.header, 0, out);
}

static void test_strangers(void **state)
{
	(void)state;
	start_with(3, 16, 1, 10, 0);
	for (unsigned kind = 0; kind < WIRE_OPS_END; kind++) {
		bool of_worker = kind == SPARSE_PUSH || kind == SPARSE_PULL;

		assert_int_equal(verdict(kind, 3), ENGINE_STRANGER);
		assert_int_equal(verdict(kind, 255), ENGINE_STRANGER);
		if (kind >= SPARSE_NEWS || of_worker)
			assert_int_equal(verdict(kind, server), ENGINE_STRANGER);
		if (kind >= SPARSE_NEWS || !of_worker)
			assert_int_equal(verdict(kind, 0), ENGINE_STRANGER);
		assert_true(out[0].bytes == 0 && out[1].bytes == 0);
	}
}

/* Each of these is refused, and changes nothing. */
static void test_bad_rows(void **state)
{
	const uint16_t equal[] = { 4, 4 }, falling[] = { 5, 4 }, beyond[] = { 4, 100 };
	const uint16_t good[] = { 4, 99 };
	const uint32_t values[] = { 1, 2 }, small[] = { 1 << 21, -(1u << 21) };
	const uint32_t large[] = { 1, (1 << 21) + 1 }, low[] = { -(1u << 21) - 1, 2 };
	uint32_t bytes;

	(void)state;
	start_with(2, 16, 1, 100, 0);
	assert_int_equal(push(0, 0, equal, 2, values), SPARSE_BAD);
	assert_int_equal(push(0, 0, falling, 2, values), SPARSE_BAD);
	assert_int_equal(push(0, 0, beyond, 2, values), SPARSE_BAD);
	assert_int_equal(push(0, 0, good, 2, large), SPARSE_BAD);
	assert_int_equal(push(0, 0, good, 2, low), SPARSE_BAD);
	sparse_bare(&packet, SPARSE_PUSH, 0, 0, 0);
	bytes = sparse_fill(&packet, good, 2, 1, values);
	assert_int_equal(give(bytes - 8), SPARSE_BAD);
	assert_int_equal(give(bytes + 8), SPARSE_BAD);
	assert_int_equal(give(0), SPARSE_BAD);
	((struct sparse_rows *)sparse_payload(&packet))->width = 2;
	assert_int_equal(give(bytes), SPARSE_BAD);
	((struct sparse_rows *)sparse_payload(&packet))->width = 1;
	((struct sparse_rows *)sparse_payload(&packet))->unused = 1;
	assert_int_equal(give(bytes), SPARSE_BAD);
	packet.header.from = SPARSE_VOID; /* with a payload */
	assert_int_equal(give(bytes), SPARSE_BAD);
	for (uint32_t k = 0; k < 16; k++)
		assert_int_equal(sparse_state(engine_cell(&pool, k))->addends, 0);
	assert_int_equal(push(0, 0, good, 2, small), 0);
	assert_int_equal(push(0, 1, NULL, 0, values), 0); /* no rows: nothing to add */
	assert_int_equal(push(0, 258, good, 2, values), SPARSE_TOO_FAR);
	assert_int_equal(push(0, 257, good, 2, values), 0);
	assert_int_equal(push(0, -1u, good, 2, values), SPARSE_TOO_FAR);
	packet.header.scale = 1;
	packet.header.pos = 2;
	assert_int_equal(give(bytes), SPARSE_OTHER_MAP);
	packet.header.pos = 0; /* added before: acknowledged whatever it is now */
	assert_int_equal(give(bytes), 0);
}

static void test_epochs(void **state)
{
	(void)state;
	start_with(2, 16, 1, 100, 0);
	assert_int_equal(ask(SPARSE_READ, 0, 0), SPARSE_OTHER_EPOCH);
	assert_int_equal(ask(SPARSE_RELEASE, 0, 0), SPARSE_OTHER_EPOCH);
	assert_int_equal(freeze(2, 0), SPARSE_OTHER_EPOCH);
	assert_int_equal(sparse_head(&out[0])->pos, 0);
	assert_int_equal(freeze(1, 5), 0);
	assert_int_equal(freeze(1, 9), 0); /* a repeat changes nothing */
	assert_int_equal(sparse_head(&out[0])->scale, 5);
	assert_int_equal(freeze(2, 5), SPARSE_OTHER_EPOCH); /* not released */
	assert_int_equal(ask(SPARSE_READ, 1, 0), 0);
	assert_int_equal(ask(SPARSE_READ, 1, sparse_pages(WIRE_PAYLOAD_MIN, 2)), SPARSE_BAD);
	assert_int_equal(ask(SPARSE_READ, 1, -1u), SPARSE_BAD);
	assert_int_equal(ask(SPARSE_RELEASE, 1, 0), 0);
	assert_int_equal(out[1].to, 1);
	assert_int_equal(ask(SPARSE_RELEASE, 1, 0), 0);
	assert_int_equal(out[1].bytes, 0);
	assert_int_equal(ask(SPARSE_READ, 1, 0), SPARSE_OTHER_EPOCH);
	assert_int_equal(freeze(2, 4), SPARSE_BAD); /* maps only go forward */
	assert_int_equal(freeze(2, 5), 0);
}

/* Sums by table: any float is added, in the order of packets. */
static void test_table(void **state)
{
	static struct float_tables tables;
	const float parts[] = { 1.5f, -0.25f, 1e30f, -1e30f, 3e-7f };
	uint32_t want = 0, bits[5];

	(void)state;
	float_tables_build(&tables);
	memcpy(bits, parts, sizeof(bits));
	start(2, 16, WIRE_PAYLOAD_MIN);
	assert_int_equal(set((struct sparse_setup){ .width = 1, .rows = 9, .kind = SPARSE_TABLE }),
	                 0);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(push_one(0, i, 5, bits[i]), 0);
		want = i ? float_table_add(&tables, want, bits[i]) : bits[i];
	}
	assert_int_equal(freeze(1, 0), 0);
	assert_int_equal(ask(SPARSE_READ, 1, 0), 0);
	assert_int_equal(((const uint32_t *)sparse_body(&out[0]))[2], want);
}

/* ---- records, news ---- */

/* Packets of a window in any order, above 2^32 too: the record is right after each. */
static void test_window(void **state)
{
	const uint64_t first = 0xffffff00ull;
	struct sparse_cell record = { .low = first };
	bool seen[2048] = { false };
	uint64_t seed = 1;

	(void)state;
	for (unsigned i = 0; i < 20000 && record.low < first + 1500; i++) {
		uint64_t sequence;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		sequence = record.low + (seed >> 33) % (i % 3 ? 256 : 2);
		if (sparse_find(&record, sequence) == SPARSE_FRESH) {
			assert_false(seen[sequence - first]);
			sparse_enter(&record, sequence);
			seen[sequence - first] = true;
		}
		assert_false(record.seen[0] & 1);
		assert_int_equal(sparse_find(&record, record.low + 256), SPARSE_BEYOND);
		for (uint64_t s = first; s < record.low + 256; s++)
			if ((sparse_find(&record, s) == SPARSE_SEEN) != seen[s - first])
				fail_msg("number %llu", (unsigned long long)(s - first));
	}
	assert_true(record.low > first + 1000);
}

static void test_whole_window(void **state)
{
	struct sparse_cell record = { .low = 5 };

	(void)state;
	for (unsigned i = 255; i; i--)
		sparse_enter(&record, 5 + i);
	assert_int_equal(record.low, 5);
	sparse_enter(&record, 5);
	assert_int_equal(record.low, 5 + 256);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(record.seen[i], 0);
}

/* The server is asked once for each epoch, and by urgent repeats. A full block takes no more. */
static void test_full(void **state)
{
	unsigned told = 0, full = 0;

	(void)state;
	start_with(3, 16, 1, 100, 0);
	for (uint32_t s = 0; s < SPARSE_ADDENDS + 5; s++) {
		int why = push_one(0, s, 7, 1 << 21);

		told += out[1].bytes != 0;
		if (out[1].bytes) {
			assert_int_equal(s, SPARSE_ADDENDS / 2 - 1);
			assert_true(out[1].to == 4 && sparse_head(&out[1])->from == SPARSE_URGENT);
		}
		assert_int_equal(why, s < SPARSE_ADDENDS ? 0 : SPARSE_FULL);
		full += why == SPARSE_FULL;
	}
	assert_true(told == 1 && full == 5);
	assert_int_equal(push_one(1, 0, 80, 1), 0); /* the other block has room */
	assert_int_equal(freeze(1, 0), 0);
	assert_int_equal(push_one(0, SPARSE_ADDENDS, 7, 1), 0);
	assert_int_equal(out[1].bytes, 0);
	assert_int_equal(ask(SPARSE_READ, 1, 0), 0);
	assert_int_equal(((const int32_t *)sparse_body(&out[0]))[2], SPARSE_ADDENDS << 21);
	sparse_bare(&packet, SPARSE_PUSH, 1, 1, 0);
	packet.header.from = SPARSE_URGENT | SPARSE_VOID;
	assert_int_equal(give(0), 0);
	assert_int_equal(out[1].to, 4);
	assert_int_equal(give(0), 0); /* told already */
	assert_int_equal(out[1].bytes, 0);
	packet.header.flags |= WIRE_RESENT; /* the worker still waits: the news may be lost */
	assert_int_equal(give(0), 0);
	assert_int_equal(out[1].to, 4);
}

static void test_durable(void **state)
{
	(void)state;
	start_with(3, 16, 1, 100, 0);
	for (uint32_t s = 0; s < 4; s++)
		assert_int_equal(push_one(1, s == 3 ? 4 : s, 7, 1), 0); /* number 3 is lost */
	assert_int_equal(sparse_head(&out[0])->ack, 0);
	assert_int_equal(freeze(1, 0), 0);
	assert_int_equal(push_one(1, 3, 7, 1), 0);
	assert_int_equal(sparse_head(&out[0])->ack, 0);
	assert_int_equal(ask(SPARSE_RELEASE, 1, 0), 0);
	assert_int_equal(out[1].to, 3);
	assert_int_equal(out[1].bytes, WIRE_HEADER + 8);
	assert_int_equal(((const uint32_t *)sparse_body(&out[1]))[0], 0);
	assert_int_equal(((const uint32_t *)sparse_body(&out[1]))[1], 3);
	lane_state.left = 2; /* who has left is told nothing */
	assert_int_equal(push_one(1, 3, 7, 1), 0);
	assert_int_equal(out[0].bytes, 0);
	lane_state.left = 0;
	assert_int_equal(push_one(1, 3, 7, 1), 0);
	assert_int_equal(sparse_head(&out[0])->ack, 3);
	assert_int_equal(freeze(2, 0), 0);
	assert_int_equal(ask(SPARSE_READ, 2, 2), 0);
	assert_int_equal(((const struct sparse_record *)sparse_body(&out[0]))[1].durable, 3);
	assert_int_equal(((const struct sparse_record *)sparse_body(&out[0]))[1].low, 5);
}

/* ---- values for workers ---- */

static int write_block(uint32_t block, uint32_t number, uint64_t rows, uint32_t first)
{
	uint64_t *words = sparse_payload(&packet);
	uint32_t n = (uint32_t)__builtin_popcountll(rows), width = lane()->setup.width;

	sparse_bare(&packet, SPARSE_WRITE, server, number, (uint16_t)lane()->generation);
	packet.header.ack = block;
	words[0] = rows;
	for (uint32_t i = 0; i < n * width; i++)
		((uint32_t *)(words + 1))[i] = first + i;
	return give(sparse_block_bytes(n, width));
}

/* What a PULL of these rows gives: the first value of each row that came. */
static uint32_t pull(const uint16_t *rows, uint32_t n, uint32_t *first)
{
	const struct sparse_rows *got;
	uint32_t bytes;

	sparse_bare(&packet, SPARSE_PULL, 0, 77, (uint16_t)lane()->generation);
	bytes = sparse_fill(&packet, rows, n, lane()->setup.width, NULL);
	assert_int_equal(give(bytes), 0);
	got = sparse_body(&out[0]);
	assert_int_equal(out[0].position, 77);
	assert_int_equal(out[0].bytes, WIRE_HEADER + sparse_rows_bytes(got->n, got->width, 1));
	for (uint32_t i = 0; i < got->n; i++)
		first[i] = sparse_values(out[0].data + WIRE_HEADER, got->n)[i * got->width];
	return got->n;
}

static void test_values(void **state)
{
	const uint16_t rows[] = { 0, 2, 20, 21, 40 };
	uint32_t first[5] = { 0 };

	(void)state;
	start_with(2, 16, 3, 41, 1); /* 20 rows in a block, 1 in the last */
	assert_int_equal(pull(rows, 5, first), 0);
	assert_int_equal(write_block(0, 10, 5, 100), 0);
	assert_int_equal(write_block(1, 11, 2, 200), 0);
	assert_int_equal(pull(rows, 5, first), 3);
	assert_true(first[0] == 100 && first[1] == 103 && first[2] == 200);
	assert_int_equal(write_block(0, 10, 5, 900), 0); /* late copies */
	assert_int_equal(write_block(0, 9, 4, 900), 0);
	assert_int_equal(write_block(0, 12, 1, 300), 0);
	assert_int_equal(write_block(2, 13, 1, 400), 0);
	assert_int_equal(pull(rows, 5, first), 4);
	assert_true(first[0] == 300 && first[1] == 103 && first[3] == 400);
	assert_int_equal(write_block(2, 14, 2, 1), SPARSE_BAD); /* there is no such row */
	assert_int_equal(write_block(0, 14, 1 << 20, 1), SPARSE_BAD);
	assert_int_equal(write_block(3, 14, 1, 1), SPARSE_BAD);
	assert_int_equal(write_block(-1u, 14, 1, 1), SPARSE_BAD);
	packet.header.ack = 0;
	assert_int_equal(give(16), SPARSE_BAD);
	assert_int_equal(give(0), SPARSE_BAD);
	assert_int_equal(freeze(1, 1), 0); /* a new map: no values */
	assert_int_equal(pull(rows, 5, first), 0);
	packet.header.scale = 0;
	assert_int_equal(give(24), SPARSE_OTHER_MAP);
	assert_int_equal(write_block(0, 5, 4, 500), 0);
	assert_int_equal(pull(rows, 5, first), 1);
	assert_int_equal(first[0], 500);
	packet.header.scale = 0;
	assert_int_equal(give(24), SPARSE_OTHER_MAP);
	start_with(2, 16, 3, 41, 0); /* without a cache */
	assert_int_equal(write_block(0, 1, 1, 1), SPARSE_BAD);
	assert_int_equal(pull(rows, 5, first), 0);
}

/* The values of a PULL have to fit the answer. */
static void test_pull_room(void **state)
{
	uint16_t rows[40];
	uint32_t fit = sparse_rows_fit(WIRE_PAYLOAD_MIN, 3), first[40] = { 0 };

	(void)state;
	for (uint16_t i = 0; i < 40; i++)
		rows[i] = i;
	start_with(2, 16, 3, 41, 1);
	assert_int_equal(write_block(0, 1, (1 << 20) - 1, 0), 0);
	assert_int_equal(pull(rows, fit, first), fit);
	assert_int_equal(first[fit - 1], 3 * (fit - 1));
	sparse_bare(&packet, SPARSE_PULL, 0, 0, 0);
	assert_int_equal(give(sparse_fill(&packet, rows, fit + 1, 3, NULL)), SPARSE_BAD);
	sparse_bare(&packet, SPARSE_PULL, 0, 0, 0);
	rows[1] = 0;
	assert_int_equal(give(sparse_fill(&packet, rows, 2, 3, NULL)), SPARSE_BAD);
}

/* ---- against a plain model ---- */

#define MODEL_ROWS 4000u
#define MODEL_WIDTH 24u
static int32_t model[MODEL_ROWS * MODEL_WIDTH]; /* since the last flush */
static uint64_t random_state = 1;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % below;
}

/* Rows that ascend; several in one block and gaps. */
static uint32_t draw_rows(uint16_t *rows, uint32_t most)
{
	uint32_t n = draw(most + 1), row = draw(lane()->setup.rows), i;

	for (i = 0; i < n && row < lane()->setup.rows; i++) {
		rows[i] = (uint16_t)row;
		row += 1 + (draw(4) ? 0 : draw(lane()->setup.rows / 8 + 1));
	}
	return i;
}

static void push_random(uint8_t child, uint32_t sequence, uint32_t payload)
{
	static uint16_t rows[2048];
	static uint32_t values[4096];
	uint32_t width = lane()->setup.width, n = draw_rows(rows, sparse_rows_fit(payload, width));

	for (uint32_t i = 0; i < n * width; i++)
		values[i] = draw(2 << 21) - (1u << 21);
	assert_int_equal(push(child, sequence, rows, n, values), 0);
	if (draw(3) == 0)
		assert_int_equal(give(WIRE_PAYLOAD_MIN), 0); /* a repeat, whatever its length */
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < width; k++)
			model[rows[i] * width + k] += (int32_t)values[i * width + k];
}

/* Reads all blocks: they are the model's. The bits name the dirty ones. */
static void compare_flush(uint32_t epoch)
{
	const uint32_t width = lane()->setup.width, per = lane()->per_block,
		       blocks = lane()->blocks,
		       bits_at = blocks + sparse_record_pages(lane()->payload);
	static uint64_t bits[64];

	memset(bits, 0, sizeof(bits));
	for (uint32_t i = 0; i < sparse_bit_pages(lane()->payload, blocks); i++) {
		assert_int_equal(ask(SPARSE_READ, epoch, bits_at + i), 0);
		memcpy(&bits[i * sparse_page_bits(lane()->payload) / 64], sparse_body(&out[0]),
		       out[0].bytes - WIRE_HEADER);
	}
	for (uint32_t block = 0; block < blocks; block++) {
		const uint64_t *page = sparse_body(&out[0]);
		const int32_t *sums = (const int32_t *)(page + 1);

		assert_int_equal(ask(SPARSE_READ, epoch, block), 0);
		assert_int_equal(page[0] != 0, bits[block / 64] >> block % 64 & 1);
		for (uint32_t row = 0; row < per && block * per + row < lane()->setup.rows; row++) {
			int32_t *want = &model[(block * per + row) * width];

			for (uint32_t k = 0; k < width; k++)
				if (want[k] != (page[0] >> row & 1 ? sums[k] : 0))
					fail_msg("row %u of block %u", row, block);
			sums += page[0] >> row & 1 ? width : 0;
			memset(want, 0, 4ull * width);
		}
		assert_int_equal(out[0].bytes,
		                 WIRE_HEADER + 8 +
		                         sparse_pad((uint32_t)((const char *)sums -
		                                               (const char *)(page + 1))));
	}
}

static void run_model(uint32_t children, uint32_t payload, uint32_t width, uint32_t caches)
{
	uint32_t cells = 256, rows = sparse_rows_max(cells, payload, width, caches);
	uint32_t sequences[64] = { 0 };

	rows = rows < MODEL_ROWS ? rows : MODEL_ROWS;
	start(children, cells, payload);
	assert_int_equal(give(sparse_set(&packet, server, width, rows, caches)), 0);
	for (uint32_t epoch = 1; epoch < 8; epoch++) {
		for (unsigned i = draw(100); i; i--) {
			uint8_t child = (uint8_t)draw(children - 1);

			push_random(child, sequences[child]++, payload);
		}
		assert_int_equal(freeze(epoch, 0), 0);
		if (draw(2)) { /* workers go on */
			static int32_t kept[MODEL_ROWS * MODEL_WIDTH],
				later[MODEL_ROWS * MODEL_WIDTH];

			memcpy(kept, model, sizeof(model));
			memset(model, 0, sizeof(model));
			push_random(0, sequences[0]++, payload);
			memcpy(later, model, sizeof(model));
			memcpy(model, kept, sizeof(model));
			compare_flush(epoch);
			memcpy(model, later, sizeof(model));
		} else {
			compare_flush(epoch);
		}
		assert_int_equal(ask(SPARSE_RELEASE, epoch, 0), 0);
	}
	assert_int_equal(freeze(8, 0), 0);
	compare_flush(8);
}

static void test_model(void **state)
{
	static const uint32_t payloads[] = { 256, 1408, 8944 };

	(void)state;
	for (uint64_t i = 0; i < test_cases("lanes", 60); i++)
		run_model(2 + draw(63), payloads[draw(3)], 1 + draw(MODEL_WIDTH), draw(2));
}

/* ---- threads ---- */

#define PUSHERS 3u
#define THREAD_ROWS 150u

struct pusher {
	pthread_t thread;
	uint8_t child;
	uint32_t packets, refused;
};

/* The sum of all packets of all threads in each row is known: each pushes all rows once. */
static void *push_all(void *context)
{
	struct pusher *pusher = context;
	union sparse_packet *own = malloc(sizeof(*own));
	struct engine_packet *answers = malloc(2 * sizeof(*answers));
	uint16_t rows[30];
	uint32_t values[30], bytes;

	for (uint32_t s = 0; own && answers && s < pusher->packets;) {
		for (uint32_t i = 0; i < 30; i++) {
			rows[i] = (uint16_t)(s % 5 + 5 * i);
			values[i] = s + 1;
		}
		sparse_bare(own, SPARSE_PUSH, pusher->child, s, 0);
		bytes = sparse_fill(own, rows, 30, 1, values);
		engine_sparse.take(&pool, &own->header, bytes, answers);
		if (sparse_refused(answers))
			pusher->refused++; /* a block is full */
		else
			s++;
	}
	free(answers);
	free(own);
	return NULL;
}

/* Adds the flush to `sums`. All rows of a packet are in it, or none. */
static void flush_once(uint32_t epoch, uint64_t sums[THREAD_ROWS])
{
	uint64_t low[PUSHERS], want = 0, total = 0;
	static uint64_t before[PUSHERS];

	assert_int_equal(freeze(epoch, 0), 0);
	assert_int_equal(ask(SPARSE_READ, epoch, lane()->blocks), 0);
	for (unsigned i = 0; i < PUSHERS; i++) {
		low[i] = ((const struct sparse_record *)sparse_body(&out[0]))[i].low;
		if (epoch == 1)
			before[i] = 0;
		for (uint64_t s = before[i]; s < low[i]; s++)
			want += 30 * (s + 1);
		before[i] = low[i];
	}
	for (uint32_t block = 0; block < lane()->blocks; block++) {
		const uint64_t *page = sparse_body(&out[0]);
		const uint32_t *values = (const uint32_t *)(page + 1);

		assert_int_equal(ask(SPARSE_READ, epoch, block), 0);
		for (uint64_t left = page[0]; left; left &= left - 1, values++) {
			sums[block * lane()->per_block + (unsigned)__builtin_ctzll(left)] +=
				*values;
			total += *values;
		}
	}
	assert_int_equal(total, want);
	assert_int_equal(ask(SPARSE_RELEASE, epoch, 0), 0);
}

static void test_threads(void **state)
{
	const uint32_t packets = (uint32_t)test_count("packets", 5000, 1500) / 5 * 5;
	struct pusher pushers[PUSHERS];
	uint64_t sums[THREAD_ROWS] = { 0 }, all = 0;
	uint32_t epoch = 1;

	(void)state;
	start_with(PUSHERS + 1, 64, 1, THREAD_ROWS, 0);
	for (uint8_t i = 0; i < PUSHERS; i++) {
		pushers[i] = (struct pusher){ .child = i, .packets = packets };
		assert_int_equal(pthread_create(&pushers[i].thread, NULL, push_all, &pushers[i]),
		                 0);
	}
	do {
		flush_once(epoch++, sums);
		all = 0;
		for (unsigned i = 0; i < THREAD_ROWS; i++)
			all += sums[i];
	} while (all < PUSHERS * 30 * (uint64_t)packets * (packets + 1) / 2);
	for (unsigned i = 0; i < PUSHERS; i++)
		pthread_join(pushers[i].thread, NULL);
	flush_once(epoch, sums);
	for (unsigned i = 0; i < THREAD_ROWS; i++) {
		uint64_t want = 0;

		for (uint64_t s = i % 5; s < packets; s += 5)
			want += PUSHERS * (s + 1);
		assert_int_equal(sums[i], want);
	}
	printf("%u flushes\n", epoch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_setup),        cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_bad_rows),     cmocka_unit_test(test_table),
		cmocka_unit_test(test_epochs),       cmocka_unit_test(test_window),
		cmocka_unit_test(test_whole_window), cmocka_unit_test(test_full),
		cmocka_unit_test(test_durable),      cmocka_unit_test(test_values),
		cmocka_unit_test(test_pull_room),    cmocka_unit_test(test_model),
		cmocka_unit_test(test_threads),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(pool.cells);
	return failed;
}
