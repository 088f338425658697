/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The XDP program in the middle of a tree, frame by frame. Sums go up as DATA if allowed, the
 * parent's results come down and go to the children, and the rest is left to the daemon.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "wire/checksum.h"
#include "wire/parse.h"
#include "xdp_rig.h"

#include <string.h>

#define PAYLOAD 512u
#define CELLS 8u
#define ELSEWHERE 77u /* an interface that does not exist: nothing is really sent */

static struct rig rig;
static struct frame frame, out;
static struct packet packet;
static const struct shape *way_up;

/* A lane with a parent, whose results leave in one frame for child 0. */
static void start(uint32_t children, const struct shape *way)
{
	rig_lane(&rig, children, CELLS, PAYLOAD);
	rig_routes(&rig, &shape_plain);
	rig.lane->entries = 1;
	rig_parent(&rig, way);
	way_up = way;
}

/* Sums a fragment of all children, the last one in a frame of this shape. Returns its fate. */
static int sum(struct rig_data data, const struct shape *shape, uint32_t *action)
{
	int taken;

	for (data.child = 0; data.child + 1u < rig.children; data.child++) {
		data.seed++;
		assert_int_equal(rig_give(&rig, data), DENSE_ADDED);
	}
	data.seed++;
	frame_data(&frame, shape, &data);
	*action = rig_run(&rig, &frame, &out, 0);
	taken = twin_take(&rig, &frame);
	rig_compare(&rig);
	return taken;
}

static void sum_up(struct rig_data data)
{
	uint32_t action;

	assert_int_equal(sum(data, &shape_plain, &action), DENSE_SUMMED);
	assert_int_equal(action, XDP_TX);
	raised_check(&rig, &out, way_up, data.position);
}

/* Gives a result in a frame of this shape. Returns the program's verdict. */
static uint32_t lower(struct rig_data data, const struct shape *shape, int wanted)
{
	uint32_t action;

	frame_make(&frame, shape, RIG_PARENT, &packet, packet_result(&packet, &data));
	action = rig_run(&rig, &frame, &out, 0);
	assert_int_equal(twin_take(&rig, &frame), wanted);
	rig_compare(&rig);
	return action;
}

/* The frame passes unchanged, and the lane is unchanged. */
static void passes(void)
{
	uint32_t action = rig_run(&rig, &frame, &out, 0);

	demand(action == XDP_PASS);
	demand(out.bytes == frame.bytes && !memcmp(out.data, frame.data, frame.bytes));
	rig_compare(&rig);
}

/* ---- up ---- */

static void test_up_in_every_shape(void **state)
{
	static const uint32_t lengths[] = { 0, 8, 248, PAYLOAD };
	uint32_t action;

	(void)state;
	for (unsigned way = 0; way < SHAPES; way++) {
		start(3, &shapes[way]);
		for (unsigned in = 0; in < SHAPES; in += test_is_short() ? 4 : 1)
			for (unsigned i = 0; i < countof(lengths); i++) {
				struct rig_data data = DATA(i, 0, .bytes = lengths[i], .scale = 7);

				/* Also results for one child only: the parent routes them. */
				data.to = i % 2 ? WIRE_ALL : 1;
				data.op = i < 2 ? WIRE_ADD64 : WIRE_MAX_U16;
				if (i == 0)
					rig_clear(&rig);
				assert_int_equal(sum(data, &shapes[in], &action), DENSE_SUMMED);
				assert_int_equal(action, XDP_TX);
				raised_check(&rig, &out, &shapes[way], i);
			}
	}
}

