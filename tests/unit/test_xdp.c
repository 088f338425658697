/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The XDP program, frame by frame, in the kernel but without a network: what it passes and what it
 * takes, each verdict, each operation at each odd length. Corrupted packets leave no trace.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/checksum.h"
#include "wire/parse.h"
#include "xdp_rig.h"

#include <string.h>

#define MTU_PAYLOAD (rig.room < 1448 ? rig.room : 1448)

static struct rig rig;
static struct frame frame, out;
static struct packet packet;

/* Not ours: it passes unchanged, and the lane is unchanged. */
static void passes(const struct frame *in)
{
	uint32_t action = rig_run(&rig, in, &out, 0);

	demand(action == XDP_PASS);
	demand(out.bytes == in->bytes && !memcmp(out.data, in->data, in->bytes));
	rig_compare(&rig);
}

static void good_frame(const struct shape *shape)
{
	frame_data(&frame, shape, &DATA(0, 0));
}

/* With a sanitizer or in an emulated machine, only every n-th case. */
static unsigned stride(void)
{
	return test_is_short() ? 4 : 1;
}

/* ---- frames ---- */

static void test_shapes(void **state)
{
	(void)state;
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	for (unsigned i = 0; i < SHAPES; i++) {
		rig_clear(&rig);
		for (uint8_t child = 0; child < 2; child++) {
			frame_data(&frame, &shapes[i], &DATA(0, child));
			assert_int_equal(rig_agree(&rig, &frame, NULL), DENSE_ADDED);
		}
	}
}

static void test_three_tags_pass(void **state)
{
	const struct shape three = { { 0x8100, 0x8100, 0x8100 }, false };

	(void)state;
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	good_frame(&three);
	passes(&frame);
}

/* Every prefix of a frame, and every frame with a prefix of the packet and a matching IP length. */
static void test_truncated_pass(void **state)
{
	static struct frame whole;

	(void)state;
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	for (unsigned i = 0; i < SHAPES; i += stride()) {
		frame_data(&whole, &shapes[i], &DATA(0, 0, .bytes = 136));
		for (uint32_t bytes = 14; bytes < whole.bytes; bytes++) {
			frame = whole;
			frame.bytes = bytes;
			passes(&frame);
		}
		/* The whole packet is taken: only the length was wrong. */
		rig_clear(&rig);
		assert_int_equal(rig_agree(&rig, &whole, NULL), DENSE_ADDED);
		rig_clear(&rig);
	}
}

/* A checksum that fits the words present does not replace the missing ones. */
static void test_truncated_with_fitting_checksum(void **state)
{
	uint32_t bytes;

	(void)state;
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	for (uint32_t missing = 8; missing <= 128; missing += 8) {
		const struct wire_unsent unsent = rig_unsent(0);

		bytes = packet_data(&packet, &DATA(0, 0, .bytes = 128));
		packet.header.check = wire_check_end(wire_check_payload(&packet, bytes - missing),
		                                     (const wire_word *)&packet,
		                                     (const wire_word *)&unsent, bytes);
		frame_make(&frame, &shape_plain, 0, &packet, bytes);
		frame.bytes -= missing;
		passes(&frame);
	}
}

/* Bytes after the datagram, as in short frames, are not part of it. */
static void test_trailing_bytes(void **state)
{
	(void)state;
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	frame_data(&frame, &shape_plain, &DATA(0, 0, .bytes = 0));
	memset(frame.data + frame.bytes, 0xaa, 30);
	frame.bytes += 30;
	assert_int_equal(rig_agree(&rig, &frame, NULL), DENSE_ADDED);
}

