/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dense engine alone: each verdict, each rule of reuse, and a random walk of millions of
 * packets beside a model that remembers everything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random_bits.h"
#include "engine/dense.h"
#include "short.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CELLS_MAX 64
#define WORDS 4u

static struct dense_lane lane;
static struct dense_cell cells[CELLS_MAX];
static const struct dense_pool pool = { .cells = (uint8_t *)cells, .cell_step = sizeof(cells[0]) };
static uint64_t sums[CELLS_MAX][WORDS];

static void lane_init(unsigned children, uint32_t n_cells)
{
	memset(&lane, 0, sizeof(lane));
	for (unsigned child = 0; child < children; child++)
		dense_add_child(&lane, child, child_bit(child));
	lane.cells = n_cells;
	lane.payload = WORDS * 8;
	for (unsigned i = 0; i < CELLS_MAX; i++)
		cells[i] = (struct dense_cell){ .position = DENSE_EMPTY };
}

/* A packet of ones, by default. */
#pragma GCC diagnostic ignored "-Woverride-init"
struct packet {
	uint64_t position;
	uint8_t child;
	uint32_t ack;
	uint16_t scale;
	uint8_t from, to, op, flags;
	uint32_t bytes;
	uint64_t value;
};

#define PACKET(at, who, ...)                                                        \
	(struct packet)                                                             \
	{                                                                           \
		.position = (at), .child = (who), .from = WIRE_ALL, .to = WIRE_ALL, \
		.op = WIRE_ADD64, .bytes = WORDS * 8, .value = 1, __VA_ARGS__       \
	}

static enum dense_verdict give(struct packet packet)
{
	struct wire_header header = { .type = WIRE_DATA,
		                      .flags = packet.flags,
		                      .child = packet.child,
		                      .op = packet.op,
		                      .pos = (uint32_t)packet.position,
		                      .ack = packet.ack,
		                      .scale = packet.scale,
		                      .from = packet.from,
		                      .to = packet.to };
	uint64_t payload[WORDS + 1];
	uint32_t at = dense_index(&lane, packet.position);

	for (unsigned i = 0; i < WORDS + 1; i++)
		payload[i] = packet.value;
	return dense_take(&lane, &cells[at], sums[at], &header, payload, packet.bytes);
}

static uint64_t sum_at(uint64_t position)
{
	uint32_t at = dense_index(&lane, position);

	assert_int_equal(cells[at].position, position);
	for (unsigned i = 1; i < cells[at].bytes / 8; i++)
		assert_int_equal(sums[at][i], sums[at][0]);
	return sums[at][0];
}

static void test_exactly_once(void **state)
{
	(void)state;
	lane_init(3, 8);
	assert_int_equal(give(PACKET(0, 1, .value = 10)), DENSE_ADDED);
	assert_int_equal(give(PACKET(0, 1, .value = 10)), DENSE_DUPLICATE);
	assert_int_equal(give(PACKET(0, 1, .flags = WIRE_RESENT)), DENSE_DUPLICATE);
	assert_int_equal(give(PACKET(0, 0, .value = 200)), DENSE_ADDED);
	assert_int_equal(give(PACKET(0, 0)), DENSE_DUPLICATE);
	assert_int_equal(dense_waiting(&lane, &pool, 0), 4);
	assert_int_equal(give(PACKET(0, 2, .value = 3000)), DENSE_COMPLETE);
	assert_int_equal(sum_at(0), 3210);
	for (uint8_t child = 0; child < 3; child++)
		assert_int_equal(give(PACKET(0, child, .value = 9)), DENSE_FINISHED);
	assert_int_equal(sum_at(0), 3210);
	assert_int_equal(dense_waiting(&lane, &pool, 0), 0);
	assert_int_equal(dense_waiting(&lane, &pool, 1), 7);
}

