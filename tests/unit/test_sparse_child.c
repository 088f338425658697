/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers and a parameter server as children of a real aggregator: joining, sums of hot rows,
 * leaving, and the ways in which a child learns that its communicator is over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cluster.h"
#include "engine/engines.h"
#include "sparse/child/sparse_child.h"
#include "sparse/hot/hot_flusher.h"
#include "sparse/hot/hot_puller.h"
#include "sparse/hot/hot_sender.h"

#include <poll.h>
#include <string.h>

#define WORKERS 2u
#define SERVER WORKERS
#define CHILDREN (WORKERS + 1)
#define JOB 3u
#define WIDTH 5u
#define ROWS 500u
#define PUSHES 60u
#define SECOND 1000000000ull

struct actor {
	struct sparse_child *child;
	struct hot_sender sender;
	struct hot_puller puller;
	struct hot_flusher flusher;
	unsigned number;
	bool is_set_up;
};

static struct actor actors[CHILDREN];
static int64_t sums[ROWS][WIDTH], pushed[ROWS][WIDTH];
static uint64_t left;
static uint32_t flushes;
static uint32_t pulled, pulled_rows; /* questions that have ended, and rows that came */

static struct child_options options_of(const char *address, unsigned rank, double seconds)
{
	struct child_options options = { .cookie = CLUSTER_COOKIE,
		                         .key = 77,
		                         .pool_bytes = 4 << 20,
		                         .timeout_ns = (uint64_t)(seconds * 1e9),
		                         .job = JOB,
		                         .engine = ENGINE_SPARSE,
		                         .rank = rank,
		                         .size = CHILDREN,
		                         .mtu = 1500 };

	assert_int_equal(udp_resolve(address, UDP_DEFAULT_PORT, &options.aggregator), TRIB_OK);
	return options;
}

/* ---- what a child hears ---- */

static void on_done(void *context, uint64_t tag)
{
	(void)context;
	(void)tag;
	assert_true(left-- > 0);
}

static void on_back(void *context, const struct hot_back *back)
{
	for (uint32_t i = 0; i < back->rows.n; i++)
		for (uint32_t k = 0; k < WIDTH; k++)
			sums[back->rows.numbers[i]][k] += (int32_t)back->rows.values[i * WIDTH + k];
	on_done(context, back->tag);
}

/* What a pull gives: the row's number and its first sum, as floats. */
static const float *value_of(void *context, uint32_t row)
{
	static float values[WIDTH];

	(void)context;
	if (row % 10 == 3)
		return NULL; /* a row without a key */
	values[0] = (float)row;
	values[1] = (float)sums[row][0];
	return values;
}

static void on_values(void *context, uint64_t tag, const struct hot_rows *rows)
{
	(void)context;
	(void)tag;
	pulled++;
	for (uint32_t i = 0; i < rows->n; i++, pulled_rows++) {
		float values[2];

		memcpy(values, rows->values + (size_t)i * WIDTH, sizeof(values));
		assert_true(values[0] == (float)rows->numbers[i]);
		assert_true(values[1] == (float)sums[rows->numbers[i]][0]);
	}
}

static uint64_t position(void *context, const struct wire_header *header)
{
	const struct actor *actor = context;

	return actor->number == SERVER ? header->pos : hot_sender_position(&actor->sender, header);
}

static void take(void *context, const struct wire_header *header, uint32_t bytes, uint64_t now)
{
	struct actor *actor = context;

	if (!actor->is_set_up)
		return;
	if (actor->number == SERVER)
		hot_flusher_take(&actor->flusher, header, bytes, now);
	else if (header->op == SPARSE_PULL)
		hot_puller_take(&actor->puller, header, bytes, now);
	else
		hot_sender_take(&actor->sender, header, bytes, now);
}

/* ---- what it does ---- */

static void set_up(struct actor *actor)
{
	const struct wire_welcome *welcome = child_welcome(actor->child);
	struct hot_sender_options sender = {
		.child = actor->number,
		.width = WIDTH,
		.payload = welcome->payload,
		.kept = 256,
		.calls = { .context = actor, .done = on_done, .back = on_back }
	};
	struct hot_flusher_options flusher = {
		.workers = WORKERS,
		.payload = welcome->payload,
		.setup = { .width = WIDTH, .rows = ROWS, .layout = 1 },
		.value = value_of,
		.every_ns = SECOND / 200,
		.idle_ns = SECOND / 50
	};

	assert_in_range(welcome->payload, 1400, 1500);
	assert_int_equal(welcome->engine, ENGINE_SPARSE);
	if (actor->number == SERVER)
		assert_true(hot_flusher_open(&actor->flusher, &flusher, clock_now()));
	else
		assert_true(hot_sender_open(&actor->sender, &sender) &&
		            hot_puller_open(&actor->puller, WIDTH, welcome->payload));
	actor->puller.values = on_values;
	actor->is_set_up = true;
}

