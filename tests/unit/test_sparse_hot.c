/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers' senders, the sparse engine and the server's flusher, in a network that loses, repeats
 * and reorders packets, with incarnations that end at any moment. In the end each row has to have
 * exactly what was pushed, and each push has to have ended once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/sparse.h"
#include "sparse/hot/hot_flusher.h"
#include "sparse/hot/hot_number.h"
#include "sparse/hot/hot_puller.h"
#include "short.h"
#include "sparse/hot/hot_sender.h"

#define WORKERS 3u
#define SERVER WORKERS
#define CELLS 256u
#define PAYLOAD 256u
#define WIDTH 3u
#define ROWS 150u
#define PACKETS 4096u
#define TAGS 4096u
#define US 1000ull
#define MS 1000000ull
#define SLOW_PACKET (230 * US) /* what a packet takes on a slow link */
#define SLOW_QUEUE (40 * MS)   /* what its queue holds; a window of 256 packets is longer */
#define SLOW_BURST (12 * MS)   /* of another connection */

struct letter {
	uint64_t at; /* ns; 0: the place is free */
	int to;      /* a child, or -1: the aggregator */
	uint32_t bytes;
	_Alignas(8) uint8_t data[WIRE_HEADER + PAYLOAD];
};

struct world {
	uint64_t now, random;
	unsigned loss;             /* packets of 1000 that are lost, and as many come twice */
	bool is_slow;              /* workers have slow links */
	uint64_t free_at[WORKERS]; /* when the queue of such a link is empty */
	uint32_t dropped;          /* packets that met a full queue */
	uint32_t arrived;          /* pushes of worker 1 at the aggregator */
	uint32_t news_lost;        /* the next so many NEWS to the server get lost */
	struct letter letters[PACKETS];
	unsigned places; /* of `letters`: all behind them are free */
	struct engine_lane lane;
	struct engine_pool pool;
	struct hot_sender senders[WORKERS];
	struct hot_flusher flusher;
	bool is_open, keeps_map;
	uint64_t log_at; /* when the round is logged; 0: none waits */
	uint64_t log_ns; /* how long that takes; 0: up to 2 ms */
	uint32_t generation;
	struct sparse_record logged[WORKERS]; /* of this incarnation */
	int64_t sums[ROWS][WIDTH];            /* by key, as the server has them */
	int64_t pushed[ROWS][WIDTH];
	uint32_t left[TAGS]; /* parts of a push that have not ended */
	uint32_t tags, deaths, flushes, cold, remapped, renumbered;
};

static uint32_t layout; /* of all worlds that are made now */

static uint64_t draw(struct world *world)
{
	world->random ^= world->random << 13;
	world->random ^= world->random >> 7;
	world->random ^= world->random << 17;
	return world->random;
}

static uint32_t below(struct world *world, uint32_t n)
{
	return (uint32_t)(draw(world) >> 20) % n;
}

/* The map of a generation: which key a row has. */
static uint32_t key_of(uint32_t generation, uint32_t row)
{
	return (row + generation * 37) % ROWS;
}

static uint32_t row_of(uint32_t generation, uint32_t key)
{
	return (key + ROWS * 37 - generation * 37 % ROWS) % ROWS;
}

/* ---- the network ---- */

/* When a packet of this worker has crossed its link; 0: the queue is full. */
static uint64_t cross_link(struct world *world, unsigned worker)
{
	uint64_t *free_at = &world->free_at[worker];

	if (!world->is_slow || worker >= WORKERS)
		return world->now;
	if (*free_at < world->now)
		*free_at = world->now;
	if (*free_at - world->now > SLOW_QUEUE) {
		world->dropped++;
		return 0;
	}
	return *free_at += SLOW_PACKET;
}

static void post_letter(struct world *world, int to, const void *data, uint32_t bytes)
{
	const struct wire_header *header = data;
	uint64_t left_at = to < 0 ? cross_link(world, header->child) : world->now;

	if (!left_at)
		return;
	for (unsigned copies = 1 + (below(world, 1000) < world->loss); copies; copies--) {
		if (below(world, 1000) < world->loss)
			continue;
		for (unsigned i = 0; i < PACKETS; i++) {
			struct letter *letter = &world->letters[i];

			if (letter->at)
				continue;
			letter->at = left_at + 50 * US + below(world, 30) * US;
			if (below(world, 1000) < world->loss)
				letter->at += below(world, 3000) * US;
			letter->to = to;
			letter->bytes = bytes;
			memcpy(letter->data, data, bytes);
			if (i >= world->places)
				world->places = i + 1;
			break;
		}
	}
}