static void test_udp_length(void **state)
{
	(void)state;
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	for (unsigned i = 0; i < SHAPES; i += stride())
		for (uint32_t length = 0; length < 0x10000;
		     length += length < 200 ? 1 : 997 * stride()) {
			uint8_t *udp;

			good_frame(&shapes[i]);
			udp = frame.data + frame.at - 8;
			if (length == 8 + WIRE_HEADER + 64)
				continue;
			udp[4] = (uint8_t)(length >> 8);
			udp[5] = (uint8_t)length;
			/*
			 * A shorter datagram is a packet of another length: its checksum is wrong.
			 */
			if (length % 8 == 0 && length >= 8 + WIRE_HEADER &&
			    length < 8 + WIRE_HEADER + 64)
				assert_int_equal(rig_agree(&rig, &frame, NULL), TAKEN_CORRUPTED);
			else
				passes(&frame);
		}
}

static void set16(uint32_t at, unsigned value)
{
	frame.data[at] = (uint8_t)(value >> 8);
	frame.data[at + 1] = (uint8_t)value;
}

/* One field of an otherwise valid frame differs. */
static void test_other_traffic_passes(void **state)
{
	(void)state;
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	for (unsigned i = 0; i < SHAPES; i += stride()) {
		const struct shape *shape = &shapes[i];
		uint32_t l2;

		good_frame(shape);
		l2 = frame.l2;
		set16(l2 - 2, 0x0806); /* ARP */
		passes(&frame);
		set16(l2 - 2, 0x88cc);
		passes(&frame);
		set16(l2 - 2, 100); /* an IEEE 802.3 length field */
		passes(&frame);
		set16(l2 - 2, shape->six ? 0x0800 : 0x86dd);
		passes(&frame);
		for (unsigned protocol = 0; protocol < 256; protocol += stride()) {
			good_frame(shape);
			frame.data[l2 + (shape->six ? 6 : 9)] = (uint8_t)protocol;
			if (protocol != 17)
				passes(&frame);
		}
		for (unsigned port = 0; port < 0x10000; port += 7 * stride()) {
			good_frame(shape);
			set16(frame.at - 6, port);
			if (port != RIG_PORT + RIG_LANE)
				passes(&frame);
		}
		for (unsigned lane = 0; lane < RIG_LANES + 2; lane++) {
			good_frame(shape);
			set16(frame.at - 6, RIG_PORT + lane);
			if (lane != RIG_LANE)
				passes(&frame);
		}
	}
}

static void test_fragments_and_options_pass(void **state)
{
	static const uint16_t fragments[] = { 0x2000, 0x0001, 0x2001, 0x1fff, 0x3fff, 0x6000 };

	(void)state;
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	for (unsigned tag = 0; tag < 5; tag++) {
		for (unsigned i = 0; i < countof(fragments); i++) {
			good_frame(&shapes[tag]);
			set16(frame.l2 + 6, fragments[i]);
			frame_fix(&frame);
			passes(&frame);
		}
		for (unsigned first = 0; first < 256; first += stride()) {
			good_frame(&shapes[tag]);
			frame.data[frame.l2] = (uint8_t)first;
			if (first != 0x45)
				passes(&frame);
		}
		/* Not a fragment: "don't fragment", and the reserved bit. */
		good_frame(&shapes[tag]);
		set16(frame.l2 + 6, tag % 2 ? 0xc000 : 0);
		rig_clear(&rig);
		assert_int_equal(rig_agree(&rig, &frame, NULL), DENSE_ADDED);
		rig_clear(&rig);
	}
	/* With valid options the packet begins four bytes later. */
	good_frame(&shape_plain);
	memmove(frame.data + 38, frame.data + 34, frame.bytes - 34);
	frame.data[14] = 0x46;
	memset(frame.data + 34, 1, 4);
	frame.bytes += 4;
	passes(&frame);
}

/* ---- membership ---- */

enum field { MAGIC, TYPE, COMM, OP, FROM, TO, CHILD, FIELDS };

