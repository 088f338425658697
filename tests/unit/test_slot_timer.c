/* SPDX-License-Identifier: Apache-2.0 */
/* When a worker repeats a small vector: timeouts follow the path, and not the timeouts of others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/slot/slot_flow.h"

#define US 1000ull
#define MS (1000 * US)
#define SLOTS 64u

static struct slot_entry entries[SLOTS];
static uint64_t vector, now;

static uint32_t sent_position;

static bool send_one(struct slot_flow *flow)
{
	struct wire_header header = { 0 };
	const void *payload;
	bool sent = slot_flow_next(flow, now, &header, &payload) > 0;

	sent_position = header.pos;
	return sent;
}

/* The result of an operation comes. It also says that all slots below are clear. */
static void answer(struct slot_flow *flow, uint64_t position)
{
	const struct wire_header header = { .type = WIRE_RESULT,
		                            .op = WIRE_ADD64,
		                            .pos = (uint32_t)position,
		                            .ack = (uint32_t)flow->unacked };

	assert_int_equal(slot_flow_take(flow, &header, 8, now).kind, SLOT_RESULT);
}

/* An operation that takes so long, with no more packets than one. */
static void take_turn(struct slot_flow *flow, uint64_t ns)
{
	uint64_t position = slot_flow_post(flow, WIRE_ADD64, 0, WIRE_ALL, 0, &vector, 8);

	assert_true(send_one(flow));
	now += ns;
	answer(flow, position);
}

/* ns until an operation is sent again, if nothing comes. */
static uint64_t patience(struct slot_flow *flow)
{
	uint64_t began = now, least;

	slot_flow_post(flow, WIRE_ADD64, 0, WIRE_ALL, 0, &vector, 8);
	assert_true(send_one(flow));
	assert_false(send_one(flow)); /* which finds out when the timer ends */
	least = slot_flow_wake(flow);
	assert_true(least > began);
	return least - began;
}

static struct slot_flow fresh(void)
{
	struct slot_flow flow;

	now = 1000 * MS;
	slot_flow_init(&flow, entries, SLOTS, 0);
	return flow;
}

/* Another child waits for a timeout now and then, so results come late. Ours must not grow by it.
 */
static void timeouts_of_others_do_not_add_up(void **state)
{
	struct slot_flow flow = fresh();

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		take_turn(&flow, i % 2 ? 30 * MS : 50 * US);
	assert_true(patience(&flow) <= 8 * 50 * US);
}

/* A path that became longer is not asked too soon for ever. */
static void a_longer_path_is_learned(void **state)
{
	struct slot_flow flow = fresh();

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		take_turn(&flow, 50 * US);
	for (unsigned i = 0; i < 300; i++)
		take_turn(&flow, 5 * MS);
	assert_true(patience(&flow) >= 5 * MS);
}

/*
 * The first repeats follow each other at the same distance, as a sum with loss often takes several.
 * Only then timeouts double; a result of another operation ends that.
 */
static void results_end_the_doubling(void **state)
{
	struct slot_flow flow = fresh();
	uint64_t first, lost;

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		take_turn(&flow, 1 * MS);
	first = patience(&flow);
	lost = flow.next - 1;
	for (unsigned i = 1; i <= 12; i++) {
		now = slot_flow_wake(&flow);
		assert_true(send_one(&flow));
		assert_false(send_one(&flow));
		assert_int_equal(slot_flow_wake(&flow) - now, first << i / 4);
	}
	take_turn(&flow, 1 * MS); /* the next operation, while that one still waits */
	now += first + first / 4;
	assert_true(send_one(&flow));
	assert_int_equal(sent_position, lost);
	answer(&flow, lost);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timeouts_of_others_do_not_add_up),
		cmocka_unit_test(a_longer_path_is_learned),
		cmocka_unit_test(results_end_the_doubling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