static void at_aggregator(struct world *world, const struct letter *letter)
{
	static struct engine_packet out[2];
	const struct wire_header *header = (const void *)letter->data;

	world->arrived +=
		header->op == SPARSE_PUSH && header->child == 1 && !(header->from & SPARSE_VOID);
	engine_sparse.take(&world->pool, header, letter->bytes - WIRE_HEADER, out);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned child = 0; out[k].bytes && child <= SERVER; child++) {
			const struct wire_header *answer = (const void *)out[k].data;

			if (!(out[k].to >> child & 1))
				continue;
			if (child == SERVER && answer->op == SPARSE_NEWS && world->news_lost) {
				world->news_lost--;
				continue;
			}
			if (child != SERVER)
				assert_int_equal(
					hot_sender_position(&world->senders[child], answer),
					out[k].position);
			post_letter(world, (int)child, out[k].data, out[k].bytes);
		}
}

static void deliver(struct world *world)
{
	for (unsigned i = 0; i < world->places; i++) {
		struct letter letter;

		if (!world->letters[i].at || world->letters[i].at > world->now)
			continue;
		letter = world->letters[i];
		world->letters[i].at = 0;
		if (letter.to < 0)
			at_aggregator(world, &letter);
		else if (letter.to == SERVER)
			hot_flusher_take(&world->flusher, (void *)letter.data, letter.bytes,
			                 world->now);
		else
			hot_sender_take(&world->senders[letter.to], (void *)letter.data,
			                letter.bytes, world->now);
	}
}

static void send_all(struct world *world)
{
	_Alignas(8) uint8_t packet[WIRE_PACKET_MAX];
	struct wire_header *header = (void *)packet;
	uint64_t position;
	uint32_t bytes;

	for (unsigned w = 0; w < WORKERS; w++)
		while ((bytes = hot_sender_next(&world->senders[w], world->now, packet,
		                                &position))) {
			header->child = (uint8_t)w;
			header->type = WIRE_DATA;
			assert_int_equal(engine_sparse.position(&world->pool, header), position);
			post_letter(world, -1, packet, bytes);
		}
	while ((bytes = hot_flusher_next(&world->flusher, world->now, packet))) {
		header->child = SERVER;
		header->type = WIRE_DATA;
		post_letter(world, -1, packet, bytes);
	}
	assert_true(!world->flusher.failed);
}

/* ---- worker and server ---- */

static void add_row(struct world *world, uint32_t key, const uint32_t *values)
{
	for (uint32_t i = 0; i < WIDTH; i++)
		world->sums[key][i] += (int32_t)values[i];
}

static void on_done(void *context, uint64_t tag)
{
	struct world *world = context;

	assert_true(tag < world->tags && world->left[tag] > 0);
	world->left[tag]--;
}