static void send_due(struct actor *actor, uint64_t now)
{
	void *room;

	while ((room = child_room(actor->child))) {
		uint64_t at = 0;
		uint32_t bytes;

		if (actor->number == SERVER)
			bytes = hot_flusher_next(&actor->flusher, now, room);
		else
			bytes = hot_sender_next(&actor->sender, now, room, &at);
		if (!bytes && actor->number != SERVER)
			bytes = hot_puller_next(&actor->puller, now, room);
		if (!bytes)
			break;
		if (((const struct wire_header *)room)->op != SPARSE_PUSH)
			at = ((const struct wire_header *)room)->pos;
		child_add(actor->child, bytes, at);
	}
	child_flush(actor->child);
}

static void log_flush(struct actor *actor)
{
	struct hot_flush flush;

	if (!hot_flusher_flush(&actor->flusher, &flush))
		return;
	for (uint32_t i = 0; i < flush.n; i++)
		for (uint32_t k = 0; k < WIDTH; k++)
			sums[flush.numbers[i]][k] += (int32_t)flush.values[i * WIDTH + k];
	flushes++;
	hot_flusher_logged(&actor->flusher);
}

static void serve(struct actor *actor)
{
	const struct child_listener listener = { actor, position, take };
	uint64_t now = clock_now();

	while (child_receive(actor->child, &listener, now))
		;
	if (child_state(actor->child) == CHILD_JOINED && !actor->is_set_up)
		set_up(actor);
	if (actor->is_set_up && actor->number == SERVER)
		log_flush(actor);
	if (actor->is_set_up && child_state(actor->child) == CHILD_JOINED)
		send_due(actor, now);
	child_step(actor->child, now);
}

static void turn(void)
{
	struct pollfd polls[CHILDREN];

	for (unsigned i = 0; i < CHILDREN; i++)
		polls[i] = (struct pollfd){ .fd = child_fd(actors[i].child), .events = POLLIN };
	poll(polls, CHILDREN, 1);
	for (unsigned i = 0; i < CHILDREN; i++)
		serve(&actors[i]);
}

/* Until all children have this state. */
static void await(enum child_state state)
{
	uint64_t deadline = clock_now() + 20 * SECOND;

	for (unsigned i = 0; i < CHILDREN;)
		if (child_state(actors[i].child) == state) {
			i++;
		} else {
			assert_true(clock_now() < deadline);
			turn();
		}
}

static void begin(const struct cluster *cluster)
{
	memset(sums, 0, sizeof(sums));
	memset(pushed, 0, sizeof(pushed));
	left = flushes = 0;
	for (unsigned i = 0; i < CHILDREN; i++) {
		struct child_options options = options_of(cluster->address, i, 10);

		actors[i] = (struct actor){ .number = i };
		assert_int_equal(child_open(&actors[i].child, &options, clock_now()), TRIB_OK);
	}
	await(CHILD_JOINED);
	turn();
}

static void end(void)
{
	for (unsigned i = 0; i < CHILDREN; i++) {
		child_close(actors[i].child);
		if (i == SERVER)
			hot_flusher_close(&actors[i].flusher);
		else
			hot_sender_close(&actors[i].sender);
		hot_puller_close(&actors[i].puller);
	}
}

static void push(unsigned worker, uint64_t seed)
{
	static uint16_t numbers[ROWS];
	static uint32_t values[ROWS * WIDTH];
	struct hot_rows rows = { 0, numbers, values };

	for (uint32_t row = 0; row < ROWS; row++) {
		if (mix(seed + row) % 8)
			continue;
		for (uint32_t k = 0; k < WIDTH; k++) {
			int32_t value = (int32_t)(mix(seed * ROWS + row * WIDTH + k) % 2001) - 1000;

			values[rows.n * WIDTH + k] = (uint32_t)value;
			pushed[row][k] += value;
		}
		numbers[rows.n++] = (uint16_t)row;
	}
	while (hot_sender_room(&actors[worker].sender) < rows.n)
		turn();
	left += hot_sender_post(&actors[worker].sender, seed, 0, &rows);
}

static void push_all(void)
{
	for (uint64_t i = 0; i < PUSHES; i++)
		for (unsigned w = 0; w < WORKERS; w++) {
			push(w, mix(i * WORKERS + w));
			if (i % 7 == 0)
				turn();
		}
}

static void check_sums(void)
{
	for (uint32_t row = 0; row < ROWS; row++)
		for (uint32_t k = 0; k < WIDTH; k++)
			assert_int_equal(sums[row][k], pushed[row][k]);
}

/* ---- tests ---- */

static void test_sums(void **state)
{
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 1, 0);
	begin(&cluster);
	for (unsigned times = 0; times < 3; times++) {
		uint64_t deadline = clock_now() + 20 * SECOND;

		push_all();
		for (unsigned w = 0; w < WORKERS; w++)
			hot_sender_hurry(&actors[w].sender);
		while (left && clock_now() < deadline)
			turn();
		assert_int_equal(left, 0);
		assert_true(flushes > times);
		check_sums();
	}
	end();
	cluster_stop(&cluster);
}