static void field_set(struct wire_header *header, enum field field, uint64_t value)
{
	switch (field) {
	case MAGIC:
		header->magic = (uint16_t)value;
		break;
	case TYPE:
		header->type = (uint8_t)value;
		break;
	case COMM:
		header->comm = (uint16_t)value;
		break;
	case OP:
		header->op = (uint8_t)value;
		break;
	case FROM:
		header->from = (uint8_t)value;
		break;
	case TO:
		header->to = (uint8_t)value;
		break;
	default:
		header->child = (uint8_t)value;
	}
}

/* The packet with one field changed, and a correct checksum. */
static void frame_with(enum field field, uint64_t value)
{
	const struct wire_unsent unsent = rig_unsent(0);
	uint32_t bytes = packet_data(&packet, &DATA(0, 0));

	field_set(&packet.header, field, value);
	packet.header.check = wire_check_fragment(&packet, bytes, &unsent);
	frame_make(&frame, &shape_plain, 0, &packet, bytes);
}

static void test_others_pass(void **state)
{
	static const struct {
		enum field field;
		uint64_t first, last;
	} wrong[] = {
		{ MAGIC, 0, WIRE_MAGIC - 1 },
		{ MAGIC, WIRE_MAGIC + 1, 0xffff },
		{ TYPE, 0, 0 },
		{ TYPE, 2, 2 },
		{ TYPE, 4, 255 },
		{ COMM, 0, RIG_COMM - 1 },
		{ COMM, RIG_COMM + 1, 0xffff },
		{ OP, WIRE_OPS_END, 255 },
		{ FROM, 1, 254 }, /* not the sender, or no child */
		{ TO, WIRE_CHILDREN_MAX, 254 },
		{ CHILD, 3, 255 }, /* members are 0 to 2 */
	};

	(void)state;
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	for (unsigned i = 0; i < countof(wrong); i++) {
		uint64_t step = (wrong[i].last - wrong[i].first) / (512 / stride()) + 1;

		for (uint64_t value = wrong[i].first; value <= wrong[i].last; value += step) {
			frame_with(wrong[i].field, value);
			passes(&frame);
		}
	}
}

/* Of another communicator, job, epoch, lane or time: the daemon counts it as corrupted too. */
static void test_not_ours(void **state)
{
	const struct wire_unsent others[] = {
		{ wire_proof(0, RIG_JOB, RIG_EPOCH), wire_pos(RIG_LANE, 1) },
		{ wire_proof(RIG_COOKIE + 1, RIG_JOB, RIG_EPOCH), wire_pos(RIG_LANE, 1) },
		{ wire_proof(RIG_COOKIE ^ 1ull << 63, RIG_JOB, RIG_EPOCH), wire_pos(RIG_LANE, 1) },
		{ wire_proof(RIG_COOKIE, RIG_JOB + 1, RIG_EPOCH), wire_pos(RIG_LANE, 1) },
		{ wire_proof(RIG_COOKIE, RIG_JOB, RIG_EPOCH + 1), wire_pos(RIG_LANE, 1) },
		{ wire_proof(RIG_COOKIE, RIG_JOB, RIG_EPOCH), wire_pos(RIG_LANE + 1, 1) },
		{ wire_proof(RIG_COOKIE, RIG_JOB, RIG_EPOCH),
		  wire_pos(RIG_LANE, 1 + (1ull << 32)) },
		{ wire_proof(RIG_COOKIE, RIG_JOB, RIG_EPOCH), wire_pos(RIG_LANE, 2) },
	};

	(void)state;
	for (unsigned has = 0; has < 2; has++) { /* the cell is empty, or has a part */
		rig_lane(&rig, 3, 8, MTU_PAYLOAD);
		if (has)
			assert_int_equal(rig_give(&rig, DATA(1, 1)), DENSE_ADDED);
		for (unsigned i = 0; i < countof(others); i++) {
			uint32_t bytes = packet_data(&packet, &DATA(1, 0));

			wire_seal_fragment(&packet, bytes, &others[i]);
			frame_make(&frame, &shape_plain, 0, &packet, bytes);
			assert_int_equal(rig_agree(&rig, &frame, NULL), TAKEN_CORRUPTED);
		}
		assert_int_equal(rig_give(&rig, DATA(1, 0)), DENSE_ADDED);
	}
}

