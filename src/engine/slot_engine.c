/* SPDX-License-Identifier: Apache-2.0 */
/* The slot engine's entry in the table: which packets leave for which children. */
#include "engine/cell_lock.h"
#include "engine/slot.h"

#include <string.h>

static struct slot_lane *lane_of(const struct engine_pool *pool)
{
	return (struct slot_lane *)pool->lane;
}

static struct slot_cell *state_of(struct engine_cell *cell)
{
	return (struct slot_cell *)cell->own;
}

static struct engine_cell *cell_at(const struct engine_pool *pool, uint32_t pos)
{
	return engine_cell(pool, slot_index(lane_of(pool), pos));
}

static int open_slots(const struct engine_pool *pool)
{
	for (uint32_t i = 0; i < pool->lane->cells; i++)
		slot_cell_init(state_of(engine_cell(pool, i)), i);
	return 1;
}

static uint64_t position_of(const struct engine_pool *pool, const struct wire_header *packet)
{
	return wire_widen(packet->pos, state_of(cell_at(pool, packet->pos))->position);
}

/* The header of an answer about operation `position`. */
static struct wire_header *answer(const struct engine_pool *pool, struct engine_packet *out,
                                  uint64_t to, uint64_t position, uint8_t flags)
{
	struct wire_header *header = (void *)out->data;

	*header = (struct wire_header){ .type = WIRE_RESULT,
		                        .child = WIRE_ALL,
		                        .pos = (uint32_t)position,
		                        .ack = (uint32_t)lane_of(pool)->low,
		                        .from = flags,
		                        .to = WIRE_ALL };
	out->to = to & ~lane_of(pool)->left;
	out->bytes = out->to ? WIRE_HEADER : 0;
	out->position = position;
	return header;
}

/* `low` may have to move by one for each of the two slots that a packet touches. */
static void move_low(const struct engine_pool *pool)
{
	struct slot_lane *lane = lane_of(pool);

	for (int i = 0; i < 2; i++) {
		uint64_t low = lane->low;

		slot_move_low(lane, state_of(cell_at(pool, (uint32_t)low)), low);
	}
}

static void take_ack(const struct engine_pool *pool, const struct wire_header *packet,
                     struct engine_packet *out)
{
	struct engine_cell *cell = cell_at(pool, packet->ack);
	uint64_t position;
	int clear;

	cell_lock(&cell->lock);
	position = wire_widen(packet->ack, state_of(cell)->position);
	clear = slot_ack(lane_of(pool), state_of(cell), packet->child, packet->ack);
	cell_unlock(&cell->lock);
	move_low(pool);
	if (clear && packet->from & SLOT_WANTS)
		answer(pool, out, child_bit(packet->child), position, SLOT_CLEAR);
}

/* The sum, to these children. */
static void send_sum(const struct engine_pool *pool, const struct engine_cell *cell, uint64_t to,
                     struct engine_packet *out)
{
	const struct slot_cell *state = (const struct slot_cell *)cell->own;
	struct wire_header *header = answer(pool, out, to, state->position, 0);

	if (!out->bytes)
		return;
	header->flags = state->shape;
	header->op = state->op;
	header->scale = state->scale;
	memcpy(header + 1, cell->sum, state->bytes);
	out->bytes += state->bytes;
}

/* The scale of the operation, to these children: they send their vectors again. */
static void send_scale(const struct engine_pool *pool, const struct slot_cell *state, uint64_t to,
                       struct engine_packet *out)
{
	answer(pool, out, to, state->position, SLOT_RAISE)->scale = state->scale;
}

static enum slot_verdict take_vector(const struct engine_pool *pool,
                                     const struct wire_header *packet, uint32_t bytes,
                                     struct engine_packet *out)
{
	struct engine_cell *cell = cell_at(pool, packet->pos);
	struct slot_cell *state = state_of(cell);
	struct slot_taken taken;

	cell_lock(&cell->lock);
	taken = slot_take(lane_of(pool), state, cell->sum, packet, packet + 1, bytes);
	if (taken.verdict == SLOT_COMPLETE)
		send_sum(pool, cell, pool->lane->members, out);
	else if (taken.verdict == SLOT_FINISHED)
		send_sum(pool, cell, child_bit(packet->child), out);
	else if (taken.verdict == SLOT_RAISED && taken.again)
		send_scale(pool, state, taken.again, out);
	else if (taken.verdict == SLOT_LOWER)
		send_scale(pool, state, child_bit(packet->child), out);
	cell_unlock(&cell->lock);
	return taken.verdict;
}

static enum engine_verdict take(const struct engine_pool *pool, const struct wire_header *packet,
                                uint32_t bytes, struct engine_packet out[2])
{
	static const enum engine_verdict verdicts[SLOT_VERDICTS_END] = {
		[SLOT_ADDED] = ENGINE_ADDED,       [SLOT_COMPLETE] = ENGINE_COMPLETE,
		[SLOT_RAISED] = ENGINE_ADDED,      [SLOT_DUPLICATE] = ENGINE_DUPLICATE,
		[SLOT_FINISHED] = ENGINE_FINISHED, [SLOT_LOWER] = ENGINE_LOWER,
		[SLOT_STALE] = ENGINE_STALE,       [SLOT_AHEAD] = ENGINE_AHEAD,
		[SLOT_MISMATCH] = ENGINE_MISMATCH, [SLOT_STRANGER] = ENGINE_STRANGER,
	};

	out[0].bytes = out[1].bytes = 0;
	if (!slot_knows(lane_of(pool), packet->child))
		return ENGINE_STRANGER;
	if (packet->from & SLOT_ACKS)
		take_ack(pool, packet, &out[0]);
	if (packet->from & SLOT_BARE)
		return ENGINE_ACK;
	return verdicts[take_vector(pool, packet, bytes, &out[1])];
}

static struct engine_view view(const struct engine_pool *pool, const struct wire_header *packet)
{
	const struct slot_cell *state = state_of(cell_at(pool, packet->pos));

	return (struct engine_view){ .cell = slot_index(lane_of(pool), packet->pos),
		                     .position = state->position,
		                     .arrived = state->arrived,
		                     .bytes = state->bytes,
		                     .op = state->op,
		                     .from = WIRE_ALL };
}

/* The first unfinished operation from `low` on. */
static uint64_t waiting(const struct engine_pool *pool)
{
	const struct slot_lane *lane = lane_of(pool);

	for (uint64_t i = 0, p = lane->low; i < lane->slots; i++, p++) {
		const struct slot_cell *state = state_of(cell_at(pool, (uint32_t)p));

		if (state->position == p && state->arrived && !state->complete)
			return lane->members & ~state->arrived;
	}
	return 0;
}

const struct engine engine_slot = {
	.name = "slot",
	.number = ENGINE_SLOT,
	.calls = 1,
	.open = open_slots,
	.position = position_of,
	.take = take,
	.view = view,
	.waiting = waiting,
};
