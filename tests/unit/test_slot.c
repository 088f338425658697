/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot engine and the worker's side of it. Small worlds are explored exhaustively: a packet
 * that was sent may arrive at any time, any number of times, or never, so loss, duplication and
 * reordering of every packet are in it. In every reachable state: a result is the sum of all
 * workers' vectors, at the highest of their scales, each once; a slot is cleared only when all have
 * the result; and if packets arrive from there on, all operations end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/slot.h"
#include "worker/slot/slot_flow.h"

#define WORKERS_MAX 3u
#define SLOTS_LIMIT 4u
#define OPERATIONS_MAX 8u
#define MESSAGES_MAX 160u
#define SECOND 1000000000ull

/* A world: `workers` post `operations` each, with `slots` slots. */
struct limits {
	const char *name;
	unsigned workers, slots, operations;
	bool scales;    /* workers begin with different scales */
	unsigned walks; /* number of random walks, for large worlds; 0: all states */
	size_t states;
};

static const struct limits *limits;

struct message {
	uint8_t to; /* a worker, or WORKERS_MAX: the aggregator */
	uint8_t bytes;
	struct wire_header header;
	uint64_t payload;
};

struct world {
	struct slot_lane lane;
	struct slot_cell cells[SLOTS_LIMIT];
	uint64_t sums[SLOTS_LIMIT];
	struct slot_flow flows[WORKERS_MAX];
	struct slot_entry entries[WORKERS_MAX][SLOTS_LIMIT];
	uint64_t vectors[WORKERS_MAX][OPERATIONS_MAX];
	uint8_t results[WORKERS_MAX]; /* operations whose result has come, as bits */
	struct message messages[MESSAGES_MAX];
	unsigned n_messages;
	uint64_t now;
};

/* The scale that a worker begins with. */
static uint16_t own_scale(unsigned worker, unsigned operation)
{
	return limits->scales ? (uint16_t)(1 + (worker + operation) % 2 * 2) : 1;
}

static uint16_t top_scale(unsigned operation)
{
	uint16_t top = 0;

	for (unsigned w = 0; w < limits->workers; w++)
		top = own_scale(w, operation) > top ? own_scale(w, operation) : top;
	return top;
}

/* A byte for each worker, which tells operation and scale: a sum of these shows what is in it. */
static uint64_t vector_of(unsigned worker, unsigned operation, uint16_t scale)
{
	return (uint64_t)(1 + operation * 4 + scale) << 16 * worker;
}

static uint64_t sum_of(unsigned operation)
{
	uint64_t sum = 0;

	for (unsigned w = 0; w < limits->workers; w++)
		sum += vector_of(w, operation, top_scale(operation));
	return sum;
}

static void world_start(struct world *world)
{
	memset(world, 0, sizeof(*world));
	world->lane = (struct slot_lane){ .members = (1u << limits->workers) - 1,
		                          .slots = limits->slots,
		                          .payload = 8 };
	for (unsigned i = 0; i < limits->slots; i++)
		slot_cell_init(&world->cells[i], i);
	for (unsigned w = 0; w < limits->workers; w++)
		slot_flow_init(&world->flows[w], world->entries[w], limits->slots, w);
	world->now = SECOND;
}

/* Pointers into the world move with its copies. */
static void world_tie(struct world *world)
{
	for (unsigned w = 0; w < limits->workers; w++) {
		world->flows[w].entries = world->entries[w];
		for (unsigned i = 0; i < limits->slots; i++)
			world->entries[w][i].payload =
				&world->vectors[w][world->entries[w][i].position % OPERATIONS_MAX];
	}
}

/* A message stays in the network for ever. False: it is there already. */
static bool send(struct world *world, const struct message *message)
{
	for (unsigned i = 0; i < world->n_messages; i++)
		if (!memcmp(&world->messages[i], message, sizeof(*message)))
			return false;
	assert_true(world->n_messages < MESSAGES_MAX);
	world->messages[world->n_messages++] = *message;
	return true;
}

/* ---- the aggregator ---- */

static void answer(struct world *world, unsigned worker, uint32_t pos, uint8_t kind)
{
	const struct slot_cell *cell = &world->cells[slot_index(&world->lane, pos)];
	struct message message;

	memset(&message, 0, sizeof(message));
	message.to = (uint8_t)worker;
	message.header.pos = pos;
	message.header.from = kind;
	message.header.ack = (uint32_t)world->lane.low;
	if (!kind || kind == SLOT_RAISE)
		message.header.scale = cell->scale;
	if (!kind) {
		message.header.op = cell->op;
		message.header.flags = cell->shape;
		message.payload = world->sums[slot_index(&world->lane, pos)];
		message.bytes = (uint8_t)cell->bytes;
	}
	send(world, &message);
}

