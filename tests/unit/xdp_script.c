/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp_script.h"

#include "wire/check.h"
#include "wire/parse.h"

#include <string.h>

#define DATAGRAM_MAX 2400u /* the kernel runs programs on frames within a page */

/* The way to a child is of one shape or another. */
static const struct shape *way_to(unsigned child)
{
	return &shapes[child * 3 % SHAPES];
}

void script_lane(struct rig *rig)
{
	rig_lane(rig, SCRIPT_CHILDREN, SCRIPT_CELLS, SCRIPT_PAYLOAD);
	for (unsigned child = 0; child < SCRIPT_CHILDREN; child++)
		route_make(&rig->lane->routes[child], way_to(child), child, RIG_LO);
	rig->lane->entries = 1;
	rig->lane->entry[0] = 2;
}

static int frame_try(struct rig *rig, const struct frame *frame)
{
	static struct frame out;
	struct wire_header header;
	int taken = rig_agree(rig, frame, &out);

	if (taken != DENSE_COMPLETE)
		return taken;
	memcpy(&header, frame->data + frame->at, sizeof(header));
	if (header.to == WIRE_ALL)
		header.to = 2;
	if (header.to < SCRIPT_CHILDREN) {
		/* What was behind the datagram is behind the result. */
		out.bytes -=
			frame->bytes - frame->at - WIRE_HEADER -
			dense_cell(&rig->twin_pool, dense_index(&rig->twin, wire_position(&header)))
				->bytes;
		result_check(rig, &out, way_to(header.to), header.to, wire_position(&header));
	}
	return taken;
}

static uint32_t number(struct script *script)
{
	uint32_t low = script->byte(script->source);

	return low | (uint32_t)script->byte(script->source) << 8;
}

/* Around the window, mostly; far away at times. */
static uint64_t position_near(struct script *script, uint64_t at, unsigned span)
{
	uint8_t step = script->byte(script->source);
	uint64_t position = at + step % span;

	if (step >= 0xf8)
		position = at - step % span;
	return (step == 0xf7 ? position << 20 : position) & WIRE_POSITION_MASK;
}

/* What children agree on, most of the time: it follows from the position. */
static void shape_likely(struct script *script, struct rig_data *data)
{
	uint64_t random = data->position;
	uint8_t odd = script->byte(script->source);

	if (odd < 8)
		random += odd;
	random = rig_random(&random);
	data->op = random % 3 ? WIRE_ADD64 : (uint8_t)(random >> 8) % WIRE_OPS_END;
	data->to = random >> 16 & 1 ? WIRE_ALL : (uint8_t)(random >> 17) % SCRIPT_CHILDREN;
	data->bytes =
		random >> 24 & 1 ? 64 : 8 * ((uint32_t)(random >> 25) % (SCRIPT_PAYLOAD / 8 + 1));
	if ((random >> 40) % 8 == 0)
		data->from = (uint8_t)(random >> 44) % SCRIPT_CHILDREN;
}

/* What a child that knows where it is might send. */
static uint32_t packet_likely(struct script *script)
{
	const struct dense_lane *lane = &script->rig->twin;
	uint8_t child = script->byte(script->source) % 16, kind = script->byte(script->source);
	struct rig_data data = DATA(0, child < 15 ? child % SCRIPT_CHILDREN : 3);

	data.position = position_near(script, lane->low, SCRIPT_CELLS + 1);
	data.ack = (uint32_t)(kind & 1 ? data.position : lane->ack[data.child & 63]);
	data.scale = (kind & 0x1e) == 0 ? 1 : 0;
	shape_likely(script, &data);
	if (kind & 0x20 && data.from != WIRE_ALL) /* the one who contributes, or another one */
		data.child = data.from;
	data.flags = kind & 0x40 ? WIRE_RESENT : 0;
	data.seed = number(script);
	return packet_data(&script->packet, &data);
}

enum mutation {
	FLIP,
	FLIP_SEALED,
	SWAP,
	SWAP_SEALED,
	SET_SEALED,
	SHORTER,
	LONGER,
	UDP_LENGTH,
	NONE
};

