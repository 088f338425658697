/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sparse engine at a real aggregator, on the planes udp and pisa: raw sockets push as workers,
 * and another one sets up, freezes, reads and releases as the parameter server. Every answer is
 * intact at the position that docs/wire/sparse.md names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "raw_child.h"
#include "sparse_packets.h"
#include "wire/parse.h"

#include <string.h>
#include <unistd.h>

#define WORKERS 2u
#define SERVER WORKERS
#define WIDTH 4u
#define ROWS 300u

static struct raw_child children[WORKERS + 1];
static union raw_packet answer; /* the last one, or news */

/* Waits for a packet of this kind about this position. */
static uint32_t await(unsigned child, enum sparse_kind kind, uint64_t position)
{
	const struct wire_unsent unsent = raw_child_unsent(&children[child], position);
	uint32_t bytes;

	do
		bytes = raw_child_await(&children[child], &answer, WIRE_RESULT);
	while (answer.header.op != kind);
	demand(answer.header.pos == (uint32_t)position);
	demand(wire_is_intact(&answer.header, bytes, &unsent));
	return bytes - WIRE_HEADER;
}

/* Sends a packet of the server's, and waits for its answer: the payload's bytes. */
static uint32_t ask(enum sparse_kind kind, uint32_t pos, uint32_t ack, const void *payload,
                    uint32_t bytes)
{
	union raw_packet packet = { .header = { .type = WIRE_DATA,
		                                .op = (uint8_t)kind,
		                                .pos = pos,
		                                .ack = ack,
		                                .to = WIRE_ALL } };

	if (bytes)
		memcpy(&packet.header + 1, payload, bytes);
	raw_child_send(&children[SERVER], &packet, WIRE_HEADER + bytes, pos);
	return await(SERVER, kind, pos);
}

static void push(unsigned worker, uint32_t sequence, uint8_t flags)
{
	const uint16_t rows[2] = { (uint16_t)(sequence % 100), 299 };
	uint32_t values[2 * WIDTH];
	union raw_packet packet = { .header = { .type = WIRE_DATA } };
	uint32_t bytes;

	for (unsigned i = 0; i < 2 * WIDTH; i++)
		values[i] = i + 1;
	sparse_bare((union sparse_packet *)&packet, SPARSE_PUSH, (uint8_t)worker, sequence, 0);
	packet.header.from = flags;
	bytes = sparse_fill((union sparse_packet *)&packet, rows, 2, WIDTH, values);
	raw_child_send(&children[worker], &packet, WIRE_HEADER + bytes, sequence);
	await(worker, SPARSE_PUSH, sequence);
	demand(!(answer.header.from & SPARSE_REFUSED));
}

/* Row 299 has the sum of so many packets, and each record has them all. */
static void check_flush(uint32_t epoch, uint32_t packets, uint32_t low)
{
	const uint32_t payload = children[0].welcome.payload,
		       per = sparse_per_block(payload, WIDTH);
	const uint32_t blocks = sparse_blocks(ROWS, per);
	const uint64_t *page = (const uint64_t *)(&answer.header + 1);
	const struct sparse_record *records = (const void *)(&answer.header + 1);
	const uint32_t *last;
	uint32_t bytes;

	demand(per);
	bytes = ask(SPARSE_READ, epoch, blocks - 1, NULL, 0);
	assert_true(page[0] >> 299 % per == 1); /* the block's last dirty row */
	last = (const uint32_t *)(page + 1) + (__builtin_popcountll(page[0]) - 1) * (int)WIDTH;
	assert_int_equal(bytes, sparse_block_bytes((uint32_t)__builtin_popcountll(page[0]), WIDTH));
	for (uint32_t i = 0; i < WIDTH; i++)
		assert_int_equal(last[i], packets * (WIDTH + i + 1));
	ask(SPARSE_READ, epoch, blocks, NULL, 0);
	for (unsigned w = 0; w < WORKERS; w++)
		assert_int_equal(records[w].low, low);
}

/* Pushes, flushes, and pushes again. */
static void serve(void)
{
	const struct sparse_setup setup = { .width = WIDTH, .rows = ROWS };

	assert_int_equal(children[0].welcome.engine, ENGINE_SPARSE);
	ask(SPARSE_SETUP, 0, 0, &setup, sizeof(setup));
	assert_int_equal(answer.header.from, 0);
	for (uint32_t s = 0; s < 50; s++)
		for (unsigned w = 0; w < WORKERS; w++) {
			push(w, s, 0);
			push(w, s, 0); /* a repeat */
		}
	push(1, 50, SPARSE_URGENT);
	await(SERVER, SPARSE_NEWS, 0);
	assert_int_equal(answer.header.from, SPARSE_URGENT);
	push(0, 50, 0);
	ask(SPARSE_FREEZE, 1, 0, NULL, 0);
	push(0, 51, 0); /* is in the next flush */
	check_flush(1, 102, 51);
	ask(SPARSE_RELEASE, 1, 0, NULL, 0);
	for (unsigned w = 0; w < WORKERS; w++) {
		await(w, SPARSE_NEWS, 1);
		assert_int_equal(((const uint32_t *)(&answer.header + 1))[w], 51);
	}
	push(0, 51, 0);
	assert_int_equal(answer.header.ack, 51);
	push(1, 51, 0);
	ask(SPARSE_FREEZE, 2, 0, NULL, 0);
	check_flush(2, 2, 52);
}

static void leave(struct cluster *cluster)
{
	for (unsigned i = 0; i <= WORKERS; i++)
		close(children[i].fd);
	cluster_stop(cluster);
}

static void test_udp(void **state)
{
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 2, 0);
	raw_children_join(children, &cluster, WORKERS + 1, ENGINE_SPARSE);
	assert_int_equal(children[0].welcome.cells, 62); /* all that fit: no power of two */
	serve();
	leave(&cluster);
}

/* The same on the model of a switch, which has shorter packets. */
static void test_pisa(void **state)
{
	struct cluster cluster;

	(void)state;
	setenv("TRIB_PLANE", "pisa", 1);
	cluster_start(&cluster, 2, 0);
	unsetenv("TRIB_PLANE"); /* children send datagrams */
	raw_children_join(children, &cluster, WORKERS + 1, ENGINE_SPARSE);
	assert_in_range(children[0].welcome.payload, WIRE_PAYLOAD_MIN, 384);
	serve();
	leave(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_udp),
		                            cmocka_unit_test(test_pisa) };

	cluster_environment();
	unsetenv("TRIB_PLANE");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
