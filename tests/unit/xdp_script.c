/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp_script.h"

#include "wire/parse.h"

#include <string.h>

#define DATAGRAM_MAX 2400u /* the kernel runs programs only on frames within a page */

/* The shape of the route to a child. */
static const struct shape *way_to(unsigned child)
{
	return &shapes[child * 3 % SHAPES];
}

/* The route to the parent: IPv6 with a tag. */
static const struct shape *const way_up = &shapes[6];

void script_lane(struct rig *rig)
{
	rig_lane(rig, SCRIPT_CHILDREN, SCRIPT_CELLS, SCRIPT_PAYLOAD);
	for (unsigned child = 0; child < SCRIPT_CHILDREN; child++)
		rig_queue(rig, child, way_to(child));
	/* The route of the last child is known, but its packets are not queued. */
	route_make(&rig->lane->routes[2], way_to(2), 2, RIG_LO);
	rig->ways[2] = NULL;
	rig->lane->entries = 1;
	rig->lane->entry[0] = 2;
	rig_parent(rig, way_up);
}

void script_clear(struct rig *rig, bool has_parent)
{
	rig->has_parent = has_parent;
	rig->lane->parent.active = has_parent;
	rig_clear(rig);
}

static int frame_try(struct rig *rig, const struct frame *frame)
{
	static struct frame out;
	struct wire_header header;
	int taken = rig_agree(rig, frame, &out);
	uint64_t position;

	if (taken != DENSE_COMPLETE && taken != DENSE_SUMMED)
		return taken;
	memcpy(&header, frame->data + frame->at, sizeof(header));
	position = dense_position(&rig->twin, &header);
	/* Bytes after the datagram stay after what it has become. */
	out.bytes -= frame->bytes - frame->at - WIRE_HEADER -
	             dense_cell(&rig->twin_pool, dense_index(&rig->twin, position))->bytes;
	if (header.to == WIRE_ALL)
		header.to = 2;
	if (taken == DENSE_SUMMED)
		raised_check(rig, &out, way_up, position);
	else if (header.to < SCRIPT_CHILDREN)
		result_check(rig, &out, way_to(header.to), header.to, position);
	return taken;
}

static uint32_t number(struct script *script)
{
	uint32_t low = script->byte(script->source);

	return low | (uint32_t)script->byte(script->source) << 8;
}

/* Mostly around the window, sometimes far away. */
static uint64_t position_near(struct script *script, uint64_t at, unsigned span)
{
	uint8_t step = script->byte(script->source);
	uint64_t position = at + step % span;

	if (step >= 0xf8)
		position = at - step % span;
	return (step == 0xf7 ? position << 20 : position) & WIRE_POSITION_MASK;
}

/* Fields that children usually agree on: they follow from the position. */
static void shape_likely(struct script *script, struct rig_data *data)
{
	uint64_t random = data->position;
	uint8_t odd = script->byte(script->source);
	/* With a parent there are ranks that are not below us. */
	uint8_t ranks = SCRIPT_CHILDREN + script->rig->has_parent;

	if (odd < 8)
		random += odd;
	random = rig_random(&random);
	data->op = random % 3 ? WIRE_ADD64 : (uint8_t)(random >> 8) % WIRE_OPS_END;
	data->to = random >> 16 & 1 ? WIRE_ALL : (uint8_t)(random >> 17) % ranks;
	data->bytes =
		random >> 24 & 1 ? 64 : 8 * ((uint32_t)(random >> 25) % (SCRIPT_PAYLOAD / 8 + 1));
	if ((random >> 40) % 8 == 0)
		data->from = (uint8_t)(random >> 44) % ranks;
}

/* A packet that an honest child might send. */
static uint32_t packet_likely(struct script *script)
{
	const struct dense_lane *lane = &script->rig->twin;
	uint8_t child = script->byte(script->source) % 16, kind = script->byte(script->source);
	struct rig_data data = DATA(0, child < 15 ? child % SCRIPT_CHILDREN : 3);

	if (child == 14)
		return packet_report(&script->packet, kind % (SCRIPT_CHILDREN + 1));
	data.position = position_near(script, lane->low, SCRIPT_CELLS + 1);
	data.ack = (uint32_t)(kind & 1 ? data.position : lane->ack[data.child & 63]);
	data.scale = (kind & 0x1e) == 0 ? 1 : 0;
	shape_likely(script, &data);
	if (kind & 0x20 && data.from != WIRE_ALL) /* the contributor, or another child */
		data.child = data.from;
	data.flags = kind & 0x40 ? WIRE_RESENT : 0;
	data.seed = number(script);
	return packet_data(&script->packet, &data);
}