/* Positions are longer than the part that is sent. */
static void test_long_positions(void **state)
{
	static const uint64_t lows[] = { 0xfffffffe, 1ull << 31, 1ull << 32, (5ull << 32) - 3,
		                         1ull << 48 };

	(void)state;
	for (unsigned i = 0; i < countof(lows); i++) {
		rig_lane(&rig, 2, 8, MTU_PAYLOAD);
		rig.dense->low = lows[i];
		rig.dense->ack[0] = rig.dense->ack[1] = lows[i];
		rig_copy(&rig);
		for (uint64_t at = lows[i]; at < lows[i] + 8; at++) {
			uint32_t ack = (uint32_t)lows[i];

			assert_int_equal(rig_give(&rig, DATA(at, 0, .ack = ack)), DENSE_ADDED);
			assert_int_equal(rig_give(&rig, DATA(at, 1, .ack = ack)), DENSE_COMPLETE);
			assert_true(dense_cell(&rig.pool, (uint32_t)(at % 8))->position == at);
		}
		assert_int_equal(rig_give(&rig, DATA(lows[i] + 8, 0)), DENSE_AHEAD);
		assert_int_equal(rig_give(&rig, DATA(lows[i] - 1, 0)), DENSE_STALE);
	}
}

static void test_lane_not_active_passes(void **state)
{
	(void)state;
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	rig.lane->active = 0;
	good_frame(&shape_plain);
	passes(&frame);
	rig.lane->active = 1;
	/* More cells than the pool has, an impossible setting: no cell, no sum. */
	rig.dense->cells = rig.twin.cells = 1000;
	frame_data(&frame, &shape_plain, &DATA(500, 0));
	passes(&frame);
	/* The pool is gone, the lane is not yet. */
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	good_frame(&shape_plain);
	xdp_handle_close(rig.handle);
	rig.lane->active = 1;
	assert_int_equal(rig_run(&rig, &frame, &out, 0), XDP_PASS);
	rig.lane->active = 0;
	rig.handle = NULL;
	free(rig.twin_pool.cells);
}

static void test_payload_too_long_passes(void **state)
{
	(void)state;
	rig_lane(&rig, 3, 8, 512);
	for (uint32_t bytes = 520; bytes <= 2400; bytes += 8) {
		frame_data(&frame, &shape_plain, &DATA(0, 0, .bytes = bytes));
		passes(&frame);
	}
	assert_int_equal(rig_give(&rig, DATA(0, 0, .bytes = 512)), DENSE_ADDED);
	/* Too long for a cell, even if the lane would accept it. */
	rig_lane(&rig, 3, 8, rig.room);
	rig.dense->payload = rig.twin.payload = WIRE_PAYLOAD_MAX;
	frame_data(&frame, &shape_plain, &DATA(0, 0, .bytes = rig.room + 8));
	passes(&frame);
}

static void test_reports_are_seen_and_pass(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SHAPES; i += stride()) {
		rig_lane(&rig, 64, 8, MTU_PAYLOAD);
		for (uint8_t child = 0; child < 64; child += 9) {
			const struct xdp_seen *seen = &rig.lane->seen[child];
			uint32_t bytes = packet_report(&packet, child);

			frame_make(&frame, &shapes[i], child, &packet, bytes);
			assert_int_equal(seen->ifindex, 0);
			passes(&frame);
			assert_int_equal(seen->ifindex, RIG_LO);
			assert_memory_equal(seen->head, frame.data, XDP_HEAD_MAX);
		}
	}
	/* Neither is DATA, nor the report of a non-member. */
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	good_frame(&shape_plain);
	rig_agree(&rig, &frame, NULL);
	frame_make(&frame, &shape_plain, 1, &packet, packet_report(&packet, 1));
	frame.data[frame.at + 8] ^= 1; /* the cookie */
	passes(&frame);
	assert_int_equal(rig.lane->seen[0].ifindex, 0);
	assert_int_equal(rig.lane->seen[1].ifindex, 0);
}