/* Part of the header becomes that of the packet before. */
static void swap_fields(struct script *script)
{
	uint32_t from = number(script) % WIRE_HEADER;
	uint32_t many = 1 + script->byte(script->source) % 8;

	if (from + many > WIRE_HEADER)
		many = WIRE_HEADER - from;
	memcpy((uint8_t *)&script->packet + from, (uint8_t *)&script->other + from, many);
}

static void packet_mutate(struct script *script, enum mutation how, uint32_t bytes)
{
	uint8_t *packet = (uint8_t *)&script->packet;

	if (how == FLIP || how == FLIP_SEALED)
		packet[number(script) % bytes] ^= (uint8_t)(1 << script->byte(script->source) % 8);
	else if (how == SWAP || how == SWAP_SEALED)
		swap_fields(script);
	else if (how == SET_SEALED)
		packet[number(script) % WIRE_HEADER] = script->byte(script->source);
	if (how == FLIP_SEALED || how == SWAP_SEALED || how == SET_SEALED)
		script->packet.header.check = wire_check(packet, bytes);
}

static void frame_mutate(struct script *script, enum mutation how, struct frame *frame)
{
	uint32_t by = number(script);

	if (how == SHORTER && frame->bytes > 14) {
		frame->bytes -= by % (frame->bytes - 14);
	} else if (how == LONGER) {
		by %= 64;
		memset(frame->data + frame->bytes, 0x5a, by);
		frame->bytes += by;
	} else if (how == UDP_LENGTH) {
		/* By one or by words. */
		uint32_t length = frame->bytes - frame->at + 8;

		length += by & 1 ? (by >> 1) % 32 * 8 : (by >> 1) % 16;
		length -= by & 0x8000 ? 128 : 0;
		frame->data[frame->at - 4] = (uint8_t)(length >> 8);
		frame->data[frame->at - 3] = (uint8_t)length;
	}
}

int script_step(struct script *script)
{
	static struct frame frame;
	uint8_t how = script->byte(script->source);
	uint32_t bytes = packet_likely(script);
	struct packet *other = &script->other;
	struct wire_header sent = script->packet.header;

	/* Half of them are what they should be. */
	how = how >= 128 ? NONE : how % NONE;
	packet_mutate(script, how, bytes);
	frame_make(&frame, &shapes[script->byte(script->source) % SHAPES], sent.child,
	           &script->packet, bytes);
	frame_mutate(script, how, &frame);
	other->header = sent;
	return frame_try(script->rig, &frame);
}

void script_datagram(struct rig *rig, const uint8_t *data, uint32_t bytes)
{
	static struct packet packet;
	static struct frame frame;
	struct wire_header *header = &packet.header;
	const struct shape *shape = &shapes[bytes % SHAPES];

	if (bytes > DATAGRAM_MAX)
		bytes = DATAGRAM_MAX;
	memset(&packet, 0, sizeof(*header));
	memcpy(&packet, data, bytes);
	frame_make(&frame, shape, 0, &packet, bytes);
	frame_try(rig, &frame);
	if (bytes < WIRE_HEADER || bytes % 8)
		return;
	wire_seal(&packet, bytes);
	frame_make(&frame, shape, 0, &packet, bytes);
	frame_try(rig, &frame);
	header->cookie = RIG_COOKIE;
	header->job = RIG_JOB;
	header->comm = RIG_COMM;
	header->epoch = RIG_EPOCH;
	header->pos = wire_pos(RIG_LANE, wire_position(header));
	wire_seal(&packet, bytes);
	frame_make(&frame, shape, 0, &packet, bytes);
	frame_try(rig, &frame);
	header->type = WIRE_DATA;
	header->child %= SCRIPT_CHILDREN + 1;
	header->pos = wire_pos(RIG_LANE, wire_position(header) % (SCRIPT_CELLS + 1));
	wire_seal(&packet, bytes);
	frame_make(&frame, shape, 0, &packet, bytes);
	frame_try(rig, &frame);
	frame_try(rig, &frame);
}
