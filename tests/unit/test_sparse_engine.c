/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sparse engine. A small world is explored exhaustively: two workers, a server, and a network
 * in which every packet that was sent may arrive at any time, any number of times, or never. In
 * every reachable state: each packet that was acknowledged is in the sums exactly once, all its
 * rows are in the same flush, the records of a flush describe its sums, and what a worker is told
 * to be durable was read before. And if packets arrive from there on, all is flushed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sparse_packets.h"

#include <stdbool.h>

#define WORKERS 2u
#define SERVER WORKERS
#define PACKETS_MAX 3u
#define EPOCHS_MAX 3u
#define CELLS 8u
#define PAYLOAD WIRE_PAYLOAD_MIN
#define ROWS 100u /* 62 in block 0, the others in block 1 */
#define NEAR_ROW 3u
#define FAR_ROW 70u

struct limits {
	const char *name;
	unsigned workers; /* that push */
	unsigned packets; /* of each */
	unsigned epochs;
	size_t states;
};

static const struct limits *limits;

/* A worker's packet. */
struct push {
	uint8_t is_sent, is_void, is_acked;
	uint16_t generation;
};

struct world {
	struct engine_lane lane;
	uint64_t cells[CELLS * (sizeof(struct engine_cell) + PAYLOAD) / 8];
	struct push pushes[WORKERS][PACKETS_MAX];
	uint16_t known[WORKERS];          /* generation that the worker knows */
	uint8_t epoch;                    /* of the last FREEZE that the server sent */
	uint16_t freezes[EPOCHS_MAX + 3]; /* generation of each FREEZE */
	uint8_t heard;                    /* epoch of which the server knows that it is frozen */
	uint8_t logged;                   /* epoch that the server has read */
	uint8_t released;                 /* epoch of which the server knows that it is released */
	uint32_t sums[2];                 /* of all flushes: NEAR_ROW, FAR_ROW */
	struct sparse_record records[WORKERS]; /* of the last flush */
};

static struct engine_packet out[2];

static struct engine_pool pool_of(struct world *world)
{
	return (struct engine_pool){ .lane = &world->lane,
		                     .cells = (uint8_t *)world->cells,
		                     .step = engine_cell_bytes(PAYLOAD) };
}

static enum engine_verdict give(struct world *world, union sparse_packet *packet, uint32_t bytes)
{
	struct engine_pool pool = pool_of(world);

	return engine_sparse.take(&pool, &packet->header, bytes, out);
}

/* A sum of these shows how often each packet is in it. */
static uint32_t value_of(unsigned worker, unsigned sequence)
{
	return 1u << 3 * (worker * PACKETS_MAX + sequence);
}

static void world_start(struct world *world)
{
	static union sparse_packet packet;
	uint32_t bytes = sparse_set(&packet, SERVER, 1, ROWS, 0);

	memset(world, 0, sizeof(*world));
	world->lane.members = (1u << (WORKERS + 1)) - 1;
	world->lane.cells = CELLS;
	world->lane.payload = PAYLOAD;
	assert_int_equal(give(world, &packet, bytes), ENGINE_ACK);
	assert_int_equal(sparse_refused(&out[0]), 0);
}

/* ---- what is where ---- */

/* The sums of a packet's two rows in a bank. */
static void bank_sums(struct world *world, uint32_t bank, uint32_t sums[2])
{
	static const uint32_t rows[2] = { NEAR_ROW, FAR_ROW };
	struct engine_pool pool = pool_of(world);
	const struct sparse_lane *lane = sparse_lane_of(&pool);

	for (unsigned i = 0; i < 2; i++) {
		struct engine_cell *cell = sparse_block(&pool, bank, rows[i] / lane->per_block);
		uint32_t row = rows[i] % lane->per_block;

		sums[i] = 0;
		if (sparse_state(cell)->dirty >> row & 1)
			sums[i] = ((const sparse_value *)cell->sum)[row];
	}
}

static struct sparse_record live_record(struct world *world, unsigned worker)
{
	struct engine_pool pool = pool_of(world);
	const struct sparse_cell *state = sparse_state(engine_cell(&pool, worker));
	struct sparse_record record = { .low = state->low };

	memcpy(record.seen, state->seen, sizeof(record.seen));
	return record;
}

/* The sum of the packets that a record names. */
static uint32_t record_sum(const struct world *world, unsigned worker,
                           const struct sparse_record *record)
{
	uint32_t sum = 0;

	for (unsigned s = 0; s < limits->packets; s++)
		if (sparse_record_has(record, s) && world->pushes[worker][s].is_void != 2)
			sum += value_of(worker, s);
	return sum;
}

/* Everything below this number is durable, a worker hears. */
static void hear_durable(const struct world *world, unsigned worker, uint32_t durable)
{
	for (unsigned s = 0; s < durable; s++)
		assert_true(sparse_record_has(&world->records[worker], s));
}

/* ---- actions ---- */