/* It acknowledges settled fragments, not the start of the window. */
static void test_up_header(void **state)
{
	const uint8_t flags = WIRE_AVERAGE | 3 << WIRE_PADDING_SHIFT | 5 << WIRE_TYPE_SHIFT;
	struct dense_cell *cell = NULL;
	uint32_t before = (uint32_t)(clock_now() / 1000);

	(void)state;
	start(2, &shape_plain);
	rig.dense->settled = 0x700000003ull;
	rig.dense->above = rig.dense->low = 0x700000001ull;
	rig.dense->ack[0] = rig.dense->ack[1] = 0x700000003ull;
	rig_copy(&rig);
	sum_up(DATA(0x700000004ull, 0, .flags = flags | WIRE_RESENT, .scale = 300, .ack = 3));
	memcpy(&packet, out.data + out.at, sizeof(packet.header));
	assert_int_equal(packet.header.flags, flags);
	assert_int_equal(packet.header.ack, 3);
	assert_int_equal(rig.lane->parent.launched, 1);
	assert_int_equal(rig.lane->parent.sent, 0x700000005ull);
	assert_int_equal(rig.lane->parent.told, 0x700000003ull);
	/* The send time is on the clock that the daemon reads. */
	cell = dense_cell(&rig.pool, dense_index(rig.dense, 0x700000004ull));
	assert_true(cell->raised_at - before < 1000000);
	assert_int_equal(cell->queued, UPLINK_RAISED);
	assert_false(cell->complete);
}

static void test_up_other_interface(void **state)
{
	uint32_t action;

	(void)state;
	start(2, &shape_plain);
	rig.lane->parent.route.ifindex = ELSEWHERE;
	assert_int_equal(sum(DATA(0, 0), &shapes[3], &action), DENSE_SUMMED);
	assert_int_equal(action, XDP_REDIRECT);
	raised_check(&rig, &out, &shape_plain, 0);
}

/* One child of many contributes: its packet is the sum. */
static void test_up_from_one(void **state)
{
	(void)state;
	start(5, &shape_plain);
	frame_data(&frame, &shape_plain, &DATA(0, 3, .from = 3, .op = WIRE_OR64));
	assert_int_equal(rig_agree(&rig, &frame, &out), DENSE_SUMMED);
	raised_check(&rig, &out, &shape_plain, 0);
}

/* No more than allowed: other packets pass, and the daemon sends their sums. */
static void test_up_is_bounded(void **state)
{
	struct dense_cell *cell;
	uint32_t action;

	(void)state;
	start(3, &shape_plain);
	rig.lane->parent.allowed = rig.twin_parent.allowed = 2;
	sum_up(DATA(0, 0));
	sum_up(DATA(1, 0));
	assert_int_equal(sum(DATA(2, 0), &shapes[7], &action), TAKEN_LEFT);
	assert_int_equal(action, XDP_PASS);
	assert_int_equal(out.bytes, frame.bytes);
	assert_memory_equal(out.data, frame.data, frame.bytes);
	cell = dense_cell(&rig.pool, 2);
	assert_true(uplink_is_left(cell));
	assert_int_equal(rig.lane->parent.launched, 2);
	/* A passed packet that comes again is a duplicate. */
	assert_int_equal(rig_agree(&rig, &frame, NULL), DENSE_DUPLICATE);
	rig.lane->parent.allowed = rig.twin_parent.allowed = 3;
	sum_up(DATA(3, 0));
}

static void test_up_without_a_way(void **state)
{
	uint32_t action;

	(void)state;
	start(2, &shape_plain);
	rig.lane->parent.active = rig.twin_parent.active = 0;
	assert_int_equal(sum(DATA(0, 0), &shape_plain, &action), TAKEN_LEFT);
	assert_int_equal(action, XDP_PASS);
	/* A route that the program does not know: as if the sum were lost. */
	rig.lane->parent.active = rig.twin_parent.active = 1;
	rig.lane->parent.route.l3 = 24;
	assert_int_equal(sum(DATA(1, 0), &shape_plain, &action), DENSE_SUMMED);
	assert_int_equal(action, XDP_DROP);
	rig.lane->parent.route.ifindex = 0;
	assert_int_equal(sum(DATA(2, 0), &shape_plain, &action), DENSE_SUMMED);
	assert_int_equal(action, XDP_DROP);
}