/* ---- verdicts ---- */

static void test_verdicts(void **state)
{
	(void)state;
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	assert_int_equal(rig_give(&rig, DATA(0, 0)), DENSE_ADDED); /* fresh */
	assert_int_equal(rig_give(&rig, DATA(0, 0)), DENSE_DUPLICATE);
	assert_int_equal(rig_give(&rig, DATA(0, 0, .flags = WIRE_RESENT)), DENSE_DUPLICATE);
	assert_int_equal(rig_give(&rig, DATA(0, 1)), DENSE_ADDED);
	assert_int_equal(rig_give(&rig, DATA(0, 1, .scale = 5)), DENSE_ADDED); /* higher */
	assert_int_equal(dense_cell(&rig.pool, 0)->arrived, 2);
	assert_int_equal(rig_give(&rig, DATA(0, 0, .scale = 4)), DENSE_LOWER);
	assert_int_equal(rig_give(&rig, DATA(0, 0, .scale = 5)), DENSE_ADDED);
	assert_int_equal(rig_give(&rig, DATA(0, 1, .scale = 5)), DENSE_DUPLICATE);
	assert_int_equal(rig_give(&rig, DATA(0, 2, .scale = 5)), DENSE_COMPLETE);
	for (uint8_t child = 0; child < 3; child++)
		for (uint16_t scale = 4; scale < 7; scale++)
			assert_int_equal(rig_give(&rig, DATA(0, child, .scale = scale)),
			                 DENSE_FINISHED);
	assert_int_equal(rig_give(&rig, DATA(8, 0)), DENSE_AHEAD);
	assert_int_equal(rig_give(&rig, DATA((1ull << 31) - 1, 0)), DENSE_AHEAD);
	/* So far away that the program takes it for another position. */
	assert_int_equal(rig_give(&rig, DATA(1ull << 31, 0)), TAKEN_CORRUPTED);
	assert_int_equal(rig_give(&rig, DATA(1ull << 40, 0)), TAKEN_CORRUPTED);
	assert_int_equal(rig_give(&rig, DATA(WIRE_POSITION_MASK, 0)), TAKEN_CORRUPTED);
	assert_int_equal(rig_give(&rig, DATA(8, 0, .ack = 1)), DENSE_AHEAD);
	assert_int_equal(rig_give(&rig, DATA(8, 1, .ack = 1)), DENSE_AHEAD);
	/* The last missing acknowledgement arrives with the packet itself. */
	assert_int_equal(rig_give(&rig, DATA(8, 2, .ack = 1)), DENSE_ADDED);
	assert_int_equal(rig.dense->low, 1);
	assert_int_equal(rig_give(&rig, DATA(0, 1)), DENSE_STALE);
	assert_int_equal(rig_give(&rig, DATA(8, 1)), DENSE_ADDED);
	assert_int_equal(rig_give(&rig, DATA(8, 0)), DENSE_COMPLETE);
}

/* A packet ahead of the window that its own acknowledgement opens: every resulting verdict. */
static void test_ahead_becomes(void **state)
{
	static const uint8_t ops[] = { WIRE_ADD64, WIRE_ADD32, WIRE_MAX_U16 };
	struct dense_cell *cell;

	(void)state;
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	for (unsigned i = 0; i < countof(ops); i++)
		for (unsigned round = 0; round < 5; round++) {
			struct rig_data data = DATA(8, 1, .ack = 1, .op = ops[i], .scale = 7);
			static const int wanted[] = { DENSE_ADDED, DENSE_ADDED, DENSE_LOWER,
				                      DENSE_DUPLICATE, TAKEN_NOT };

			rig_clear(&rig);
			rig.dense->ack[0] = rig.dense->ack[1] = rig.dense->ack[2] = rig.dense->low =
				1;
			rig_copy(&rig);
			rig_give(&rig, DATA(8, 0, .op = ops[i], .scale = 7));
			/* The window is at its old place: another core had not seen it move. */
			cell = dense_cell(&rig.pool, 0);
			rig.dense->low = 0;
			rig.dense->ack[1] = 0;
			cell->scale = round == 2 ? 8 : round == 1 ? 6 : 7;
			cell->arrived = round == 3 ? 3 : 1;
			cell->bytes = round == 4 ? 8 : 64;
			rig_copy(&rig);
			assert_int_equal(rig_give(&rig, data), wanted[round]);
			assert_int_equal(rig.dense->low, 1);
		}
}

