/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot program of the switch is held against engine/slot.h: after each packet the same verdict,
 * the same answer, the same sums. Packets are random, or come from worker/slot/slot_flow over a
 * network that loses, repeats and reorders them. In the last test packets pass between the passes
 * of other packets, which engine/slot.h cannot do: there the results are checked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define demand(condition) assert_true(condition)
#include "pisa_reference.h"
#include "short.h"
#include "worker/slot/slot_flow.h"

#define CHILDREN_MAX 8u
#define MESSAGES_MAX 256u
#define SECOND 1000000000ull

static uint64_t random_state;

static uint32_t below(uint32_t end)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return end ? (uint32_t)((random_state >> 33) % end) : 0;
}

static void seed_start(const char *name)
{
	const char *given = getenv("TRIB_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : 11;

	printf("%s: TRIB_SEED=%llu\n", name, (unsigned long long)seed);
	random_state = seed;
}

static const uint8_t can[] = { WIRE_ADD32,   WIRE_ADD64,   WIRE_OR64,   WIRE_MIN_I32,
	                       WIRE_MIN_U32, WIRE_MAX_I32, WIRE_MAX_U32 };

static uint64_t any_word(void)
{
	static const uint64_t edges[] = { 0, 1, 0x7fffffff80000000ull, UINT64_MAX,
		                          0x80000000ffffffffull };

	return below(4) ? (uint64_t)below(1u << 31) << 33 ^ (uint64_t)below(1u << 31) << 16 ^
	                          below(1u << 16)
	                : edges[below(5)];
}

/* ---- random packets ---- */

/* Mostly what the slot waits for, so that operations end. */
static uint32_t near_position(const struct reference *r)
{
	uint64_t position = r->cells[below(r->lane.slots)].position;

	switch (below(8)) {
	case 0:
		return (uint32_t)(position + r->lane.slots);
	case 1:
	case 2:
		return (uint32_t)(position >= r->lane.slots ? position - r->lane.slots : position);
	default:
		return (uint32_t)position;
	}
}

static uint32_t near_bytes(const struct reference *r, uint32_t pos, uint32_t scale)
{
	uint32_t most = r->lane.payload / 8;

	if (below(30) == 0)
		return below(REFERENCE_PAYLOAD + 1);
	if (pos % 8 == 7) /* a barrier */
		return 0;
	return 8 * (1 + (pos + scale) % most);
}

static void random_packet(struct reference *r, unsigned children)
{
	struct wire_header packet = { .type = WIRE_DATA };
	uint64_t payload[REFERENCE_PAYLOAD / 8];
	uint32_t bytes;

	packet.pos = near_position(r);
	packet.ack = near_position(r);
	packet.to = below(40) ? WIRE_ALL : (uint8_t)below(3);
	packet.child = (uint8_t)(below(50) ? below(children) : below(256));
	packet.op = below(40) ? can[packet.pos % sizeof(can)] : (uint8_t)below(WIRE_OPS_END + 1);
	packet.flags = (uint8_t)((packet.pos % 3 << 5) | (below(2) ? WIRE_RESENT : 0));
	if (below(40) == 0)
		packet.flags ^= 1;
	packet.scale = (uint16_t)(1 + packet.pos % 2 + (below(20) ? 0 : below(3)));
	packet.from = (uint8_t)(below(3) ? 0 : SLOT_ACKS | (below(3) ? 0 : SLOT_WANTS));
	packet.from |= below(4) ? 0 : SLOT_BARE;
	bytes = packet.from & SLOT_BARE ? 0 : near_bytes(r, packet.pos, packet.scale);
	for (uint32_t i = 0; i < REFERENCE_PAYLOAD / 8; i++)
		payload[i] = any_word();
	reference_both(r, &packet, payload, bytes);
}

/* Which verdicts and fates were met: the test must not pass because nothing happened. */
struct met {
	uint64_t verdicts[SLOT_VERDICTS_END + 1], fates[PISA_BROKEN + 1];
	uint64_t recirculated;
};

static void met_count(struct met *met, const struct reference *r)
{
	met->verdicts[r->answer.verdict]++;
	met->fates[r->answer.fate]++;
	met->recirculated += r->answer.recirculated;
}

static void agrees_at_random(void **state)
{
	uint64_t trials = test_cases("trials", 1500);
	static struct reference r;
	/* Halves of positions turn negative, and begin again. */
	static const uint64_t firsts[] = { 0, (1ull << 31) - 32, (1ull << 32) - 32 };
	struct met met = { 0 };

	(void)state;
	seed_start("agrees_at_random");
	for (uint64_t trial = 0; trial < trials; trial++) {
		unsigned children = 2 + below(7);

		reference_start(&r, children, 2u << below(4), 8 * (1 + below(16)),
		                firsts[trial % 3]);
		for (unsigned i = 0; i < 600; i++) {
			random_packet(&r, children);
			met_count(&met, &r);
			if (below(400) == 0) {
				unsigned child = below(children);

				r.lane.left |= child_bit(child);
				r.slot.left |= 1u << child;
			}
		}
		assert_int_equal(r.slot.sw.counters.packets, 600);
		assert_int_equal(r.slot.sw.counters.broken, 0);
		assert_int_equal(r.slot.sw.counters.passes,
		                 600 + r.slot.sw.counters.recirculations);
		reference_end(&r);
	}
	for (unsigned i = 0; i <= SLOT_VERDICTS_END; i++)
		assert_true(met.verdicts[i] > trials / 10);
	for (unsigned i = 0; i < PISA_BROKEN; i++)
		assert_true(i == PISA_AGAIN || met.fates[i] > trials / 10);
	assert_true(met.recirculated > trials);
}

/* ---- workers ---- */

struct message {
	int to; /* a worker; -1: the switch */
	uint32_t bytes;
	struct wire_header header;
	uint64_t payload[REFERENCE_PAYLOAD / 8];
};

/* A packet between two of its passes. */
struct passing {
	struct message message;
	struct pisa_packet packet;
};

struct world {
	struct reference r;
	unsigned workers, operations;
	struct slot_flow flows[CHILDREN_MAX];
	struct slot_entry entries[CHILDREN_MAX][REFERENCE_SLOTS];
	uint64_t vectors[CHILDREN_MAX][REFERENCE_SLOTS][REFERENCE_PAYLOAD / 8];
	unsigned results[CHILDREN_MAX];
	struct message messages[MESSAGES_MAX];
	unsigned n_messages;
	struct passing queue[MESSAGES_MAX]; /* recirculated packets, the oldest at `first` */
	unsigned first, n_queue;
	bool interleaves;
	uint64_t now;
};

static uint8_t op_of(uint64_t operation)
{
	return can[operation % sizeof(can)];
}

static uint16_t scale_of(unsigned worker, uint64_t operation)
{
	return (uint16_t)(1 + (worker * 7 + operation * 3) % 5 / 3);
}

static uint16_t bytes_of(const struct world *world, uint64_t operation, uint16_t scale)
{
	return (uint16_t)(8 * (1 + (operation + scale) % (world->r.lane.payload / 8)));
}

static void vector_fill(uint64_t *vector, unsigned worker, uint64_t operation, uint16_t scale)
{
	for (unsigned i = 0; i < REFERENCE_PAYLOAD / 8; i++)
		vector[i] = (worker + 3) * 0x9e3779b97f4a7c15ull * (operation + 1) +
		            scale * 0xdeadbeefcafeull * (i + 1);
}

static void result_check(const struct world *world, const struct message *message,
                         uint64_t operation)
{
	uint64_t sum[REFERENCE_PAYLOAD / 8], vector[REFERENCE_PAYLOAD / 8];
	uint16_t top = 0;

	for (unsigned w = 0; w < world->workers; w++)
		top = scale_of(w, operation) > top ? scale_of(w, operation) : top;
	vector_fill(sum, 0, operation, top);
	for (unsigned w = 1; w < world->workers; w++) {
		vector_fill(vector, w, operation, top);
		combine(op_of(operation), sum, vector, sizeof(sum));
	}
	assert_int_equal(message->header.scale, top);
	assert_int_equal(message->bytes, bytes_of(world, operation, top));
	assert_memory_equal(message->payload, sum, message->bytes);
}

static void send(struct world *world, const struct message *message)
{
	unsigned copies = below(10) ? 1 : below(3); /* one in 30 is lost, one in 30 doubled */

	for (; copies && world->n_messages < MESSAGES_MAX; copies--)
		world->messages[world->n_messages++] = *message;
}

static void worker_sends(struct world *world, unsigned w)
{
	struct message message = { .to = -1 };
	const void *payload;
	uint32_t bytes = slot_flow_next(&world->flows[w], world->now, &message.header, &payload);

	if (!bytes)
		return;
	message.bytes = bytes - WIRE_HEADER;
	if (message.bytes)
		memcpy(message.payload, payload, message.bytes);
	send(world, &message);
}

static void vector_encode(struct world *world, unsigned w, uint64_t operation, uint16_t scale)
{
	vector_fill(world->vectors[w][operation % world->r.lane.slots], w, operation, scale);
}

static void worker_posts(struct world *world, unsigned w)
{
	struct slot_flow *flow = &world->flows[w];
	uint64_t operation = flow->next;
	uint16_t scale = scale_of(w, operation);

	if (operation == world->operations || !slot_flow_has_room(flow, world->now))
		return;
	vector_encode(world, w, operation, scale);
	slot_flow_post(flow, op_of(operation), (uint8_t)(operation % 5 << 5),
	               (uint8_t)(operation % 3), scale,
	               world->vectors[w][operation % world->r.lane.slots],
	               bytes_of(world, operation, scale));
}

static void worker_takes(struct world *world, unsigned w, const struct message *message)
{
	struct slot_event event =
		slot_flow_take(&world->flows[w], &message->header, message->bytes, world->now);

	assert_true(event.kind != SLOT_DISAGREE);
	if (event.kind == SLOT_RESULT) {
		result_check(world, message, event.position);
		world->results[w]++;
	} else if (event.kind == SLOT_ENCODE) {
		vector_encode(world, w, event.position, event.scale);
		slot_flow_encoded(&world->flows[w], event.position, event.scale,
		                  world->vectors[w][event.position % world->r.lane.slots],
		                  bytes_of(world, event.position, event.scale));
	}
}

/* ---- the switch ---- */

static void replicate(struct world *world, const struct pisa_slot_answer *answer,
                      const uint64_t *payload)
{
	struct message message = { .bytes = answer->bytes, .header = answer->header };

	memcpy(message.payload, payload, answer->bytes);
	assert_true(answer->fate <= PISA_ALL);
	for (unsigned w = 0; w < world->workers; w++) {
		message.to = (int)w;
		if (answer->to >> w & 1)
			send(world, &message);
	}
}

static struct passing *queue_push(struct world *world, const struct message *message)
{
	struct passing *last = &world->queue[(world->first + world->n_queue++) % MESSAGES_MAX];

	last->message = *message;
	return last;
}

/* A pass of the oldest recirculated packet. */
static void queue_pass(struct world *world)
{
	struct passing oldest = world->queue[world->first], *last;
	struct pisa_slot_answer answer;
	enum pisa_fate fate;

	oldest.packet.words = (void *)oldest.message.payload;
	fate = pisa_pass(&world->r.slot.sw, &oldest.packet);
	world->first = (world->first + 1) % MESSAGES_MAX;
	world->n_queue--;
	if (fate == PISA_AGAIN) {
		last = queue_push(world, &oldest.message);
		last->packet = oldest.packet;
		return;
	}
	pisa_slot_end(&world->r.slot, &oldest.packet, fate, &answer);
	replicate(world, &answer, oldest.message.payload);
}

static void switch_takes(struct world *world, const struct message *message)
{
	struct passing *passing;

	if (!world->interleaves) {
		reference_both(&world->r, &message->header, message->payload, message->bytes);
		replicate(world, &world->r.answer, world->r.payload);
		return;
	}
	if (world->n_queue == MESSAGES_MAX)
		return; /* the port overflows: lost */
	passing = queue_push(world, message);
	pisa_slot_begin(&world->r.slot, &passing->packet, &message->header,
	                passing->message.payload, message->bytes);
}

static void deliver(struct world *world, unsigned i)
{
	struct message message = world->messages[i];

	world->messages[i] = world->messages[--world->n_messages];
	if (message.to < 0)
		switch_takes(world, &message);
	else
		worker_takes(world, (unsigned)message.to, &message);
}

static bool world_ended(const struct world *world)
{
	for (unsigned w = 0; w < world->workers; w++)
		if (world->results[w] < world->operations)
			return false;
	return true;
}

static void world_run(struct world *world)
{
	for (unsigned step = 0; !world_ended(world); step++) {
		unsigned w = below(world->workers);

		assert_true(step < 4000000);
		world->now += 1 + below(20000);
		worker_posts(world, w);
		if (world->n_messages < MESSAGES_MAX / 2)
			worker_sends(world, w);
		if (world->n_messages && below(8))
			deliver(world, below(world->n_messages));
		for (unsigned i = below(5); i && world->n_queue; i--)
			queue_pass(world);
	}
}

static void worlds_run(const char *name, bool interleaves)
{
	static struct world world;
	uint64_t trials = test_cases("worlds", 150), recirculations = 0;

	seed_start(name);
	for (uint64_t trial = 0; trial < trials; trial++) {
		memset(&world, 0, sizeof(world));
		world.workers = 2 + below(CHILDREN_MAX - 1);
		world.operations = 200;
		world.interleaves = interleaves;
		world.now = SECOND;
		reference_start(&world.r, world.workers, 2u << below(4), 8 * (1 + below(16)), 0);
		for (unsigned w = 0; w < world.workers; w++)
			slot_flow_init(&world.flows[w], world.entries[w], world.r.lane.slots, w);
		world_run(&world);
		recirculations += world.r.slot.sw.counters.recirculations;
		assert_int_equal(world.r.slot.sw.counters.broken, 0);
		reference_end(&world.r);
	}
	printf("%s: %llu recirculations\n", name, (unsigned long long)recirculations);
}

static void workers_drive_both(void **state)
{
	(void)state;
	worlds_run("workers_drive_both", false);
}

static void passes_interleave(void **state)
{
	(void)state;
	worlds_run("passes_interleave", true);
}

/* ---- sizes ---- */

static enum pisa_rule built(struct pisa_slot_size size, char *why)
{
	struct pisa_limits limits = pisa_limits_default();
	static struct pisa_slot slot;

	why[0] = 0;
	return pisa_slot_build(&slot, &size, &limits, why);
}

/* 64 K slots, 8 words of 32 bits, 8 children. */
static const struct pisa_slot_size paper_size = { .slots = SLOTS_MAX,
	                                          .payload = 32,
	                                          .children = 8 };

/*
 * The default: 64 K slots, 8 words, 8 children. Each array has one spare block.
 *
 *   stage 0: position 16 + 1, mark (32 + 8 bits) 20 + 1, form (24 bits) 12 + 1: 51 of 72
 *   stage 1: acked (8 bits) 4 + 1, low 1 + 1, two words 2 * (16 + 1): 41
 *   stages 2 and 3: three words 3 * (16 + 1): 51
 */
static void default_fills_the_budget(void **state)
{
	static const unsigned blocks[] = { 51, 41, 51, 51 };
	struct pisa_limits limits = pisa_limits_default();
	struct pisa_slot_size size = paper_size;
	static struct pisa_slot slot;
	char why[PISA_WHY_MAX] = "", text[64];

	(void)state;
	assert_int_equal(pisa_slot_build(&slot, &size, &limits, why), PISA_OBEYS);
	for (unsigned stage = 0; stage < 4; stage++)
		assert_int_equal(pisa_stage_blocks(&slot.code.program, &limits, stage),
		                 blocks[stage]);
	pisa_stage_tell(&slot.code.program, &limits, 2, text, sizeof(text));
	assert_string_equal(text, "stage 2: 70.83 % of its memory");
}

static void refuses_what_does_not_fit(void **state)
{
	struct pisa_slot_size size = paper_size;
	char why[PISA_WHY_MAX];

	(void)state;
	size.children = 32;
	assert_int_equal(built(size, why), PISA_RULE_MEMORY);
	assert_non_null(strstr(why, "Program slot breaks the rule 'memory': pass none, stage 0"));
	size.slots = 32768;
	assert_int_equal(built(size, why), PISA_OBEYS);
	size.children = 33;
	assert_int_equal(built(size, why), PISA_RULE_FORM);
	assert_non_null(strstr(why, "1 to 32 children"));
	size.children = 8;
	size.payload = 64; /* two entries for each slot: 32768 slots are enough for 70.83 % */
	assert_int_equal(built(size, why), PISA_OBEYS);
	size.slots = 65536;
	assert_int_equal(built(size, why), PISA_RULE_MEMORY);
	assert_non_null(strstr(why, "register word 1"));
	size.slots = 1000;
	assert_int_equal(built(size, why), PISA_RULE_FORM);
	size.slots = 64;
	size.payload = 12;
	assert_int_equal(built(size, why), PISA_RULE_FORM);
	size.payload = 60 * 32;
	assert_int_equal(built(size, why), PISA_OBEYS);
	size.payload = 61 * 32;
	assert_int_equal(built(size, why), PISA_RULE_RECIRCULATION);
}

static void refuses_operations_by_name(void **state)
{
	static struct reference r;
	uint64_t payload[REFERENCE_PAYLOAD / 8] = { 1 };
	struct pisa_slot_answer answer;

	(void)state;
	reference_start(&r, 2, 4, 8, 0);
	for (unsigned op = 0; op < WIRE_OPS_END; op++)
		assert_true(!pisa_slot_lacks((uint8_t)op) == !!memchr(can, (int)op, sizeof(can)));
	pisa_slot_take(&r.slot, &(struct wire_header){ .op = WIRE_MAX_U64 }, payload, 8, &answer);
	assert_int_equal(answer.fate, PISA_REFUSED);
	assert_string_equal(answer.why, "Program slot refuses the operation WIRE_MAX_U64: a switch "
	                                "compares up to 32 bits.");
	pisa_slot_take(&r.slot, &(struct wire_header){ .op = WIRE_ADD8 }, payload, 8, &answer);
	assert_int_equal(answer.fate, PISA_REFUSED);
	assert_non_null(strstr(answer.why, "WIRE_ADD8: a register holds one number of 32 bits"));
	assert_int_equal(r.slot.sw.counters.refused, 2);
	reference_end(&r);
}

/* The passes that pisa_slot.h promises. */
static void passes_are_as_promised(void **state)
{
	static struct reference r;
	uint64_t payload[REFERENCE_PAYLOAD / 8] = { 1 };
	struct wire_header packet = { .op = WIRE_ADD32 };

	(void)state;
	reference_start(&r, 2, 4, 64, 0);
	reference_both(&r, &packet, payload, 32);
	assert_int_equal(r.answer.recirculated, 1);
	packet.child = 1;
	reference_both(&r, &packet, payload, 32);
	assert_int_equal(r.answer.fate, PISA_ALL);
	packet = (struct wire_header){ .op = WIRE_ADD32, .pos = 1, .from = SLOT_ACKS };
	reference_both(&r, &packet, payload, 32); /* ack, judge, commit */
	assert_int_equal(r.answer.recirculated, 2);
	packet.child = 1;
	packet.pos = 2;
	reference_both(&r, &packet, payload, 64); /* clear and low twice, and words */
	assert_int_equal(r.answer.recirculated, 2 + 3 + 1);
	packet = (struct wire_header){ .from = SLOT_ACKS | SLOT_BARE | SLOT_WANTS };
	reference_both(&r, &packet, payload, 0);
	assert_int_equal(r.answer.header.from, SLOT_CLEAR);
	assert_int_equal(r.answer.header.ack, 1);
	reference_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(default_fills_the_budget),
		cmocka_unit_test(refuses_what_does_not_fit),
		cmocka_unit_test(refuses_operations_by_name),
		cmocka_unit_test(passes_are_as_promised),
		cmocka_unit_test(agrees_at_random),
		cmocka_unit_test(workers_drive_both),
		cmocka_unit_test(passes_interleave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