static void test_strangers(void **state)
{
	(void)state;
	lane_init(3, 8);
	assert_int_equal(give(PACKET(0, 3)), DENSE_STRANGER);
	assert_int_equal(give(PACKET(0, 63)), DENSE_STRANGER);
	/* Its low bits must not be taken for child 1, nor its acknowledgement. */
	assert_int_equal(give(PACKET(0, 65, .ack = 5)), DENSE_STRANGER);
	assert_int_equal(give(PACKET(0, 0xff, .ack = 5)), DENSE_STRANGER);
	assert_int_equal(lane.ack[1], 0);
	assert_true(cells[0].position == DENSE_EMPTY);
	lane_init(64, 8);
	assert_int_equal(give(PACKET(0, 0xff)), DENSE_STRANGER);
}

static void test_mismatch(void **state)
{
	(void)state;
	lane_init(3, 8);
	assert_int_equal(give(PACKET(0, 0)), DENSE_ADDED);
	assert_int_equal(give(PACKET(0, 1, .op = WIRE_ADD32)), DENSE_MISMATCH);
	assert_int_equal(give(PACKET(0, 1, .from = 1)), DENSE_MISMATCH);
	assert_int_equal(give(PACKET(0, 1, .to = 1)), DENSE_MISMATCH);
	assert_int_equal(give(PACKET(0, 1, .bytes = 8)), DENSE_MISMATCH);
	assert_int_equal(give(PACKET(0, 1, .bytes = WORDS * 8 + 8)), DENSE_MISMATCH);
	assert_int_equal(give(PACKET(0, 1, .flags = WIRE_AVERAGE)), DENSE_MISMATCH);
	assert_int_equal(give(PACKET(0, 1, .flags = 1 << WIRE_PADDING_SHIFT)), DENSE_MISMATCH);
	assert_int_equal(give(PACKET(0, 1, .flags = 1 << WIRE_TYPE_SHIFT)), DENSE_MISMATCH);
	/* None of them has changed anything. */
	assert_int_equal(give(PACKET(0, 1, .flags = WIRE_RESENT)), DENSE_ADDED);
	assert_int_equal(give(PACKET(0, 2)), DENSE_COMPLETE);
	assert_int_equal(sum_at(0), 3);
	assert_int_equal(give(PACKET(0, 1, .op = WIRE_ADD32)), DENSE_MISMATCH);
	/* A child that claims to be another, first in its cell. */
	assert_int_equal(give(PACKET(1, 1, .from = 2)), DENSE_MISMATCH);
	assert_int_equal(give(PACKET(1, 1, .from = 63)), DENSE_MISMATCH);
	assert_true(cells[1].position == DENSE_EMPTY);
}

static void test_one_sender(void **state)
{
	(void)state;
	lane_init(64, 8);
	assert_int_equal(give(PACKET(0, 63, .from = 63, .value = 5, .op = WIRE_OR64)),
	                 DENSE_COMPLETE);
	assert_int_equal(sum_at(0), 5);
	assert_int_equal(give(PACKET(1, 0, .from = 0, .to = 7, .bytes = 0)), DENSE_COMPLETE);
	assert_int_equal(cells[1].to, 7);
}

/* The window: all children must acknowledge before a cell is reused. */
static void test_window(void **state)
{
	(void)state;
	lane_init(2, 4);
	for (uint64_t p = 0; p < 4; p++) {
		assert_int_equal(give(PACKET(p, 0)), DENSE_ADDED);
		assert_int_equal(give(PACKET(p, 1)), DENSE_COMPLETE);
	}
	assert_int_equal(give(PACKET(4, 0, .ack = 4)), DENSE_AHEAD);
	assert_int_equal(lane.low, 0); /* child 1 has acknowledged none */
	assert_int_equal(sum_at(0), 2);
	assert_int_equal(give(PACKET(4, 1, .ack = 1)), DENSE_ADDED);
	assert_int_equal(lane.low, 1);
	assert_int_equal(give(PACKET(5, 1, .ack = 1)), DENSE_AHEAD);
	assert_int_equal(give(PACKET(0, 0, .ack = 4)), DENSE_STALE);
	assert_int_equal(give(PACKET(4, 0, .ack = 4)), DENSE_COMPLETE);
	assert_int_equal(sum_at(4), 2);
	assert_int_equal(sum_at(1), 2);
	/* A late, old acknowledgement changes nothing. */
	assert_int_equal(give(PACKET(4, 1, .ack = 0)), DENSE_FINISHED);
	assert_int_equal(lane.ack[1], 1);
	assert_int_equal(lane.low, 1);
	/* A child that has left blocks nothing. */
	lane.left = 2;
	dense_update_low(&lane);
	assert_int_equal(lane.low, 4);
	/* If the last child leaves, the window does not move. */
	lane.left = 3;
	dense_update_low(&lane);
	assert_int_equal(lane.low, 4);
	/* Non-members cannot acknowledge. */
	dense_ack(&lane, 64, 100);
	dense_ack(&lane, 255, 100);
	assert_int_equal(lane.low, 4);
}