static void test_mismatches_pass(void **state)
{
	(void)state;
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	assert_int_equal(rig_give(&rig, DATA(0, 0)), DENSE_ADDED);
	assert_int_equal(rig_give(&rig, DATA(0, 1, .op = WIRE_ADD32)), TAKEN_NOT);
	assert_int_equal(rig_give(&rig, DATA(0, 1, .from = 1)), TAKEN_NOT);
	assert_int_equal(rig_give(&rig, DATA(0, 1, .to = 1)), TAKEN_NOT);
	assert_int_equal(rig_give(&rig, DATA(0, 1, .flags = WIRE_AVERAGE)), TAKEN_NOT);
	assert_int_equal(rig_give(&rig, DATA(0, 1, .bytes = 72)), TAKEN_NOT);
	assert_int_equal(rig_give(&rig, DATA(0, 1, .bytes = 56)), TAKEN_NOT);
	assert_int_equal(rig_give(&rig, DATA(0, 1)), DENSE_ADDED);
}

/* Positions and acknowledgements beyond 32 bits; members that have left. */
static void test_far_positions(void **state)
{
	uint64_t far = 0x12fffffff0ull;

	(void)state;
	rig_lane(&rig, 2, 8, MTU_PAYLOAD);
	rig.dense->low = rig.dense->ack[0] = rig.dense->ack[1] = far;
	rig_copy(&rig);
	for (uint64_t at = far; at < far + 64; at++)
		for (uint8_t child = 0; child < 2; child++)
			assert_int_equal(rig_give(&rig, DATA(at, child, .ack = (uint32_t)at)),
			                 child ? DENSE_COMPLETE : DENSE_ADDED);
	rig.dense->left = rig.twin.left = 1;
	for (uint64_t at = far + 64; at < far + 128; at++) {
		rig_give(&rig, DATA(at, 1, .from = 1, .ack = (uint32_t)at));
		assert_int_equal(dense_cell(&rig.pool, (uint32_t)(at % 8))->position, at);
	}
}

static void test_one_sender(void **state)
{
	(void)state;
	rig_lane(&rig, 64, 8, MTU_PAYLOAD);
	assert_int_equal(rig_give(&rig, DATA(0, 63, .from = 63, .op = WIRE_OR64)), DENSE_COMPLETE);
	assert_int_equal(rig_give(&rig, DATA(0, 63, .from = 63, .op = WIRE_OR64)), DENSE_FINISHED);
	assert_int_equal(rig_give(&rig, DATA(1, 62, .from = 63)), TAKEN_NOT);
}

static void test_sixty_four(void **state)
{
	(void)state;
	rig_lane(&rig, 64, 4, MTU_PAYLOAD);
	for (uint8_t child = 0; child < 64; child++)
		assert_int_equal(rig_give(&rig, DATA(2, child, .bytes = MTU_PAYLOAD)),
		                 child < 63 ? DENSE_ADDED : DENSE_COMPLETE);
	for (uint8_t child = 0; child < 64; child++)
		assert_int_equal(rig.lane->last[child], child == 63);
}