static int by_number(const void *a, const void *b)
{
	return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

/* Posts rows of these keys at a worker by the present map; without room they go to the server. */
static void route(struct world *world, unsigned worker, uint64_t tag, const uint32_t *keys,
                  const uint32_t *values, uint32_t n)
{
	struct hot_sender *sender = &world->senders[worker];
	uint16_t numbers[ROWS];
	uint32_t sorted[ROWS * WIDTH];
	struct hot_rows rows = { n, numbers, sorted };

	for (uint32_t i = 0; i < n; i++)
		numbers[i] = (uint16_t)row_of(world->generation, keys[i]);
	qsort(numbers, n, sizeof(*numbers), by_number);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < n; k++)
			if (keys[k] == key_of(world->generation, numbers[i]))
				memcpy(&sorted[i * WIDTH], &values[k * WIDTH], WIDTH * 4);
	if (world->is_open && hot_sender_room(sender) >= n) {
		world->left[tag] +=
			hot_sender_post(sender, tag, (uint16_t)world->generation, &rows);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		add_row(world, keys[i], values + (size_t)i * WIDTH);
	world->cold += n;
}

struct seat {
	struct world *world;
	unsigned worker;
};

static struct seat seats[WORKERS];

static void on_done_at(void *context, uint64_t tag)
{
	on_done(((struct seat *)context)->world, tag);
}

static void on_back(void *context, const struct hot_back *back)
{
	struct seat *seat = context;
	struct world *world = seat->world;
	uint32_t keys[ROWS];

	for (uint32_t i = 0; i < back->rows.n; i++)
		keys[i] = key_of(back->generation, back->rows.numbers[i]);
	if (back->is_lost) {
		for (uint32_t i = 0; i < back->rows.n; i++)
			add_row(world, keys[i], back->rows.values + (size_t)i * WIDTH);
		world->cold += back->rows.n;
	} else {
		route(world, seat->worker, back->tag, keys, back->rows.values, back->rows.n);
		world->remapped++;
	}
	if (!back->goes_on)
		on_done(world, back->tag);
}

/* Every seventh key is in no newer map, as far as a sender knows. */
static uint32_t on_renumber(void *context, uint16_t generation, uint32_t number)
{
	const struct seat *seat = context;
	uint32_t key = key_of(generation, number);

	if (key % 7 == 0)
		return HOT_NO_ROW;
	seat->world->renumbered++;
	return row_of(seat->world->senders[seat->worker].mapped, key);
}

static void push(struct world *world, unsigned worker)
{
	uint32_t keys[ROWS], values[ROWS * WIDTH], n = 0;
	uint64_t tag = world->tags++;

	for (uint32_t key = 0; key < ROWS; key++) {
		if (below(world, 10))
			continue;
		for (uint32_t i = 0; i < WIDTH; i++) {
			int32_t value = (int32_t)below(world, 2000001) - 1000000;

			values[n * WIDTH + i] = (uint32_t)value;
			world->pushed[key][i] += value;
		}
		keys[n++] = key;
	}
	world->left[tag] = 1;
	route(world, worker, tag, keys, values, n);
	on_done(world, tag);
}

static void log_flush(struct world *world)
{
	struct hot_flush flush;

	assert_true(hot_flusher_flush(&world->flusher, &flush));
	for (unsigned w = 0; w < WORKERS; w++)
		world->logged[w] = flush.records[w];
	for (uint32_t i = 0; i < flush.n; i++)
		add_row(world, key_of(flush.generation, flush.numbers[i]),
		        flush.values + (size_t)i * WIDTH);
	world->flushes++;
	hot_flusher_logged(&world->flusher);
}

static void serve(struct world *world)
{
	struct hot_flush flush;

	if (!hot_flusher_flush(&world->flusher, &flush))
		return;
	if (!world->log_at)
		world->log_at =
			world->now + (world->log_ns ? world->log_ns : below(world, 2000) * US);
	if (world->now < world->log_at)
		return;
	world->log_at = 0;
	log_flush(world);
}

/* ---- incarnations ---- */

static void open_world(struct world *world)
{
	struct hot_flusher_options flusher = { .workers = WORKERS,
		                               .payload = PAYLOAD,
		                               .setup = { .width = WIDTH,
		                                          .rows = ROWS,
		                                          .layout = layout,
		                                          .generation = world->generation },
		                               .every_ns = 2 * MS,
		                               .idle_ns = 10 * MS };

	memset(world->letters, 0, sizeof(world->letters));
	memset(world->logged, 0, sizeof(world->logged));
	memset(world->pool.cells, 0, CELLS * world->pool.step);
	world->lane = (struct engine_lane){ .members = (2ull << SERVER) - 1,
		                            .cells = CELLS,
		                            .payload = PAYLOAD };
	assert_true(engine_sparse.open(&world->pool));
	for (unsigned w = 0; w < WORKERS; w++) {
		struct hot_sender_options sender = { .child = w,
			                             .width = WIDTH,
			                             .payload = PAYLOAD,
			                             .kept = 512,
			                             .calls = { &seats[w], on_done_at, on_back,
			                                        on_renumber } };

		assert_true(hot_sender_open(&world->senders[w], &sender));
		hot_sender_remap(&world->senders[w], (uint16_t)world->generation);
	}
	assert_true(hot_flusher_open(&world->flusher, &flusher, world->now));
	world->is_open = true;
	world->log_at = 0;
}

/* The aggregator or the server dies: what is not in the log was never applied. */
static void die(struct world *world)
{
	world->is_open = false;
	world->deaths++;
	hot_flusher_close(&world->flusher);
	for (unsigned w = 0; w < WORKERS; w++) {
		hot_sender_lost(&world->senders[w], &world->logged[w]);
		assert_true(hot_sender_is_idle(&world->senders[w]));
		hot_sender_close(&world->senders[w]);
	}
}

static void step(struct world *world, unsigned death_in)
{
	world->now += 20 * US + below(world, 80) * US;
	deliver(world);
	serve(world);
	if (death_in && !below(world, death_in)) {
		die(world);
		open_world(world);
	}
	if (!world->keeps_map && !below(world, 300)) /* it takes effect with the next round */
		hot_flusher_remap(&world->flusher, ++world->generation);
	for (unsigned w = 0; w < WORKERS; w++) /* workers hear of it sooner or later */
		if (world->senders[w].mapped != world->generation && !below(world, 30))
			hot_sender_remap(&world->senders[w], (uint16_t)world->generation);
	send_all(world);
}

static bool is_settled(const struct world *world)
{
	for (uint32_t tag = 0; tag < world->tags; tag++)
		if (world->left[tag])
			return false;
	return true;
}

static void check_sums(const struct world *world)
{
	for (uint32_t key = 0; key < ROWS; key++)
		for (uint32_t i = 0; i < WIDTH; i++)
			assert_int_equal(world->sums[key][i], world->pushed[key][i]);
}

static struct world *world_new(uint64_t seed, unsigned loss)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_true(world);
	world->random = seed * 0x9e3779b97f4a7c15ull + 1;
	world->now = 1000 * MS;
	world->loss = loss;
	world->generation = 1;
	world->pool.lane = &world->lane;
	world->pool.step = engine_cell_bytes(PAYLOAD);
	world->pool.cells = calloc(CELLS, world->pool.step);
	for (unsigned w = 0; w < WORKERS; w++)
		seats[w] = (struct seat){ world, w };
	open_world(world);
	return world;
}