/* A higher scale empties a sum that went up, and the sum goes up again. */
static void test_higher_after_summed(void **state)
{
	(void)state;
	start(2, &shape_plain);
	sum_up(DATA(0, 0, .scale = 3));
	assert_int_equal(rig_give(&rig, DATA(0, 0, .scale = 2)), DENSE_LOWER);
	assert_int_equal(rig_give(&rig, DATA(0, 1, .scale = 3)), DENSE_DUPLICATE);
	assert_int_equal(rig_give(&rig, DATA(0, 1, .scale = 5, .seed = 99)), DENSE_ADDED);
	assert_false(dense_cell(&rig.pool, 0)->summed);
	/* The result of the lower scale is invalid now. */
	assert_int_equal(rig_lower(&rig, DATA(0, 0, .scale = 3)), TAKEN_NOT);
	assert_int_equal(rig_lower(&rig, DATA(0, 0, .scale = 5)), TAKEN_NOT);
	frame_data(&frame, &shape_plain, &DATA(0, 0, .scale = 5, .seed = 98));
	assert_int_equal(rig_agree(&rig, &frame, &out), DENSE_SUMMED);
	raised_check(&rig, &out, &shape_plain, 0);
	assert_int_equal(rig_lower(&rig, DATA(0, 0, .scale = 5)), DENSE_COMPLETE);
	assert_int_equal(rig_give(&rig, DATA(0, 0, .scale = 9)), DENSE_FINISHED);
}

/* The program does not know what the daemon has settled, so the packet passes. */
static void test_ahead_passes(void **state)
{
	(void)state;
	start(2, &shape_plain);
	frame_data(&frame, &shape_plain, &DATA(CELLS, 0, .ack = 4));
	assert_int_equal(rig_agree(&rig, &frame, &out), TAKEN_NOT);
	assert_int_equal(rig_lower(&rig, DATA(CELLS, 0)), TAKEN_NOT);
}

/* ---- down ---- */

static void test_down_in_every_shape(void **state)
{
	static const uint32_t lengths[] = { 0, 8, 248, PAYLOAD };

	(void)state;
	for (unsigned in = 0; in < SHAPES; in += test_is_short() ? 4 : 1) {
		start(2, &shapes[in]);
		for (unsigned way = 0; way < SHAPES; way++) {
			rig_clear(&rig);
			for (unsigned i = 0; i < countof(lengths); i++) {
				struct rig_data data = DATA(i, 0, .bytes = lengths[i], .scale = 2);
				uint32_t action;

				data.to = i % 2 ? WIRE_ALL : 0;
				data.op = i < 2 ? WIRE_MIN_I32 : WIRE_ADD64;
				sum(data, &shape_plain, &action);
				data.seed = 12345;
				route_make(&rig.lane->routes[0], &shapes[way], 0, RIG_LO);
				assert_int_equal(lower(data, &shapes[in], DENSE_COMPLETE), XDP_TX);
				result_check(&rig, &out, &shapes[way], 0, i);
			}
		}
	}
}

/* The parent's window is ours too, as far as we have settled. */
static void test_down_moves_the_window(void **state)
{
	(void)state;
	start(2, &shape_plain);
	for (uint64_t at = 0; at < 3; at++)
		sum_up(DATA(at, 0));
	assert_int_equal(lower(DATA(0, 0, .ack = 1), &shape_plain, DENSE_COMPLETE), XDP_TX);
	assert_int_equal(rig.dense->above, 0); /* we have not told it yet */
	rig.dense->settled = rig.twin.settled = 2;
	assert_int_equal(lower(DATA(1, 0, .ack = 1), &shape_plain, DENSE_COMPLETE), XDP_TX);
	assert_int_equal(rig.dense->above, 1);
	assert_int_equal(rig.dense->low, 1);
	result_check(&rig, &out, &shape_plain, 0, 1);
	assert_int_equal(lower(DATA(2, 0, .ack = 2), &shape_plain, DENSE_COMPLETE), XDP_TX);
	assert_int_equal(rig.dense->low, 2);
	/* An old result does not move it back. */
	lower(DATA(2, 0, .ack = 1), &shape_plain, DENSE_FINISHED);
	assert_int_equal(rig.dense->low, 2);
}