/* A cell that another core holds: the packet goes to the daemon, which waits for it. */
static void test_busy_passes(void **state)
{
	(void)state;
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	dense_cell(&rig.pool, 0)->lock = 1;
	rig_copy(&rig);
	rig.counts.busy++;
	good_frame(&shape_plain);
	passes(&frame);
	dense_cell(&rig.pool, 0)->lock = 0;
	rig_copy(&rig);
	assert_int_equal(rig_agree(&rig, &frame, NULL), DENSE_ADDED);
}

/* ---- sums ---- */

/* Lengths at which loops of 16, 4 and 1 words begin and end, and all short ones. */
static uint32_t next_length(uint32_t bytes)
{
	if (bytes < 280)
		return bytes + 8;
	return bytes % 128 == 120 || bytes % 128 == 0 ? bytes + 8 : (bytes / 128 + 1) * 128 - 8;
}

static void test_operations(void **state)
{
	(void)state;
	rig_lane(&rig, 3, 4, rig.room);
	for (uint8_t op = 0; op < WIRE_OPS_END; op++) {
		uint64_t position = 0;

		rig_clear(&rig);
		for (uint32_t bytes = 0; bytes <= rig.room; bytes = next_length(bytes)) {
			struct rig_data data = DATA(position, 0, .op = op, .bytes = bytes,
			                            .ack = (uint32_t)position);

			for (data.child = 0; data.child < 3; data.child++) {
				data.seed = position * 3 + data.child;
				assert_int_equal(rig_give(&rig, data),
				                 data.child < 2 ? DENSE_ADDED : DENSE_COMPLETE);
			}
			position++;
		}
	}
	/* The longest possible length is included. */
	rig_lane(&rig, 2, 4, rig.room);
	for (uint8_t op = 0; op < WIRE_OPS_END; op++) {
		rig_clear(&rig);
		rig_give(&rig, DATA(0, 0, .op = op, .bytes = rig.room));
		assert_int_equal(rig_give(&rig, DATA(0, 1, .op = op, .bytes = rig.room)),
		                 DENSE_COMPLETE);
	}
}

/* Equal values, extremes and signs: difficult for minimum and maximum. */
static void test_extremes(void **state)
{
	static const uint64_t edges[] = { 0,
		                          ~0ull,
		                          1,
		                          1ull << 63,
		                          ~0ull >> 1,
		                          0x8000000080000000ull,
		                          0x7fffffff7fffffffull,
		                          0x80807f7f01fe00ffull };

	(void)state;
	rig_lane(&rig, 2, 4, MTU_PAYLOAD);
	for (uint8_t op = 0; op < WIRE_OPS_END; op++) {
		rig_clear(&rig);
		for (uint8_t child = 0; child < 2; child++) {
			uint32_t bytes =
				packet_data(&packet, &DATA(0, child, .op = op, .bytes = 512));

			for (unsigned i = 0; i < 64; i++)
				packet.words[i] = edges[child ? i / 8 : i % 8];
			rig_seal(&rig, &packet, bytes);
			frame_make(&frame, &shape_plain, child, &packet, bytes);
			rig_agree(&rig, &frame, NULL);
		}
		assert_true(dense_cell(&rig.pool, 0)->complete);
	}
}

/* ---- corruption ---- */

/* Changes every byte of the packet in turn. Nothing of it may remain. */
static void corrupt_each_byte(struct rig_data data)
{
	static struct frame good;
	int taken;

	frame_data(&good, &shapes[data.position % SHAPES], &data);
	for (uint32_t at = good.at; at < good.bytes; at++)
		for (unsigned bit = at % 3; bit < 8; bit += 3 * stride()) {
			uint64_t corrupted = rig.counts.verdicts[TAKEN_CORRUPTED];
			uint32_t field = at - good.at;

			frame = good;
			frame.data[at] ^= (uint8_t)(1 << bit);
			taken = rig_agree(&rig, &frame, NULL);
			demand(taken == TAKEN_CORRUPTED || taken == TAKEN_NOT);
			if (field >= WIRE_HEADER) {
				demand(taken == TAKEN_CORRUPTED);
				demand(rig.counts.verdicts[TAKEN_CORRUPTED] == corrupted + 1);
			}
		}
}