static void run(uint64_t seed, unsigned loss, unsigned death_in, struct world **out)
{
	struct world *world = world_new(seed, loss);
	unsigned steps = 0;

	while (world->tags < 300) {
		step(world, death_in);
		if (!below(world, 10))
			push(world, below(world, WORKERS));
		if (!below(world, 200))
			hot_sender_hurry(&world->senders[below(world, WORKERS)]);
	}
	for (; !is_settled(world) && steps < 200000; steps++)
		step(world, death_in);
	assert_true(is_settled(world));
	check_sums(world);
	*out = world;
}

static void end(struct world *world)
{
	die(world);
	free(world->pool.cells);
	free(world);
}

/* ---- tests ---- */

static void test_quiet(void **state)
{
	struct world *world;

	(void)state;
	run(1, 0, 0, &world);
	assert_true(world->flushes > 10);
	assert_true(world->remapped > 0); /* maps have changed, and packets met another one */
	assert_true(world->renumbered > 0);
	for (unsigned w = 0; w < WORKERS; w++)
		assert_true(world->senders[w].stats.packets > 100);
	end(world);
}

static void test_lossy(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < (test_is_short() ? 3 : 6); seed++) {
		struct world *world;

		run(seed, 50, 0, &world);
		assert_true(world->senders[0].stats.resent > 0);
		end(world);
	}
}

/* Queues of slow links neither overflow, nor does a wait in them look like a loss. */
static void test_slow_links(void **state)
{
	struct world *world = world_new(5, 0);
	uint64_t packets = 0, resent = 0;

	(void)state;
	world->is_slow = world->keeps_map = true;
	while (world->tags < (test_is_short() ? TAGS / 2 : TAGS)) {
		unsigned worker = below(world, WORKERS);

		step(world, 0);
		if (world->tags < TAGS && hot_sender_room(&world->senders[worker]) > ROWS)
			push(world, worker);
		if (!below(world, 500) && world->free_at[worker] < world->now + SLOW_QUEUE / 3)
			world->free_at[worker] = world->now + SLOW_BURST;
	}
	for (int i = 0; i < 200000 && !is_settled(world); i++)
		step(world, 0);
	assert_true(is_settled(world));
	check_sums(world);
	for (unsigned w = 0; w < WORKERS; w++) {
		packets += world->senders[w].stats.packets;
		resent += world->senders[w].stats.resent;
	}
	assert_true(packets >= world->tags);
	assert_int_equal(world->dropped, 0);
	assert_true(resent * 100 < packets);
	end(world);
}