static void test_down_again(void **state)
{
	(void)state;
	start(2, &shape_plain);
	sum_up(DATA(0, 0));
	assert_int_equal(lower(DATA(0, 0, .flags = WIRE_RESENT), &shape_plain, DENSE_COMPLETE),
	                 XDP_TX);
	result_check(&rig, &out, &shape_plain, 0, 0);
	assert_int_equal(rig.lane->parent.heard, 1);
	assert_int_equal(lower(DATA(0, 0), &shape_plain, DENSE_FINISHED), XDP_DROP);
	assert_int_equal(rig_give(&rig, DATA(0, 0)), DENSE_FINISHED);
	rig.dense->low = rig.dense->above = rig.dense->settled = 1;
	rig_copy(&rig);
	assert_int_equal(lower(DATA(0, 0), &shape_plain, DENSE_STALE), XDP_DROP);
	assert_int_equal(rig.lane->parent.heard, 1);
}

/* It differs from what went up: the daemon counts it, and the sum is unchanged. */
static void test_down_mismatches_pass(void **state)
{
	(void)state;
	start(2, &shape_plain);
	assert_int_equal(rig_lower(&rig, DATA(0, 0)), TAKEN_NOT); /* nothing went up */
	assert_int_equal(rig_give(&rig, DATA(0, 0, .scale = 2)), DENSE_ADDED);
	assert_int_equal(rig_lower(&rig, DATA(0, 0, .scale = 2)), TAKEN_NOT);
	assert_int_equal(rig_give(&rig, DATA(0, 1, .scale = 2)), DENSE_SUMMED);
	assert_int_equal(rig_lower(&rig, DATA(0, 0, .scale = 1)), TAKEN_NOT);
	assert_int_equal(rig_lower(&rig, DATA(0, 0, .scale = 3)), TAKEN_NOT);
	assert_int_equal(rig_lower(&rig, DATA(0, 0, .scale = 2, .op = WIRE_ADD32)), TAKEN_NOT);
	assert_int_equal(rig_lower(&rig, DATA(0, 0, .scale = 2, .to = 1)), TAKEN_NOT);
	assert_int_equal(rig_lower(&rig, DATA(0, 0, .scale = 2, .from = 1)), TAKEN_NOT);
	assert_int_equal(rig_lower(&rig, DATA(0, 0, .scale = 2, .bytes = 56)), TAKEN_NOT);
	assert_int_equal(rig_lower(&rig, DATA(0, 0, .scale = 2, .flags = WIRE_AVERAGE)), TAKEN_NOT);
	assert_int_equal(rig_lower(&rig, DATA(0, 0, .scale = 2)), DENSE_COMPLETE);
}

/* Fragments without contributors here begin with their result. */
static void test_down_of_others(void **state)
{
	(void)state;
	start(2, &shape_plain);
	sum_up(DATA(0, 0));
	lower(DATA(0, 0), &shape_plain, DENSE_COMPLETE);
	rig.dense->low = rig.dense->above = rig.dense->settled = 1;
	rig_copy(&rig);
	assert_int_equal(lower(DATA(CELLS, 0, .from = 40, .op = WIRE_OR64, .scale = 4),
	                       &shape_plain, DENSE_COMPLETE),
	                 XDP_TX);
	result_check(&rig, &out, &shape_plain, 0, CELLS);
	/* The request was for the cell's last fragment, not for this one. */
	assert_int_equal(rig.lane->parent.heard, 1);
	assert_int_equal(lower(DATA(3, 0, .from = 40, .to = 1), &shape_plain, DENSE_COMPLETE),
	                 XDP_TX);
	result_check(&rig, &out, &shape_plain, 1, 3);
	/* For a rank that is not below us: no child gets it. */
	assert_int_equal(lower(DATA(4, 0, .from = 40, .to = 41), &shape_plain, DENSE_COMPLETE),
	                 XDP_DROP);
}