static void move_low(struct world *world)
{
	for (int i = 0; i < 2; i++)
		slot_move_low(&world->lane, &world->cells[world->lane.low % limits->slots],
		              world->lane.low);
}

static void aggregator_takes(struct world *world, const struct message *message)
{
	const struct wire_header *header = &message->header;
	struct slot_lane *lane = &world->lane;
	struct slot_taken taken;
	bool clear = false;

	if (header->from & SLOT_ACKS)
		clear = slot_ack(lane, &world->cells[slot_index(lane, header->ack)], header->child,
		                 header->ack);
	move_low(world);
	if (header->from & SLOT_WANTS && clear)
		answer(world, header->child, header->ack, SLOT_CLEAR);
	if (header->from & SLOT_BARE)
		return;
	taken = slot_take(lane, &world->cells[slot_index(lane, header->pos)],
	                  &world->sums[slot_index(lane, header->pos)], header, &message->payload,
	                  message->bytes);
	if (taken.verdict == SLOT_COMPLETE)
		for (unsigned w = 0; w < limits->workers; w++)
			answer(world, w, header->pos, 0);
	for (unsigned w = 0; w < limits->workers; w++)
		if (taken.again >> w & 1)
			answer(world, w, header->pos, SLOT_RAISE);
	if (taken.verdict == SLOT_FINISHED)
		answer(world, header->child, header->pos, 0);
	if (taken.verdict == SLOT_LOWER)
		answer(world, header->child, header->pos, SLOT_RAISE);
	assert_true(taken.verdict != SLOT_AHEAD && taken.verdict != SLOT_MISMATCH &&
	            taken.verdict != SLOT_STRANGER);
}

/* ---- workers ---- */

static bool worker_posts(struct world *world, unsigned w)
{
	struct slot_flow *flow = &world->flows[w];
	unsigned operation = (unsigned)flow->next;
	bool asked = flow->ask_at;

	if (operation == limits->operations)
		return false;
	if (!slot_flow_has_room(flow, world->now))
		return !asked; /* it will ask */
	world->vectors[w][operation] = vector_of(w, operation, own_scale(w, operation));
	slot_flow_post(flow, WIRE_ADD64, 0, WIRE_ALL, own_scale(w, operation),
	               &world->vectors[w][operation], 8);
	return true;
}

static bool worker_sends(struct world *world, unsigned w)
{
	const void *payload;
	struct message message;
	uint32_t bytes;

	memset(&message, 0, sizeof(message));
	world->now += SECOND; /* every timer has run out */
	bytes = slot_flow_next(&world->flows[w], world->now, &message.header, &payload);
	if (!bytes)
		return false;
	message.to = WORKERS_MAX;
	message.header.flags &= (uint8_t)~WIRE_RESENT; /* fewer states */
	message.bytes = (uint8_t)(bytes - WIRE_HEADER);
	if (message.bytes)
		memcpy(&message.payload, payload, 8);
	send(world, &message);
	return true;
}

static void worker_takes(struct world *world, unsigned w, const struct message *message)
{
	struct slot_event event =
		slot_flow_take(&world->flows[w], &message->header, message->bytes, world->now);
	unsigned operation = (unsigned)event.position;

	assert_true(event.kind != SLOT_DISAGREE);
	if (event.kind == SLOT_RESULT) {
		assert_false(world->results[w] >> operation & 1);
		world->results[w] |= (uint8_t)(1u << operation);
		assert_int_equal(message->payload, sum_of(operation));
		assert_int_equal(event.scale, top_scale(operation));
	} else if (event.kind == SLOT_ENCODE) {
		world->vectors[w][operation] = vector_of(w, operation, event.scale);
		slot_flow_encoded(&world->flows[w], event.position, event.scale,
		                  &world->vectors[w][operation], 8);
	}
}

/* ---- exploring ---- */

#define ACTIONS (2 * WORKERS_MAX + MESSAGES_MAX)

static uint64_t hash_world(const struct world *world);

static void deliver(struct world *world, unsigned i)
{
	const struct message message = world->messages[i];

	if (message.to == WORKERS_MAX)
		aggregator_takes(world, &message);
	else
		worker_takes(world, message.to, &message);
}