static void hear_news(const struct world *world)
{
	if (!out[1].bytes)
		return;
	assert_int_equal(sparse_head(&out[1])->op, SPARSE_NEWS);
	if (sparse_head(&out[1])->from & SPARSE_URGENT)
		assert_true(out[1].to == 1u << SERVER && out[1].bytes == WIRE_HEADER);
	else
		for (unsigned w = 0; w < WORKERS; w++)
			hear_durable(world, w, ((const uint32_t *)sparse_body(&out[1]))[w]);
}

static void hear_push(struct world *world, unsigned worker, unsigned sequence)
{
	const struct wire_header *answer = sparse_head(&out[0]);
	struct push *push = &world->pushes[worker][sequence];

	assert_true(out[0].bytes == WIRE_HEADER && out[0].to == 1u << worker);
	assert_int_equal(out[0].position, sequence);
	hear_durable(world, worker, answer->ack);
	if (!sparse_refused(&out[0])) {
		push->is_acked = 1;
		return;
	}
	assert_int_equal(sparse_refused(&out[0]), SPARSE_OTHER_MAP);
	assert_false(push->is_acked);
	world->known[worker] = answer->scale;
	if (!push->is_void)
		push->is_void = 1;
}

/* A copy of a PUSH arrives. `hears`: its answer arrives too. */
static void push_arrives(struct world *world, unsigned worker, unsigned sequence, bool as_void,
                         bool hears)
{
	static const uint16_t rows[2] = { NEAR_ROW, FAR_ROW };
	uint32_t values[2] = { value_of(worker, sequence), value_of(worker, sequence) };
	struct sparse_record before = live_record(world, worker), after;
	struct push *push = &world->pushes[worker][sequence];
	static union sparse_packet packet;
	uint32_t bytes = 0;

	sparse_bare(&packet, SPARSE_PUSH, (uint8_t)worker, sequence, push->generation);
	if (as_void)
		packet.header.from = SPARSE_VOID;
	else
		bytes = sparse_fill(&packet, rows, 2, 1, values);
	if (sequence == 1)
		packet.header.from |= SPARSE_URGENT;
	give(world, &packet, bytes);
	hear_news(world);
	after = live_record(world, worker);
	if (!sparse_record_has(&before, sequence) && sparse_record_has(&after, sequence)) {
		/* After a refusal that was heard, no copy with rows is added. */
		assert_true(as_void || !push->is_void);
		if (as_void)
			push->is_void = 2;
	}
	if (hears)
		hear_push(world, worker, sequence);
}

static bool push_acts(struct world *world, unsigned action)
{
	unsigned worker = action / 4 % WORKERS, sequence = action / 4 / WORKERS;
	bool as_void = action & 1, hears = action & 2;
	struct push *push = &world->pushes[worker][sequence];

	if (worker >= limits->workers || sequence >= limits->packets || (as_void && !push->is_void))
		return false;
	if (!push->is_sent) {
		push->is_sent = 1;
		push->generation = world->known[worker];
	}
	push_arrives(world, worker, sequence, as_void, hears);
	return true;
}

/* The server sends the next FREEZE, perhaps with a new map. It has not arrived yet. */
static bool server_begins(struct world *world, bool new_map)
{
	if (world->epoch == limits->epochs || world->released != world->epoch)
		return false;
	world->freezes[world->epoch + 1] = world->freezes[world->epoch] + new_map;
	world->epoch++;
	return true;
}

static bool freeze_arrives(struct world *world, uint8_t epoch, bool hears)
{
	static union sparse_packet packet;

	if (!epoch || epoch > world->epoch)
		return false;
	sparse_bare(&packet, SPARSE_FREEZE, SERVER, epoch, world->freezes[epoch]);
	give(world, &packet, 0);
	if (epoch == world->epoch)
		assert_int_equal(sparse_refused(&out[0]), 0);
	else
		assert_int_equal(sparse_refused(&out[0]) && sparse_head(&out[0])->pos == epoch, 0);
	if (hears && !sparse_refused(&out[0]) && epoch == world->epoch)
		world->heard = epoch;
	return true;
}

static const uint64_t *read_page(struct world *world, uint32_t page)
{
	static union sparse_packet packet;

	sparse_bare(&packet, SPARSE_READ, SERVER, world->epoch, 0);
	packet.header.ack = page;
	give(world, &packet, 0);
	assert_int_equal(sparse_refused(&out[0]), 0);
	assert_true(sparse_head(&out[0])->ack == page && out[0].position == world->epoch);
	return sparse_body(&out[0]);
}