/* A packet that a parent might send. */
static uint32_t packet_from_parent(struct script *script)
{
	const struct dense_lane *lane = &script->rig->twin;
	uint8_t kind = script->byte(script->source);
	struct rig_data data = DATA(0, 0);

	data.position = position_near(script, lane->low, SCRIPT_CELLS + 1);
	data.ack = (uint32_t)(kind & 1 ? lane->settled : lane->above);
	data.scale = (kind & 0x1e) == 0 ? 1 : 0;
	shape_likely(script, &data);
	data.flags = kind & 0x40 ? WIRE_RESENT : 0;
	data.seed = number(script);
	return packet_result(&script->packet, &data);
}

/* The daemon's actions beside the program, applied to both sides. */
static void daemon_act(const struct dense_pool *pool, struct dense_lane *lane,
                       struct xdp_parent *parent, uint8_t what, uint8_t how)
{
	struct dense_cell *cell = dense_cell(pool, how % SCRIPT_CELLS);

	if (what < 4)
		uplink_settle(&(struct uplink){ 0 }, lane, pool);
	else if (what == 4)
		parent->allowed = parent->launched + how % 8;
	else if (what == 5)
		parent->active = how % 8 != 0;
	else if (uplink_is_left(cell))
		cell->queued = how & 0x80 ? UPLINK_QUEUED : UPLINK_NOT;
	else if (cell->summed && !dense_expected(lane, cell->to))
		cell->complete = 1; /* the parent reports it complete, and it is for others */
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

/* Copies a part of the last packet's header. */
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
		rig_seal(script->rig, &script->packet, bytes);
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
		/* By one byte or by words. */
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
	struct rig *rig = script->rig;
	uint8_t who = rig->has_parent ? script->byte(script->source) : UINT8_MAX, how, way;
	bool from_parent = who < 96;
	struct packet *other = &script->other;
	struct wire_header sent;
	uint32_t bytes;

	if (who >= 96 && who < 160) {
		uint8_t what = script->byte(script->source) % 8;

		how = script->byte(script->source);
		daemon_act(&rig->pool, rig->dense, &rig->lane->parent, what, how);
		daemon_act(&rig->twin_pool, &rig->twin, &rig->twin_parent, what, how);
		rig_compare(rig);
		return TAKEN_NOT;
	}
	how = script->byte(script->source);
	bytes = from_parent ? packet_from_parent(script) : packet_likely(script);
	sent = script->packet.header;

	/* Half of the packets are valid. */
	how = how >= 128 ? NONE : how % NONE;
	packet_mutate(script, how, bytes);
	way = script->byte(script->source);
	frame_make(&frame,
	           way < 64      ? &shapes[way % SHAPES]
	           : from_parent ? way_up
	                         : way_to(sent.child),
	           from_parent ? RIG_PARENT : sent.child, &script->packet, bytes);
	frame_mutate(script, how, &frame);
	other->header = sent;
	return frame_try(rig, &frame);
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
	rig_seal(rig, &packet, bytes);
	frame_make(&frame, shape, 0, &packet, bytes);
	frame_try(rig, &frame);
	header->comm = RIG_COMM;
	rig_seal(rig, &packet, bytes);
	frame_make(&frame, shape, 0, &packet, bytes);
	frame_try(rig, &frame);
	header->type = WIRE_DATA;
	header->child %= SCRIPT_CHILDREN + 1;
	header->pos = (uint32_t)rig->twin.low + header->pos % (SCRIPT_CELLS + 1);
	rig_seal(rig, &packet, bytes);
	frame_make(&frame, shape, 0, &packet, bytes);
	frame_try(rig, &frame);
	frame_try(rig, &frame);
}