/* Fragments that no child sends, such as absent specials, are skipped. */
static void test_skipped(void **state)
{
	(void)state;
	lane_init(2, 4);
	assert_int_equal(give(PACKET(0, 0)), DENSE_ADDED);
	assert_int_equal(give(PACKET(0, 1)), DENSE_COMPLETE);
	assert_int_equal(give(PACKET(100, 0, .ack = 99)), DENSE_AHEAD);
	assert_int_equal(give(PACKET(100, 1, .ack = 98)), DENSE_ADDED);
	assert_int_equal(lane.low, 98);
	assert_int_equal(give(PACKET(100, 0, .ack = 99)), DENSE_COMPLETE);
	assert_int_equal(sum_at(100), 2);
}

/* Acknowledgements are the low halves of positions, and must continue beyond 2^32. */
static void test_ack_wraps(void **state)
{
	uint64_t start = (5ull << 32) - 3;

	(void)state;
	lane_init(2, 4);
	lane.low = lane.ack[0] = lane.ack[1] = start;
	for (uint64_t p = start; p < start + 10; p++) {
		assert_int_equal(give(PACKET(p, 0, .ack = (uint32_t)p)), DENSE_ADDED);
		assert_int_equal(give(PACKET(p, 1, .ack = (uint32_t)p)), DENSE_COMPLETE);
		assert_true(lane.low == p && sum_at(p) == 2);
	}
	dense_ack(&lane, 0, (uint32_t)start);
	assert_true(lane.ack[0] == start + 9);
	/* At the very beginning, a value slightly below is not a huge one. */
	lane_init(1, 4);
	dense_ack(&lane, 0, UINT32_MAX);
	assert_int_equal(lane.ack[0], 0);
	dense_ack(&lane, 0, INT32_MAX);
	dense_update_low(&lane);
	assert_int_equal(lane.low, INT32_MAX);
}