static void test_down_to_several(void **state)
{
	struct udp_address from, group;

	(void)state;
	rig_lane(&rig, 3, CELLS, PAYLOAD);
	for (uint8_t child = 0; child < 3; child++) {
		child_address(child, false, &from);
		frame_make(&frame, &shape_plain, child, &packet, packet_report(&packet, child));
		assert_int_equal(rig_run(&rig, &frame, &out, 0), XDP_PASS);
		xdp_handle_route(rig.handle, child, &from);
	}
	rig_parent(&rig, &shape_plain);
	sum_up(DATA(0, 0));
	assert_int_equal(lower(DATA(0, 0), &shape_plain, DENSE_COMPLETE), XDP_REDIRECT);
	/* Copies get their addresses when they leave, from a packet of ours. */
	memcpy(&packet, out.data + out.at, out.bytes - out.at);
	assert_int_equal(wire_parse(&packet, out.bytes - out.at), WIRE_SOUND);
	assert_int_equal(packet.header.comm, RIG_COMM);
	assert_true(
		wire_is_intact(&packet.header, out.bytes - out.at,
	                       &(struct wire_unsent){ rig_unsent(0).proof, rig_unsent(0).pos }));
	/* One frame for the multicast group. */
	assert_int_equal(udp_resolve("239.212.3.7:9000", 0, &group), TRIB_OK);
	xdp_handle_group(rig.handle, 7, &group);
	assert_int_equal(rig.lane->entries, 1);
	sum_up(DATA(1, 0));
	assert_int_equal(lower(DATA(1, 0), &shape_plain, DENSE_COMPLETE), XDP_TX);
	assert_memory_equal(out.data, ((uint8_t[]){ 0x01, 0x00, 0x5e, 0x54, 0x03, 0x07 }), 6);
}

static void test_down_corrupted(void **state)
{
	static struct frame good;

	(void)state;
	start(2, &shapes[1]);
	for (unsigned op = 0; op < 2; op++) {
		struct rig_data data = DATA(op, 0, .op = op ? WIRE_ADD64 : WIRE_MAX_U8);
		uint32_t action;

		sum(data, &shape_plain, &action);
		frame_make(&good, &shapes[1], RIG_PARENT, &packet, packet_result(&packet, &data));
		for (uint32_t at = good.at; at < good.bytes; at++)
			for (unsigned bit = at % 3; bit < 8; bit += test_is_short() ? 7 : 3) {
				int taken;

				frame = good;
				frame.data[at] ^= (uint8_t)(1 << bit);
				taken = rig_agree(&rig, &frame, NULL);
				demand(taken == TAKEN_CORRUPTED || taken == TAKEN_NOT);
				demand(at < good.at + WIRE_HEADER || taken == TAKEN_CORRUPTED);
			}
		/* The sum is unchanged, as it went up. */
		assert_int_equal(rig_agree(&rig, &good, NULL), DENSE_COMPLETE);
	}
}

/* A locked cell, no room, no route down yet, an unknown lane: all go to the daemon. */
static void test_down_passes(void **state)
{
	(void)state;
	start(2, &shape_plain);
	sum_up(DATA(0, 0));
	frame_make(&frame, &shape_plain, RIG_PARENT, &packet, packet_result(&packet, &DATA(0, 0)));
	dense_cell(&rig.pool, 0)->lock = 1;
	rig_copy(&rig);
	rig.counts.busy++;
	passes();
	dense_cell(&rig.pool, 0)->lock = 0;
	rig.lane->active = 0;
	rig_copy(&rig);
	passes();
	rig.lane->active = 1;
	rig.lane->entries = 0;
	passes();
	rig.lane->entries = 1;
	rig.lane->parent.active = 0;
	passes();
	rig.lane->parent.active = 1;
	frame_make(&frame, &shape_plain, RIG_PARENT, &packet,
	           packet_result(&packet, &DATA(0, 0, .bytes = PAYLOAD + 8)));
	passes();
	assert_int_equal(rig_lower(&rig, DATA(0, 0)), DENSE_COMPLETE);
}

/* ---- which results are accepted ---- */