static void test_deaths(void **state)
{
	unsigned deaths = 0;

	(void)state;
	for (uint64_t seed = 1; seed < (test_is_short() ? 5 : 20); seed++) {
		struct world *world;

		run(seed, seed % 3 * 40, 400, &world);
		assert_true(world->flushes > 5);
		assert_true(!world->deaths || world->cold > 0);
		deaths += world->deaths;
		end(world);
	}
	assert_true(deaths > (test_is_short() ? 12 : 60));
}

/* A worker that waits is heard before the time of a round, also if the news of it is lost. */
static void hurry_once(uint32_t news_lost)
{
	struct world *world = world_new(3, 0);
	uint64_t begin;

	world->keeps_map = true;
	world->flusher.options.every_ns = world->flusher.options.idle_ns = 10000 * MS;
	for (int i = 0; i < 50; i++)
		step(world, 0);
	push(world, 0);
	for (int i = 0; i < 50; i++)
		step(world, 0);
	assert_true(!is_settled(world));
	hot_sender_hurry(&world->senders[0]);
	world->news_lost = news_lost;
	begin = world->now;
	for (int i = 0; i < 2000 && !is_settled(world); i++)
		step(world, 0);
	assert_int_equal(world->news_lost, 0);
	assert_true(is_settled(world));
	assert_true(world->now < begin + 100 * MS);
	end(world);
}

static void test_hurry(void **state)
{
	(void)state;
	hurry_once(0);
	hurry_once(2);
}

/* The window after a packet of 100 was lost, and 100 answers to packets that were sent later. */
static uint32_t window_after_loss(uint32_t flows)
{
	struct hot_timer timer;
	uint64_t now = 1000 * MS;

	hot_timer_init(&timer, 128, 0);
	timer.flows = flows;
	timer.window = 100;
	hot_timer_answered(&timer, now - 20 * MS, 1, 0, now);
	hot_timer_answered(&timer, now, 1, 0, now + 20 * MS);
	hot_timer_repeats(&timer, now - 20 * MS, now + 20 * MS);
	for (uint32_t i = 0; i < 100; i++)
		hot_timer_answered(&timer, now + 21 * MS, 1, 0, now + 41 * MS);
	return timer.window;
}

/* The window of a round stands for those of all workers: it does not fall to half for a packet. */
static void test_flows(void **state)
{
	(void)state;
	assert_in_range(window_after_loss(1), 50, 55);
	assert_in_range(window_after_loss(8), 95, 105);
}

/* With a new map, rows that wait for the bank get other numbers. Only those that it lacks go back.
 */
static void test_new_map(void **state)
{
	struct world *world = world_new(8, 0);
	struct hot_sender *sender = &world->senders[1];
	uint64_t rows;

	(void)state;
	world->keeps_map = true;
	world->log_ns = 100 * MS;
	push(world, 0);
	hot_sender_hurry(&world->senders[0]);
	for (int i = 0; i < 2000 && world->flusher.phase != HOT_HANDED; i++)
		step(world, 0);
	for (int i = 0; i < 100; i++)
		push(world, 1);
	rows = sender->stats.rows;
	hot_flusher_remap(&world->flusher, ++world->generation);
	hot_sender_remap(sender, (uint16_t)world->generation);
	assert_in_range(sender->stats.handed_back, rows / 10, rows / 5); /* a seventh */
	for (int i = 0; i < 50000 && !is_settled(world); i++)
		step(world, 0);
	assert_true(is_settled(world));
	check_sums(world);
	end(world);
}

/* A worker that asks again while its rows are being read causes no other round. */
static void test_one_round(void **state)
{
	struct world *world = world_new(6, 0);
	uint32_t epoch;

	(void)state;
	world->keeps_map = true;
	world->log_ns = 40 * MS;
	for (int i = 0; i < 50; i++)
		step(world, 0);
	epoch = world->flusher.epoch;
	push(world, 0);
	hot_sender_hurry(&world->senders[0]);
	for (int i = 0; i < 2000 && !is_settled(world); i++)
		step(world, 0);
	assert_true(is_settled(world));
	assert_int_equal(world->flusher.epoch, epoch + 1);
	assert_false(world->flusher.is_urgent);
	/* A round that took 40 ms is not followed by the next one after 2 ms. */
	assert_true(world->flusher.begin_at - world->flusher.began_at > 60 * MS);
	end(world);
}