static void ask_all(struct actor *actor)
{
	uint32_t most = actor->puller.per_packet;
	uint16_t numbers[ROWS];

	pulled = pulled_rows = 0;
	for (uint32_t i = 0; i < ROWS; i++)
		numbers[i] = (uint16_t)i;
	for (uint32_t i = 0; i < ROWS; i += most)
		assert_true(hot_puller_ask(&actor->puller, i, 0, numbers + i,
		                           ROWS - i < most ? ROWS - i : most));
	while (pulled < (ROWS + most - 1) / most)
		turn();
}

/* The cache has what was flushed, and what was touched; it lacks rows without a key. */
static void test_pulls(void **state)
{
	struct hot_flusher *flusher = &actors[SERVER].flusher;
	struct cluster cluster;
	uint32_t epoch;

	(void)state;
	cluster_start(&cluster, 1, 0);
	begin(&cluster);
	ask_all(&actors[0]);
	assert_int_equal(pulled_rows, 0);
	push_all();
	hot_sender_hurry(&actors[0].sender);
	hot_sender_hurry(&actors[1].sender);
	while (left)
		turn();
	ask_all(&actors[1]);
	assert_int_equal(pulled_rows, ROWS - ROWS / 10);
	for (uint32_t row = 0; row < ROWS; row++) {
		sums[row][0] += 7; /* as by a push to the server */
		hot_flusher_touch(flusher, row);
	}
	epoch = hot_flusher_shown(flusher);
	while (flusher->epoch < epoch || flusher->phase != HOT_REST)
		turn();
	assert_in_range(hot_flusher_shown(flusher), 1, epoch); /* a flush was on its way, perhaps */
	ask_all(&actors[0]);
	assert_int_equal(pulled_rows, ROWS - ROWS / 10);
	end();
	cluster_stop(&cluster);
}

static void has_failed(unsigned i, trib_status status, const char *words)
{
	const char *sentence;

	assert_int_equal(child_failure(actors[i].child, &sentence), status);
	if (!strstr(sentence, words))
		fail_msg("\"%s\" lacks \"%s\"", sentence, words);
}

/* The aggregator ends in the middle: what it had and nobody logged is handed back. */
static void test_lost(void **state)
{
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 1, 0);
	begin(&cluster);
	push_all();
	cluster_stop(&cluster);
	await(CHILD_FAILED);
	has_failed(0, TRIB_ERR_AGGREGATOR, "has ended: its port is closed");
	for (unsigned w = 0; w < WORKERS; w++)
		hot_sender_lost(&actors[w].sender, &actors[SERVER].flusher.before[w]);
	assert_int_equal(left, 0);
	end();
}

static void test_abort(void **state)
{
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 1, 0);
	begin(&cluster);
	child_abort(actors[SERVER].child, "the server has sealed it");
	await(CHILD_FAILED);
	has_failed(0, TRIB_ERR_PEER, "the server has sealed it");
	has_failed(1, TRIB_ERR_PEER, "the server has sealed it");
	end();
	cluster_stop(&cluster);
}

static void test_alone(void **state)
{
	const struct child_listener listener = { &actors[0], position, take };
	struct child_options options;
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 1, 0);
	options = options_of(cluster.address, 0, 0.5);
	actors[0] = (struct actor){ .number = 0 };
	assert_int_equal(child_open(&actors[0].child, &options, clock_now()), TRIB_OK);
	while (child_state(actors[0].child) == CHILD_JOINING) {
		child_receive(actors[0].child, &listener, clock_now());
		child_step(actors[0].child, clock_now());
		nap_ms(5);
	}
	has_failed(0, TRIB_ERR_TIMEOUT, "child 1 of 3 did not join within 0.5 s");
	child_close(actors[0].child);
	cluster_stop(&cluster);
}

static void test_nobody(void **state)
{
	struct child_options options = options_of("127.0.0.1:9", 0, 0.3);

	(void)state;
	actors[0] = (struct actor){ .number = 0 };
	assert_int_equal(child_open(&actors[0].child, &options, clock_now()), TRIB_OK);
	while (child_state(actors[0].child) == CHILD_JOINING) {
		child_step(actors[0].child, clock_now());
		nap_ms(5);
	}
	has_failed(0, TRIB_ERR_AGGREGATOR, "no answer from the aggregator at 127.0.0.1:9");
	child_close(actors[0].child);
	options.rank = CHILDREN;
	assert_int_equal(child_open(&actors[0].child, &options, clock_now()), TRIB_ERR_ARGUMENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),  cmocka_unit_test(test_pulls),
		cmocka_unit_test(test_lost),  cmocka_unit_test(test_abort),
		cmocka_unit_test(test_alone), cmocka_unit_test(test_nobody),
	};

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