static void sealed_as(uint32_t bytes, struct wire_unsent unsent)
{
	packet.header.check = wire_check_fragment(&packet, bytes, &unsent);
	frame_make(&frame, &shape_plain, RIG_PARENT, &packet, bytes);
}

static void sealed(uint32_t bytes)
{
	sealed_as(bytes, rig_parent_unsent(0));
}

static void test_strange_parents_pass(void **state)
{
	struct wire_header *header = &packet.header;
	uint32_t bytes;

	(void)state;
	start(2, &shape_plain);
	sum_up(DATA(0, 0));
#define WITH(change)                                         \
	do {                                                 \
		bytes = packet_result(&packet, &DATA(0, 0)); \
		change;                                      \
		sealed(bytes);                               \
		passes();                                    \
	} while (0)
	WITH(header->comm = RIG_COMM);
	WITH(header->comm = 0);
	WITH(header->child = RIG_PARENT_CHILD);
	WITH(header->child = 1);
	WITH(header->type = WIRE_DATA);
	WITH(header->type = WIRE_WELCOME);
	WITH(header->op = WIRE_OPS_END);
	WITH(header->from = WIRE_CHILDREN_MAX);
	WITH(header->to = WIRE_CHILDREN_MAX);
#undef WITH
#define SEALED(change)                                                            \
	do {                                                                      \
		struct wire_unsent unsent = rig_parent_unsent(0);                 \
		bytes = packet_result(&packet, &DATA(0, 0));                      \
		change;                                                           \
		sealed_as(bytes, unsent);                                         \
		assert_int_equal(rig_agree(&rig, &frame, NULL), TAKEN_CORRUPTED); \
	} while (0)
	SEALED(unsent.proof ^= 1);
	SEALED(unsent.proof ^= 1ull << 63);
	SEALED(unsent.proof = rig_unsent(0).proof);
	SEALED(unsent.pos = wire_pos(RIG_LANE + 1, 0));
	SEALED(unsent.pos = wire_pos(RIG_LANE, 1ull << 32));
#undef SEALED
	/* A result of our own that came back. */
	bytes = packet_data(&packet, &DATA(0, 0));
	header->type = WIRE_RESULT;
	header->child = WIRE_ALL;
	sealed_as(bytes, rig_unsent(0));
	passes();
	/* Of another aggregator, which has given the same number. */
	bytes = packet_result(&packet, &DATA(0, 0));
	frame_make(&frame, &shape_plain, RIG_PARENT + 1, &packet, bytes);
	passes();
	assert_int_equal(rig_lower(&rig, DATA(0, 0)), DENSE_COMPLETE);
}

/* On a switch, results for other children of the parent pass by. They are not ours. */
static void test_results_for_others_pass(void **state)
{
	static const unsigned four_and_six[] = { 0, 3, 5, 8 };

	(void)state;
	for (unsigned i = 0; i < countof(four_and_six); i++) {
		const struct shape *shape = &shapes[four_and_six[i]];
		static struct frame good;

		start(2, shape);
		sum_up(DATA(0, 0));
		frame_make(&good, shape, RIG_PARENT, &packet, packet_result(&packet, &DATA(0, 0)));
		for (unsigned at = 0; at < 6; at++) { /* destination, and a multicast group */
			frame = good;
			frame.data[at] ^= 1;
			passes();
		}
		for (unsigned back = 9; back <= 12; back++) { /* the last bytes of our address */
			frame = good;
			frame.data[frame.at - back] ^= 1;
			frame_fix(&frame);
			passes();
		}
		frame = good;
		frame.data[frame.at - 5] ^= 4; /* the port */
		passes();
		assert_int_equal(rig_agree(&rig, &good, NULL), DENSE_COMPLETE);
	}
}