/* While the only bank is frozen, workers wait for the news of its release. */
static void test_held(void **state)
{
	struct world *world = world_new(7, 0);
	const struct hot_sender *sender = &world->senders[1];

	(void)state;
	world->keeps_map = true;
	world->log_ns = 100 * MS;
	push(world, 0);
	hot_sender_hurry(&world->senders[0]);
	for (int i = 0; i < 2000 && world->flusher.phase != HOT_HANDED; i++)
		step(world, 0);
	assert_int_equal(world->flusher.phase, HOT_HANDED);
	world->arrived = 0;
	for (int i = 0; i < 100; i++)
		push(world, 1);
	for (int i = 0; i < 20000 && !is_settled(world); i++)
		step(world, 0);
	assert_true(is_settled(world));
	check_sums(world);
	/* The first window, and a packet every 20 ms, were sent in vain. Nothing was lost. */
	assert_true(sender->stats.packets >= 100);
	if (layout & SPARSE_ONE_BANK)
		assert_true(world->arrived > sender->stats.packets);
	assert_true(world->arrived < sender->stats.packets + HOT_WINDOW_FIRST + 10);
	assert_int_equal(sender->stats.resent, 0);
	end(world);
}

/* What is kept is bounded, and room comes back. */
static void test_room(void **state)
{
	struct world *world = world_new(4, 0);
	struct hot_sender *sender = &world->senders[0];
	uint16_t numbers[ROWS];
	uint32_t values[ROWS * WIDTH] = { 0 }, room = hot_sender_room(sender);
	struct hot_rows rows = { 10, numbers, values };

	(void)state;
	for (uint32_t i = 0; i < ROWS; i++)
		numbers[i] = (uint16_t)i;
	assert_int_equal(room, 511 * sender->per_packet);
	world->tags = 1;
	while (hot_sender_room(sender) >= rows.n)
		world->left[0] += hot_sender_post(sender, 0, 1, &rows);
	rows.n = hot_sender_room(sender) + 1;
	assert_int_equal(hot_sender_post(sender, 0, 1, &rows), 0);
	hot_sender_hurry(sender);
	for (int i = 0; i < 20000 && !is_settled(world); i++)
		step(world, 0);
	assert_true(is_settled(world));
	assert_int_equal(hot_sender_room(sender), room);
	end(world);
}

static void test_numbers(void **state)
{
	float row[3] = { 1.0f, -0.5f, 0.25f };
	uint32_t out[3] = { 0 };
	double unit = ldexp(1, hot_exponent(1));

	(void)state;
	assert_int_equal(hot_exponent(1), -21);
	assert_int_equal(hot_exponent(1.5), -20);
	assert_int_equal(hot_exponent(1024), -11);
	assert_true(hot_from_floats(row, 3, 1 / unit, out));
	assert_int_equal((int32_t)out[0], 1 << 21);
	assert_int_equal((int32_t)out[1], -(1 << 20));
	assert_true(hot_to_float(out[1], unit) == -0.5f);
	row[1] = 1.0001f;
	assert_true(!hot_from_floats(row, 3, 1 / unit, out));
	row[1] = NAN;
	assert_true(!hot_from_floats(row, 3, 1 / unit, out));
	row[1] = -INFINITY;
	assert_true(!hot_from_floats(row, 3, 1 / unit, out));
	assert_true(!hot_from_bits(row, 3, out));
	row[1] = 1e30f;
	assert_true(hot_from_bits(row, 3, out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quiet),      cmocka_unit_test(test_lossy),
		cmocka_unit_test(test_slow_links), cmocka_unit_test(test_deaths),
		cmocka_unit_test(test_hurry),      cmocka_unit_test(test_new_map),
		cmocka_unit_test(test_flows),      cmocka_unit_test(test_one_round),
		cmocka_unit_test(test_held),       cmocka_unit_test(test_room),
		cmocka_unit_test(test_numbers),
	};
	int failed = cmocka_run_group_tests_name("two banks", tests, NULL, NULL);

	layout = SPARSE_ONE_BANK;
	return failed + cmocka_run_group_tests_name("one bank", tests, NULL, NULL);
}