static void test_corrupted(void **state)
{
	static const uint8_t ops[] = { WIRE_ADD64, WIRE_ADD8, WIRE_MAX_U16 };
	static const uint32_t lengths[] = { 8, 64, 136, 280 };

	(void)state;
	rig_lane(&rig, 3, 8, MTU_PAYLOAD);
	for (unsigned i = 0; i < countof(ops) * countof(lengths); i += stride()) {
		uint8_t op = ops[i % countof(ops)];
		uint32_t bytes = lengths[i / countof(ops)];

		rig_clear(&rig);
		corrupt_each_byte(DATA(i % 8, 0, .op = op, .bytes = bytes)); /* fresh */
		rig_give(&rig, DATA(i % 8, 0, .op = op, .bytes = bytes, .scale = 2));
		corrupt_each_byte(DATA(i % 8, 0, .op = op, .bytes = bytes, .scale = 2));
		corrupt_each_byte(DATA(i % 8, 1, .op = op, .bytes = bytes, .scale = 1));
		corrupt_each_byte(DATA(i % 8, 1, .op = op, .bytes = bytes, .scale = 3));
		/* Added during the check, and undone. */
		corrupt_each_byte(DATA(i % 8, 1, .op = op, .bytes = bytes, .scale = 2));
		rig_give(&rig, DATA(i % 8, 1, .op = op, .bytes = bytes, .scale = 2));
		corrupt_each_byte(DATA(i % 8, 2, .op = op, .bytes = bytes, .scale = 2));
		assert_int_equal(
			rig_give(&rig, DATA(i % 8, 2, .op = op, .bytes = bytes, .scale = 2)),
			DENSE_COMPLETE);
		corrupt_each_byte(DATA(i % 8, 2, .op = op, .bytes = bytes, .scale = 2));
	}
}

/* The longest packet, changed at a few places. */
static void test_corrupted_long(void **state)
{
	static struct frame good;

	(void)state;
	rig_lane(&rig, 2, 8, rig.room);
	rig_give(&rig, DATA(0, 0, .bytes = rig.room));
	frame_data(&good, &shape_plain, &DATA(0, 1, .bytes = rig.room));
	for (uint32_t at = good.at + WIRE_HEADER; at < good.bytes; at += 7 * stride()) {
		frame = good;
		frame.data[at] ^= 0x10;
		assert_int_equal(rig_agree(&rig, &frame, NULL), TAKEN_CORRUPTED);
	}
	assert_int_equal(rig_agree(&rig, &good, NULL), DENSE_COMPLETE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_three_tags_pass),
		cmocka_unit_test(test_truncated_pass),
		cmocka_unit_test(test_truncated_with_fitting_checksum),
		cmocka_unit_test(test_trailing_bytes),
		cmocka_unit_test(test_udp_length),
		cmocka_unit_test(test_other_traffic_passes),
		cmocka_unit_test(test_fragments_and_options_pass),
		cmocka_unit_test(test_others_pass),
		cmocka_unit_test(test_not_ours),
		cmocka_unit_test(test_long_positions),
		cmocka_unit_test(test_lane_not_active_passes),
		cmocka_unit_test(test_payload_too_long_passes),
		cmocka_unit_test(test_reports_are_seen_and_pass),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_ahead_becomes),
		cmocka_unit_test(test_mismatches_pass),
		cmocka_unit_test(test_far_positions),
		cmocka_unit_test(test_one_sender),
		cmocka_unit_test(test_sixty_four),
		cmocka_unit_test(test_busy_passes),
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_corrupted),
		cmocka_unit_test(test_corrupted_long),
	};
	int failed;

	rig_load(&rig, test_is_short() ? 512 : XDP_PAYLOAD_MAX);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rig_unload(&rig);
	return failed;
}