/* The parent's number for its communicator may equal one of ours. */
static void test_same_numbers(void **state)
{
	static const uint16_t numbers[] = { 0, 1, RIG_COMM, XDP_COMMS - 1, XDP_COMMS, 0xffff };

	(void)state;
	for (unsigned i = 0; i < countof(numbers); i++) {
		uint32_t bytes;

		start(2, &shape_plain);
		sum_up(DATA(0, 0));
		assert_int_equal(xdp_handle_parent(rig.handle, &rig.parent, RIG_PARENT_COOKIE,
		                                   numbers[i], RIG_PARENT_EPOCH, RIG_PARENT_CHILD),
		                 TRIB_OK);
		bytes = packet_result(&packet, &DATA(0, 0));
		packet.header.comm = numbers[i];
		sealed(bytes);
		assert_int_equal(rig_run(&rig, &frame, &out, 0), XDP_TX);
		assert_true(dense_cell(&rig.pool, 0)->complete);
	}
	/* The lane and its name are gone. */
	start(2, &shape_plain);
	rig_lane(&rig, 2, CELLS, PAYLOAD);
	frame_make(&frame, &shape_plain, RIG_PARENT, &packet, packet_result(&packet, &DATA(0, 0)));
	passes();
}

/* ---- the route, learned from a status ---- */

static void status_from(const struct shape *shape, uint8_t child)
{
	frame_make(&frame, shape, RIG_PARENT, &packet, packet_status(&packet, child));
	assert_int_equal(rig_run(&rig, &frame, &out, 0), XDP_PASS);
	assert_int_equal(out.bytes, frame.bytes);
	assert_memory_equal(out.data, frame.data, frame.bytes);
}

static void test_way_from_status(void **state)
{
	struct udp_address parent;
	uint32_t action;

	(void)state;
	for (unsigned i = 0; i < SHAPES; i++) {
		start(2, &shapes[i]);
		memset(&rig.lane->parent.route, 0, sizeof(rig.lane->parent.route));
		rig.lane->parent.active = rig.twin_parent.active = 0;
		rig.lane->parent.mac = rig.lane->parent.address = 0;
		child_address(RIG_PARENT, shapes[i].six, &parent);
		assert_false(xdp_handle_parent_route(rig.handle, &parent)); /* no status was seen */
		status_from(&shapes[i], WIRE_ALL); /* for all: not on the route to us */
		status_from(&shapes[i], RIG_PARENT_CHILD + 1);
		assert_int_equal(rig.lane->parent.seen.ifindex, 0);
		status_from(&shapes[i], RIG_PARENT_CHILD);
		assert_int_equal(sum(DATA(0, 0), &shape_plain, &action), TAKEN_LEFT);
		assert_true(xdp_handle_parent_route(rig.handle, &parent));
		rig.twin_parent = rig.lane->parent;
		assert_int_equal(sum(DATA(1, 0), &shapes[9 - i], &action), DENSE_SUMMED);
		assert_int_equal(action, XDP_TX);
		raised_check(&rig, &out, &shapes[i], 1);
		assert_int_equal(lower(DATA(1, 0), &shapes[i], DENSE_COMPLETE), XDP_TX);
		result_check(&rig, &out, &shape_plain, 0, 1);
		/*
		 * The daemon takes the route back: sums are left to it, results are still accepted.
		 */
		xdp_handle_parent_stop(rig.handle);
		rig.twin_parent = rig.lane->parent;
		assert_int_equal(sum(DATA(2, 0), &shape_plain, &action), TAKEN_LEFT);
		assert_int_equal(lower(DATA(2, 0), &shapes[i], DENSE_COMPLETE), XDP_TX);
	}
}

/*
 * While a route is changed, sums are left to the daemon. Another status alone does not change it.
 */
static void test_way_again(void **state)
{
	struct udp_address parent;
	struct xdp_route before;
	uint32_t bytes;

	(void)state;
	for (unsigned i = 0; i < SHAPES; i++) {
		start(2, &shapes[i]);
		child_address(RIG_PARENT, shapes[i].six, &parent);
		status_from(&shapes[i], RIG_PARENT_CHILD);
		assert_true(xdp_handle_parent_route(rig.handle, &parent));
		before = rig.lane->parent.route;
		bytes = packet_status(&packet, RIG_PARENT_CHILD);
		packet.header.ack += 7;
		packet.header.check ^= 0x55aa55aa;
		frame_make(&frame, &shapes[i], RIG_PARENT, &packet, bytes);
		assert_int_equal(rig_run(&rig, &frame, &out, 0), XDP_PASS);
		assert_true(xdp_handle_parent_route(rig.handle, &parent));
		assert_memory_equal(&rig.lane->parent.route, &before, sizeof(before));
	}
}