/* The server reads the frozen bank and its records. The flush has exactly what is new in them. */
static bool server_reads(struct world *world)
{
	const uint32_t records = sparse_page_records(PAYLOAD);
	uint32_t flush[2] = { 0, 0 }, want = 0, blocks = sparse_blocks(ROWS, 62);

	if (world->heard != world->epoch || world->logged == world->epoch)
		return false;
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t *page = read_page(world, i);
		uint64_t bit = 1ull << (i ? FAR_ROW - 62 : NEAR_ROW);

		assert_true(page[0] == 0 || page[0] == bit);
		flush[i] = page[0] ? (uint32_t)page[1] : 0;
		world->sums[i] += flush[i];
	}
	assert_true(records >= WORKERS && blocks == 2);
	for (unsigned w = 0; w < WORKERS; w++) {
		struct sparse_record record =
			((const struct sparse_record *)read_page(world, blocks))[w];

		want += record_sum(world, w, &record) - record_sum(world, w, &world->records[w]);
		world->records[w] = record;
	}
	assert_true(flush[0] == want && flush[1] == want);
	assert_int_equal(*read_page(world, blocks + sparse_record_pages(PAYLOAD)), want ? 3 : 0);
	world->logged = world->epoch;
	return true;
}

static bool release_arrives(struct world *world, uint8_t epoch, bool hears)
{
	static union sparse_packet packet;

	if (!epoch || epoch > world->logged)
		return false;
	sparse_bare(&packet, SPARSE_RELEASE, SERVER, epoch, 0);
	give(world, &packet, 0);
	hear_news(world);
	if (hears && !sparse_refused(&out[0]) && epoch == world->epoch)
		world->released = epoch;
	return true;
}

#define PUSH_ACTIONS (4 * WORKERS * PACKETS_MAX)
#define EPOCH_ACTIONS (2 * (EPOCHS_MAX + 1))
#define ACTIONS (PUSH_ACTIONS + 3 + 2 * EPOCH_ACTIONS)

static bool act(struct world *world, unsigned action)
{
	if (action < PUSH_ACTIONS)
		return push_acts(world, action);
	action -= PUSH_ACTIONS;
	if (action < 2)
		return server_begins(world, action);
	if (action == 2)
		return server_reads(world);
	action -= 3;
	if (action < EPOCH_ACTIONS)
		return freeze_arrives(world, (uint8_t)(action / 2), action & 1);
	action -= EPOCH_ACTIONS;
	return release_arrives(world, (uint8_t)(action / 2), action & 1);
}

/* From here on nothing is lost: all packets end in the log. */
static void check_ends(struct world world)
{
	for (unsigned s = 0; s < limits->packets; s++)
		for (unsigned w = 0; w < limits->workers; w++) {
			push_acts(&world, 4 * (s * WORKERS + w) + 2);
			push_acts(&world, 4 * (s * WORKERS + w) + 3);
			assert_true(world.pushes[w][s].is_acked);
		}
	for (unsigned i = 0; i < 2; i++) {
		if (world.released == world.epoch) {
			world.freezes[world.epoch + 1] = world.freezes[world.epoch];
			world.epoch++;
		}
		freeze_arrives(&world, world.epoch, true);
		server_reads(&world);
		release_arrives(&world, world.epoch, true);
		assert_int_equal(world.released, world.epoch);
	}
	for (unsigned w = 0; w < limits->workers; w++)
		assert_int_equal(world.records[w].low, limits->packets);
}

static uint64_t hash_world(const struct world *world)
{
	const uint64_t *words = (const uint64_t *)world;
	uint64_t hash = 1469598103934665603ull;

	for (size_t i = 0; i < sizeof(*world) / 8; i++)
		if (words[i])
			hash = (hash ^ (words[i] + i * 0x9e3779b97f4a7c15ull)) *
			               0xff51afd7ed558ccdull ^
			       hash >> 29;
	return hash | 1;
}

static void check(const struct world *world)
{
	static struct world copy;
	uint32_t live[2], frozen[2], want = 0;
	struct sparse_lane *lane = (struct sparse_lane *)&copy.lane;

	copy = *world;
	bank_sums(&copy, lane->bank, live);
	bank_sums(&copy, !lane->bank, frozen);
	for (unsigned w = 0; w < WORKERS; w++) {
		struct sparse_record record = live_record(&copy, w);

		want += record_sum(world, w, &record);
		for (unsigned s = 0; s < limits->packets; s++)
			if (world->pushes[w][s].is_acked)
				assert_true(sparse_record_has(&record, s));
	}
	for (unsigned i = 0; i < 2; i++) {
		if (lane->is_frozen && world->logged != lane->epoch)
			live[i] += frozen[i];
		if (!lane->is_frozen)
			assert_int_equal(frozen[i], 0);
		assert_int_equal(world->sums[i] + live[i], want);
	}
	if ((hash_world(world) >> 8) % 16 == 0)
		check_ends(copy);
}

#include "explore.h"

static void test_explore(void **state)
{
	static const struct limits worlds[] = {
		{ "two workers, two packets, two flushes", 2, 2, 2, 500000 },
		{ "one worker, three packets, three flushes", 1, 3, 3, 100000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
		limits = &worlds[i];
		explore_world(limits->name, 0, limits->states);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_explore) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