static bool act(struct world *world, unsigned action)
{
	unsigned w = action / 2;

	world_tie(world);
	if (action < 2 * WORKERS_MAX) {
		if (w >= limits->workers)
			return false;
		return action % 2 ? worker_sends(world, w) : worker_posts(world, w);
	}
	action -= 2 * WORKERS_MAX;
	if (action >= world->n_messages)
		return false;
	deliver(world, action);
	return true;
}

/* From here on nothing is lost: does everything end? */
static void check_ends(struct world world)
{
	for (unsigned round = 0; round < 40 * limits->operations; round++) {
		bool all = true;

		world_tie(&world);
		for (unsigned w = 0; w < limits->workers; w++) {
			while (worker_posts(&world, w))
				;
			for (unsigned i = 0; i < 4 * SLOTS_LIMIT && worker_sends(&world, w); i++)
				;
		}
		for (unsigned i = 0; i < world.n_messages; i++)
			deliver(&world, i);
		/* The network forgets: a repeat is as good. */
		world.n_messages = 0;
		for (unsigned w = 0; w < limits->workers; w++)
			all = all && world.results[w] == (1u << limits->operations) - 1;
		if (all)
			return;
	}
	fail_msg("operations do not end");
}

static void check(const struct world *world)
{
	for (unsigned i = 0; i < limits->slots; i++) {
		const struct slot_cell *cell = &world->cells[i];
		uint64_t sum = 0;

		for (unsigned w = 0; w < limits->workers; w++) {
			if (cell->arrived >> w & 1)
				sum += vector_of(w, (unsigned)cell->position, cell->scale);
			if (cell->acked >> w & 1)
				assert_true(world->results[w] >> cell->position & 1);
			/* A slot that is used again is needed by nobody. */
			if (cell->position >= limits->slots)
				assert_true(world->results[w] >> (cell->position - limits->slots) &
				            1);
		}
		if (cell->arrived)
			assert_int_equal(world->sums[i], sum);
		assert_int_equal(cell->complete, cell->arrived == world->lane.members);
	}
	if ((hash_world(world) >> 8) % 16 == 0)
		check_ends(*world);
}

#include "explore.h"

/* Times are no part of it: every timer may run out at any moment. */
static uint64_t hash_world(const struct world *world)
{
	uint64_t hash = hash_more(1, world->lane.low), messages = 0;

	for (unsigned i = 0; i < limits->slots; i++) {
		const struct slot_cell *cell = &world->cells[i];

		hash = hash_more(hash, cell->position << 32 | cell->arrived << 24 |
		                               cell->acked << 16 | (uint64_t)cell->scale << 8 |
		                               cell->complete);
	}
	for (unsigned w = 0; w < limits->workers; w++) {
		const struct slot_flow *flow = &world->flows[w];

		hash = hash_more(hash, flow->next << 32 | flow->unsent << 24 | flow->unacked << 16 |
		                               flow->done << 8 | flow->low);
		hash = hash_more(hash, (uint64_t)world->results[w] << 1 | (flow->ask_at != 0));
		for (unsigned i = 0; i < limits->slots; i++)
			hash = hash_more(hash, (uint64_t)flow->entries[i].scale << 8 |
			                               flow->entries[i].state << 1 |
			                               (flow->entries[i].sent_at != 0));
	}
	/* The order in which messages were sent does not matter. */
	for (unsigned i = 0; i < world->n_messages; i++) {
		const struct wire_header *header = &world->messages[i].header;
		uint64_t one = hash_more(2, world->messages[i].to);

		one = hash_more(one, (uint64_t)header->pos << 32 | header->ack);
		one = hash_more(one,
		                (uint64_t)header->scale << 16 | header->from << 8 | header->child);
		messages += hash_more(one, world->messages[i].payload);
	}
	return hash_more(hash, messages) | 1;
}

static void explore_each(void **state)
{
	static const struct limits all[] = {
		{ "two workers, one slot", 2, 1, 3, false, 0, 1500 },
		{ "two workers, two slots", 2, 2, 3, false, 0, 200000 },
		{ "two workers, scales", 2, 1, 3, true, 0, 1000 },
		{ "two workers, two slots, scales", 2, 2, 2, true, 0, 3000 },
		{ "three workers, one slot", 3, 1, 3, false, 0, 10000 },
		{ "three workers, two slots", 3, 2, 2, false, 0, 30000 },
		{ "three workers, scales", 3, 2, 4, true, 2000, 20000 },
		{ "three workers, four slots", 3, 4, 8, true, 1000, 20000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		limits = &all[i];
		explore_world(limits->name, limits->walks, limits->states);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(explore_each) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