/* The status came from another sender than the parent, or was multicast. */
static void test_way_of_another(void **state)
{
	struct udp_address parent, other;

	(void)state;
	start(2, &shape_plain);
	rig.lane->parent.active = 0;
	child_address(RIG_PARENT, false, &parent);
	child_address(RIG_PARENT + 1, false, &other);
	status_from(&shape_plain, RIG_PARENT_CHILD);
	assert_false(xdp_handle_parent_route(rig.handle, &other));
	frame.data[0] |= 1;
	assert_int_equal(rig_run(&rig, &frame, &out, 0), XDP_PASS);
	assert_false(xdp_handle_parent_route(rig.handle, &parent));
	status_from(&shape_plain, RIG_PARENT_CHILD);
	assert_true(xdp_handle_parent_route(rig.handle, &parent));
	/* A known route stays until another one is known. */
	assert_true(xdp_handle_parent_route(rig.handle, &other));
	status_from(&shapes[1], RIG_PARENT_CHILD);
	assert_true(xdp_handle_parent_route(rig.handle, &parent));
	assert_int_equal(rig.lane->parent.route.l2, 18);
}

/* Many fragments through the same cells, with the daemon's actions in between. */
static void test_repeatedly(void **state)
{
	(void)state;
	start(3, &shape_plain);
	for (uint64_t at = 0; at < (test_is_short() ? 100 : 1000); at++) {
		struct rig_data data = DATA(at, 0, .ack = (uint32_t)at, .scale = at & 3,
		                            .op = (uint8_t)(at % WIRE_OPS_END),
		                            .bytes = (uint32_t)(at % (PAYLOAD / 8 + 1) * 8));

		sum_up(data);
		data.seed = at * 77;
		data.ack = (uint32_t)rig.dense->settled; /* what the parent was told */
		assert_int_equal(lower(data, &shape_plain, DENSE_COMPLETE), XDP_TX);
		result_check(&rig, &out, &shape_plain, 0, at);
		uplink_settle(&(struct uplink){ 0 }, rig.dense, &rig.pool);
		uplink_settle(&(struct uplink){ 0 }, &rig.twin, &rig.twin_pool);
		assert_int_equal(rig.dense->settled, at);
	}
	assert_int_equal(rig.lane->parent.heard, rig.lane->parent.launched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_up_in_every_shape),
		cmocka_unit_test(test_up_header),
		cmocka_unit_test(test_up_other_interface),
		cmocka_unit_test(test_up_from_one),
		cmocka_unit_test(test_up_is_bounded),
		cmocka_unit_test(test_up_without_a_way),
		cmocka_unit_test(test_higher_after_summed),
		cmocka_unit_test(test_ahead_passes),
		cmocka_unit_test(test_down_in_every_shape),
		cmocka_unit_test(test_down_moves_the_window),
		cmocka_unit_test(test_down_again),
		cmocka_unit_test(test_down_mismatches_pass),
		cmocka_unit_test(test_down_of_others),
		cmocka_unit_test(test_down_to_several),
		cmocka_unit_test(test_down_corrupted),
		cmocka_unit_test(test_down_passes),
		cmocka_unit_test(test_strange_parents_pass),
		cmocka_unit_test(test_results_for_others_pass),
		cmocka_unit_test(test_same_numbers),
		cmocka_unit_test(test_way_from_status),
		cmocka_unit_test(test_way_again),
		cmocka_unit_test(test_way_of_another),
		cmocka_unit_test(test_repeatedly),
	};
	int failed;

	rig_load(&rig, PAYLOAD);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rig_unload(&rig);
	return failed;
}