/* In every order of arrival, with repeats: the sum has the highest scale only. */
static void test_scales(void **state)
{
	static const uint16_t own[3] = { 4, 9, 7 };
	static const uint8_t orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
		                              { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

	(void)state;
	for (unsigned o = 0; o < 6; o++) {
		unsigned lower = 0;

		lane_init(3, 8);
		for (unsigned i = 0; i < 3; i++) {
			uint8_t child = orders[o][i];
			enum dense_verdict verdict =
				give(PACKET(0, child, .scale = own[child], .value = 1u << child));

			assert_true(verdict == DENSE_ADDED || verdict == DENSE_LOWER);
			lower += verdict == DENSE_LOWER;
		}
		assert_int_equal(cells[0].scale, 9);
		assert_int_equal(cells[0].arrived, 2);
		assert_int_equal(sum_at(0), 2);
		assert_true(lower <= 2);
		/* All children send this once they know the scale. */
		assert_int_equal(give(PACKET(0, 1, .scale = 9, .value = 2)), DENSE_DUPLICATE);
		assert_int_equal(give(PACKET(0, 0, .scale = 9, .value = 100)), DENSE_ADDED);
		assert_int_equal(give(PACKET(0, 0, .scale = 4, .value = 1)), DENSE_LOWER);
		assert_int_equal(give(PACKET(0, 2, .scale = 9, .value = 1000)), DENSE_COMPLETE);
		assert_int_equal(sum_at(0), 1102);
		/* A complete sum does not change. */
		assert_int_equal(give(PACKET(0, 2, .scale = 10, .value = 7)), DENSE_FINISHED);
		assert_int_equal(sum_at(0), 1102);
	}
	/* A reused cell forgets the old scale. */
	lane_init(1, 1);
	assert_int_equal(give(PACKET(0, 0, .scale = 50)), DENSE_COMPLETE);
	assert_int_equal(give(PACKET(1, 0, .scale = 2, .ack = 1)), DENSE_COMPLETE);
	assert_int_equal(cells[0].scale, 2);
}

static void test_all_64(void **state)
{
	(void)state;
	lane_init(64, 2);
	for (unsigned child = 64; child-- > 0;)
		assert_int_equal(give(PACKET(0, (uint8_t)child, .value = child + 1)),
		                 child ? DENSE_ADDED : DENSE_COMPLETE);
	assert_int_equal(sum_at(0), 64 * 65 / 2);
	for (unsigned child = 0; child < 63; child++)
		dense_ack(&lane, child, 1);
	assert_int_equal(lane.low, 0);
	assert_int_equal(give(PACKET(2, 0)), DENSE_AHEAD);
	dense_ack(&lane, 63, 1);
	dense_update_low(&lane);
	assert_int_equal(lane.low, 1);
	assert_int_equal(give(PACKET(2, 0)), DENSE_ADDED);
}

static void answer(unsigned child, uint64_t base, uint32_t bits, uint32_t now, uint32_t young,
                   struct wire_status *status, uint64_t *repeat)
{
	struct wire_report report = { .base = base, .bits = bits, .stamp = 77, .young = young };

	memset(report.missing, 0xff, sizeof(report.missing));
	dense_answer(&lane, &pool, child, &report, now, 0, status, repeat);
	assert_int_equal(status->low, lane.low);
	assert_int_equal(status->base, base);
	assert_int_equal(status->stamp, 77);
}

/*
 * The fragments reported complete, if results sent less than `spare_us` microseconds ago do not
 * count.
 */
static uint64_t complete_but(uint32_t spare_us, uint32_t now)
{
	const struct wire_report report = { .bits = 5 };
	uint64_t repeat[WIRE_GROUP / 64];
	struct wire_status status;

	dense_answer(&lane, &pool, 0, &report, now, spare_us, &status, repeat);
	return status.complete[0];
}

static void test_answer(void **state)
{
	struct wire_status status;
	uint64_t repeat[WIRE_GROUP / 64];

	(void)state;
	lane_init(2, 8);
	give(PACKET(0, 0));
	give(PACKET(0, 1)); /* complete */
	give(PACKET(1, 0)); /* of child 0 only */
	give(PACKET(3, 1)); /* of child 1 only */
	cells[0].sent_at = 1000;
	answer(0, 0, 5, 1500, 500, &status, repeat);
	assert_int_equal(status.missing[0], 1 << 2 | 1 << 3 | 1 << 4);
	assert_int_equal(repeat[0], 1);
	assert_int_equal(status.complete[0], 1);
	assert_int_equal(status.bits, 5);
	assert_int_equal(status.waiting, 0); /* its first fragment is complete */
	answer(1, 0, 5, 1499, 500, &status, repeat);
	assert_int_equal(status.missing[0], 1 << 1 | 1 << 2 | 1 << 4);
	assert_int_equal(repeat[0], 0); /* it was sent just now */
	answer(1, 0, 0, 1499, 500, &status, repeat);
	assert_int_equal(status.missing[0], 0);
	/* A result that the kernel sent just now, or is about to send, is not reported complete. */
	assert_int_equal(complete_but(500, 1500), 1);
	assert_int_equal(complete_but(500, 1499), 0);
	assert_int_equal(complete_but(500, 999), 0);
	cells[0].lock = 1;
	assert_int_equal(complete_but(500, 1500), 0);
	assert_int_equal(complete_but(0, 1500), 1);
	cells[0].lock = 0;
	cells[0].to = 1; /* for a child that does not get it, it is complete at once */
	assert_int_equal(complete_but(500, 1499), 1);
	cells[0].to = WIRE_ALL;
	/* Which children wait for which. */
	dense_ack(&lane, 0, 1);
	answer(0, 1, 1, 9000, 0, &status, repeat);
	assert_int_equal(status.waiting, 2);
	assert_int_equal(status.missing[0], 0);
	/* An acknowledged fragment is not requested again, whatever the report says. */
	dense_ack(&lane, 1, 1);
	answer(0, 0, 3, 9000, 0, &status, repeat);
	assert_int_equal(status.missing[0], 1 << 2);
	/* Nor are fragments that the child has skipped while others hold the window back. */
	dense_ack(&lane, 0, 6);
	answer(0, 1, 7, 9000, 0, &status, repeat);
	assert_int_equal(lane.low, 1);
	assert_int_equal(status.missing[0], 1 << 5 | 1 << 6);
	/* Reports with invalid bases: nothing outside is read, and nothing is promised. */
	static const uint64_t bases[] = { WIRE_POSITION_MASK, ~0ull, 1ull << 63, 1ull << 40 };
	for (unsigned i = 0; i < 4; i++) {
		answer(1, bases[i], UINT32_MAX, 9000, 0, &status, repeat);
		assert_int_equal(status.bits, WIRE_GROUP);
		for (unsigned w = 0; w < WIRE_GROUP / 64; w++)
			for (unsigned b = 0; b < 64; b++)
				if (repeat[w] >> b & 1)
					assert_true(((bases[i] + 64 * w + b) & WIRE_POSITION_MASK) <
					            8);
	}
}

/* ---- the random walk ---- */

static uint64_t random_state;

static uint64_t next_random(void)
{
	return random_next(&random_state);
}

/*
 * A model with room for every fragment: no cells, no reuse, and full positions as acknowledgements.
 */
#define WALK 40000u

struct fragment {
	uint16_t scale;
	bool complete;
	uint64_t arrived, sum;
};

struct model {
	unsigned children;
	uint64_t ack[64];
	struct fragment fragments[WALK];
};

static uint64_t model_low(const struct model *model)
{
	uint64_t low = ~0ull;

	for (unsigned child = 0; child < model->children; child++)
		low = model->ack[child] < low ? model->ack[child] : low;
	return low;
}

/* A contribution depends only on position and child, so repeats are equal. */
static uint64_t value_of(uint64_t position, unsigned child, uint16_t scale)
{
	return (position * 1000003 + child) * 0x9e3779b97f4a7c15ull + scale;
}

static enum dense_verdict model_take(struct model *model, const struct packet *packet)
{
	struct fragment *fragment = &model->fragments[packet->position];
	uint64_t low;

	if (packet->ack > model->ack[packet->child])
		model->ack[packet->child] = packet->ack;
	low = model_low(model);
	if (packet->position < low)
		return DENSE_STALE;
	if (packet->position >= low + lane.cells)
		return DENSE_AHEAD;
	if (fragment->complete)
		return DENSE_FINISHED;
	if (fragment->arrived && packet->scale < fragment->scale)
		return DENSE_LOWER;
	if (fragment->arrived && packet->scale == fragment->scale &&
	    fragment->arrived >> packet->child & 1)
		return DENSE_DUPLICATE;
	if (!fragment->arrived || packet->scale > fragment->scale)
		*fragment = (struct fragment){ .scale = packet->scale };
	fragment->arrived |= 1ull << packet->child;
	fragment->sum += packet->value;
	if (fragment->arrived != lane.members)
		return DENSE_ADDED;
	fragment->complete = true;
	return DENSE_COMPLETE;
}

/*
 * Mostly the packet that a child would send next, sometimes an old, distant or differently scaled
 * one.
 */
static struct packet walk_packet(const struct model *model)
{
	uint8_t child = (uint8_t)(next_random() % model->children);
	uint64_t done = model->ack[child], random = next_random();
	uint64_t position = done + random % (lane.cells + 2);
	uint16_t scale;

	if (random >> 32 & 1) { /* let the slowest child catch up */
		for (unsigned other = 0; other < model->children; other++)
			if (model->ack[other] < model->ack[child])
				child = (uint8_t)other;
		done = model->ack[child];
		position = done + random % 3;
	}
	if ((random >> 33) % 16 == 0)
		position = position > 2 * lane.cells ? position - random % (2 * lane.cells) : 0;
	if (position >= WALK)
		position = WALK - 1;
	while (done < WALK && model->fragments[done].complete && next_random() % 4)
		done++;
	/* Children guess, and learn the highest scale from one another. */
	scale = model->fragments[position].scale;
	if ((random >> 40) % 8 == 0)
		scale = (uint16_t)((random >> 44) % 4);
	return PACKET(position, child, .ack = (uint32_t)done, .scale = scale, .value = 0);
}

static uint64_t walk(struct model *model, uint64_t seed)
{
	uint64_t packets = 0, seen[DENSE_VERDICTS_END] = { 0 };
	struct wire_status status;
	uint64_t repeat[WIRE_GROUP / 64];

	random_state = seed;
	memset(model, 0, sizeof(*model));
	model->children = seed % 2 ? 1 + (unsigned)(seed / 2 % 6) : 1u << seed / 2 % 7;
	lane_init(model->children, 1 + (uint32_t)(seed * 7 % CELLS_MAX));
	while (model_low(model) < WALK - 1 && packets < 500000) {
		struct packet packet = walk_packet(model);
		enum dense_verdict verdict, expected;

		packet.value = value_of(packet.position, packet.child, packet.scale);
		dense_update_low(&lane); /* the lane may be late; the model never is */
		verdict = give(packet);
		packets++;
		seen[verdict]++;
		expected = model_take(model, &packet);
		/* The packet's own acknowledgement, which made it stale, is processed last. */
		if (expected != DENSE_STALE || verdict != DENSE_FINISHED)
			assert_int_equal(verdict, expected);
		dense_update_low(&lane);
		assert_int_equal(lane.low, model_low(model));
		if (verdict == DENSE_COMPLETE)
			assert_true(sum_at(packet.position) ==
			            model->fragments[packet.position].sum);
		if (packets % 64)
			continue;
		answer(packet.child, lane.low, lane.cells, 0, 0, &status, repeat);
		for (uint32_t i = 0; i < lane.cells && lane.low + i < WALK; i++) {
			const struct fragment *f = &model->fragments[lane.low + i];
			bool missing = !f->complete && !(f->arrived >> packet.child & 1) &&
			               lane.low + i >= model->ack[packet.child];

			assert_int_equal(status.missing[i / 64] >> i % 64 & 1, missing);
			assert_int_equal(status.complete[i / 64] >> i % 64 & 1, f->complete);
			assert_int_equal(repeat[i / 64] >> i % 64 & 1, f->complete);
			if (f->complete) /* kept until all have it */
				assert_true(sum_at(lane.low + i) == f->sum);
		}
	}
	assert_true(seen[DENSE_COMPLETE] > 100);
	return packets;
}

static void test_random_walk(void **state)
{
	struct model *model = malloc(sizeof(*model));
	uint64_t packets = 0, enough = test_cases("packets", 6000000);

	(void)state;
	assert_non_null(model);
	for (uint64_t seed = 1; packets < enough; seed++)
		packets += walk(model, seed);
	print_message("%llu packets\n", (unsigned long long)packets);
	free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exactly_once), cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_mismatch),     cmocka_unit_test(test_one_sender),
		cmocka_unit_test(test_window),       cmocka_unit_test(test_skipped),
		cmocka_unit_test(test_ack_wraps),    cmocka_unit_test(test_scales),
		cmocka_unit_test(test_all_64),       cmocka_unit_test(test_answer),
		cmocka_unit_test(test_random_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
