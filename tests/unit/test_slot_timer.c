/* SPDX-License-Identifier: Apache-2.0 */
/* When a worker repeats a small vector: timeouts follow the path, and not the timeouts of others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/slot/slot_flow.h"

#include <stdio.h>

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

/* ---- four ranks, whose packets all cross the aggregator's link ---- */

#define RANKS 4u
#define FLIGHTS 8192u
#define OPERATIONS 45u /* of a vector: 64 KiB */

struct flight {
	uint64_t at;
	uint64_t position;
	unsigned rank;
	bool is_result;
};

struct city {
	struct slot_flow flows[RANKS];
	struct slot_entry entries[RANKS][SLOTS];
	struct flight flights[FLIGHTS];
	unsigned n_flights;
	uint64_t up, down;      /* ns: when the link is free again, in each direction */
	uint64_t takes;         /* ns: a packet on this link */
	uint16_t bytes;         /* of a packet */
	unsigned has[SLOTS];    /* ranks of an operation, as bits */
	uint64_t serves[SLOTS]; /* the operation that has the slot */
	unsigned sent, repeats;
};

static void fly(struct city *city, uint64_t *free_at, unsigned rank, uint64_t position,
                bool is_result)
{
	assert_true(city->n_flights < FLIGHTS);
	*free_at = (*free_at > now ? *free_at : now) + city->takes;
	city->flights[city->n_flights++] = (struct flight){
		.at = *free_at + 10 * US, .position = position, .rank = rank, .is_result = is_result
	};
}

static void send_all(struct city *city)
{
	for (unsigned rank = 0; rank < RANKS; rank++) {
		struct wire_header header;
		const void *payload;

		while (slot_flow_next(&city->flows[rank], now, &header, &payload)) {
			if (header.from & SLOT_BARE)
				continue;
			city->sent++;
			city->repeats += header.flags & WIRE_RESENT ? 1 : 0;
			fly(city, &city->up, rank, header.pos, false);
		}
	}
}

/* The aggregator has a packet: the last one of an operation goes to all, a repeat is answered. */
static void sum_up(struct city *city, const struct flight *flight)
{
	unsigned slot = flight->position % SLOTS, all = (1u << RANKS) - 1;

	if (city->serves[slot] != flight->position)
		city->has[slot] = 0;
	city->serves[slot] = flight->position;
	if (city->has[slot] == all) {
		fly(city, &city->down, flight->rank, flight->position, true);
		return;
	}
	city->has[slot] |= 1u << flight->rank;
	for (unsigned rank = 0; city->has[slot] == all && rank < RANKS; rank++)
		fly(city, &city->down, rank, flight->position, true);
}

/* False: nothing is on its way. */
static bool land(struct city *city, uint64_t until)
{
	unsigned first = 0;
	struct flight flight;

	for (unsigned i = 1; i < city->n_flights; i++)
		if (city->flights[i].at < city->flights[first].at)
			first = i;
	if (!city->n_flights || city->flights[first].at > until)
		return false;
	flight = city->flights[first];
	city->flights[first] = city->flights[--city->n_flights];
	now = flight.at > now ? flight.at : now;
	if (flight.is_result) {
		struct slot_flow *flow = &city->flows[flight.rank];
		const struct wire_header header = { .type = WIRE_RESULT,
			                            .op = WIRE_ADD64,
			                            .pos = (uint32_t)flight.position,
			                            .ack = (uint32_t)flow->unacked };

		slot_flow_take(flow, &header, city->bytes, now);
	} else {
		sum_up(city, &flight);
	}
	return true;
}

/* Each rank sums a vector of so many operations. */
static void sum_vector(struct city *city, unsigned operations, uint64_t takes)
{
	uint64_t wake = 0;
	bool waits = true;

	city->takes = takes;
	city->bytes = operations > 1 ? 1448 : 8;
	for (unsigned rank = 0; rank < RANKS; rank++)
		for (unsigned i = 0; i < operations; i++)
			slot_flow_post(&city->flows[rank], WIRE_ADD64, 0, WIRE_ALL, 0, &vector,
			               city->bytes);
	while (waits) {
		send_all(city);
		wake = UINT64_MAX;
		waits = false;
		for (unsigned rank = 0; rank < RANKS; rank++) {
			struct slot_flow *flow = &city->flows[rank];
			uint64_t at = slot_flow_wake(flow);

			waits |= flow->done < flow->next;
			wake = at < wake ? at : wake;
		}
		if (waits && !land(city, wake > now ? wake : now + 1))
			now = wake > now ? wake : now + 1;
	}
	while (land(city, UINT64_MAX))
		;
}

/*
 * On a slow link the packets of a vector queue for much longer than a small one ever took. That is
 * no loss: if each timer repeated all of them, the link would carry repeats for the most part.
 */
static void a_queue_is_no_loss(void **state)
{
	static struct city city;

	(void)state;
	now = 1000 * MS;
	for (unsigned rank = 0; rank < RANKS; rank++)
		slot_flow_init(&city.flows[rank], city.entries[rank], SLOTS, rank);
	for (unsigned i = 0; i < 200; i++)
		sum_vector(&city, 1, 1 * US);
	city.sent = city.repeats = 0;
	for (unsigned i = 0; i < 20; i++) {
		sum_vector(&city, OPERATIONS, 123 * US);
		sum_vector(&city, 1, 1 * US); /* a barrier */
	}
	printf("%u packets, %u of them repeats\n", city.sent, city.repeats);
	assert_true(city.repeats < city.sent / 10); /* most of them in the first vector */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timeouts_of_others_do_not_add_up),
		cmocka_unit_test(a_longer_path_is_learned),
		cmocka_unit_test(results_end_the_doubling),
		cmocka_unit_test(a_queue_is_no_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
