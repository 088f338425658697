/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot: small vectors at the least latency (P4SGD, Algorithm 2). Pure, like dense.h. slot_engine.c
 * is its entry in the table of engines; the XDP plane's program uses the same functions.
 *
 * An operation is one vector that fits a packet. Operations of a lane are numbered from 0, and
 * operation p uses slot p mod slots. A child sends two kinds of packet for it: DATA with its
 * vector, and later an acknowledgement of the result, which mostly travels in the DATA packet of
 * another operation. There is one copy of the sum, and no shadow copy. Nothing expires: a child
 * repeats a packet until it has the answer.
 *
 * Invariants:
 * 1. A child's vector is in a sum at most once (its bit in `arrived`), and only at the slot's
 *    scale. The highest scale wins: a vector of a higher scale empties the slot, and children whose
 *    vectors were there send them again. So the sum has the same bits whatever the order.
 * 2. The result leaves for all children when the last vector has arrived. From then on the sum does
 *    not change until it is cleared.
 * 3. A slot is cleared when every child has acknowledged (`acked`). `position` then names the next
 *    operation of the slot. A packet of an earlier one is stale: it cannot enter a later sum.
 * 4. A child uses a slot again only after it was told that the slot is clear. Each result tells it
 *    `low`: the slots of all operations below are clear, or were used again. If that does not come
 *    in time, the child asks (SLOT_WANTS). So clearing costs no packets of its own.
 *
 * The engine knows children, numbered 0 to 63, and not ranks.
 */
#ifndef TRIB_ENGINE_SLOT_H
#define TRIB_ENGINE_SLOT_H

#include "engine/combine.h"
#include "engine/engines.h"

#define SLOTS_MAX 65536u

/* Flags of a slot packet beside those of the round: bits of `from`, which slots do not need. */
enum slot_flag {
	SLOT_ACKS = 1,  /* DATA: `ack` is the low half of an operation that is acknowledged */
	SLOT_BARE = 2,  /* DATA: an acknowledgement only, without a vector */
	SLOT_WANTS = 4, /* DATA: tell me if the acknowledged operation's slot is clear */
	SLOT_CLEAR = 8, /* RESULT: the slot of operation `pos` is clear */
	SLOT_RAISE =
		16, /* RESULT: operation `pos` has scale `scale`: send the vector again with it */
};

enum slot_verdict {
	SLOT_ADDED,     /* added; the sum waits for other children */
	SLOT_COMPLETE,  /* added, and it was the last: the result may leave */
	SLOT_RAISED,    /* the first at a higher scale: tell the others (slot_taken.again) */
	SLOT_DUPLICATE, /* already in the sum */
	SLOT_FINISHED,  /* the sum is complete: the sender may lack the result */
	SLOT_LOWER,     /* the slot has a higher scale: tell the sender */
	SLOT_STALE,     /* of an operation that is over */
	SLOT_AHEAD,     /* the slot is not clear yet: the sender should have asked */
	SLOT_MISMATCH,  /* children disagree on what this operation is */
	SLOT_STRANGER,  /* the sender is not a member */
	SLOT_VERDICTS_END,
};

struct __attribute__((may_alias)) slot_cell {
	uint64_t position; /* number of the current operation, or of the next one if the slot is
	                      clear */
	uint64_t arrived;  /* children whose vector is in the sum */
	uint64_t acked;    /* children that have the result */
	uint16_t scale;
	uint16_t bytes;
	uint8_t op;
	uint8_t shape; /* the packet's flags without WIRE_RESENT */
	uint8_t complete;
	uint8_t kind; /* the packet's `to`: the root of a collective that has one */
};

/* Laid out as struct engine_lane. */
struct __attribute__((may_alias)) slot_lane {
	uint64_t members; /* children, as bits; all of them are always expected */
	uint64_t left;    /* members that have left: they need no results */
	uint32_t slots;   /* a power of two, at most SLOTS_MAX */
	uint32_t payload; /* largest payload of a packet, bytes */
	uint64_t low;     /* the slots of all operations below are clear, or used again */
};

_Static_assert(sizeof(struct slot_lane) <= sizeof(struct engine_lane) &&
                       __builtin_offsetof(struct slot_lane, slots) ==
                               __builtin_offsetof(struct engine_lane, cells) &&
                       __builtin_offsetof(struct slot_lane, low) ==
                               __builtin_offsetof(struct engine_lane, own),
               "a slot_lane is an engine_lane");
_Static_assert(sizeof(struct slot_cell) <= ENGINE_CELL_WORDS * 8, "a slot_cell fits a cell");

/* What slot_take() says. */
struct slot_taken {
	enum slot_verdict verdict;
	uint64_t again; /* SLOT_RAISED: children whose vectors were in the sum */
};

static inline uint32_t slot_index(const struct slot_lane *lane, uint32_t pos)
{
	return pos % lane->slots; /* slots is a power of two, so the low half is enough */
}

/* Is the slot unused and clear? */
static inline int slot_is_clear(const struct slot_cell *cell)
{
	return !cell->arrived;
}

/* Before the lane is used. */
static inline void slot_cell_init(struct slot_cell *cell, uint32_t index)
{
	*cell = (struct slot_cell){ .position = index };
}

static inline int slot_knows(const struct slot_lane *lane, unsigned child)
{
	return child < WIRE_CHILDREN_MAX && lane->members & child_bit(child);
}

/* Clears the slot if no child needs its result any more. True: it is clear now. */
static inline int slot_clear(const struct slot_lane *lane, struct slot_cell *cell)
{
	if (!cell->complete || ~(cell->acked | lane->left) & lane->members)
		return 0;
	cell->position += lane->slots;
	cell->arrived = cell->acked = 0;
	cell->scale = 0;
	cell->complete = 0;
	return 1;
}

/*
 * Moves `low` by one if it can. `cell` is the cell of its slot. Two calls for each packet are
 * enough to keep up. Several cores may call it: the loser of a race leaves it to the next call.
 */
static inline void slot_move_low(struct slot_lane *lane, const struct slot_cell *cell, uint64_t low)
{
	if (cell->position > low)
		__sync_val_compare_and_swap(&lane->low, low, low + 1);
}

/*
 * Takes a child's acknowledgement of the operation with this low half; `cell` is the cell of its
 * slot. True: the slot is clear, so the child may use it again.
 */
static inline int slot_ack(const struct slot_lane *lane, struct slot_cell *cell, unsigned child,
                           uint32_t pos)
{
	uint64_t position = wire_widen(pos, cell->position);

	if (!slot_knows(lane, child) || position > cell->position)
		return 0;
	if (position < cell->position)
		return 1;
	if (!cell->complete) /* nothing to acknowledge yet: not from a child of ours */
		return 0;
	cell->acked |= child_bit(child);
	return slot_clear(lane, cell);
}

/* What to do with a vector. Changes nothing. SLOT_ADDED and SLOT_RAISED: it goes into the sum. */
static inline enum slot_verdict slot_judge(const struct slot_lane *lane,
                                           const struct slot_cell *cell,
                                           const struct wire_header *packet, uint32_t bytes)
{
	uint64_t position = wire_widen(packet->pos, cell->position);
	uint8_t shape = packet->flags & (uint8_t)~WIRE_RESENT;

	if (!slot_knows(lane, packet->child))
		return SLOT_STRANGER;
	if (bytes > lane->payload || bytes % 8)
		return SLOT_MISMATCH;
	if (position != cell->position)
		return position < cell->position ? SLOT_STALE : SLOT_AHEAD;
	if (slot_is_clear(cell))
		return SLOT_ADDED;
	if (cell->op != packet->op || cell->shape != shape || cell->kind != packet->to)
		return SLOT_MISMATCH;
	if (cell->complete)
		return SLOT_FINISHED;
	if (packet->scale != cell->scale)
		return packet->scale < cell->scale ? SLOT_LOWER : SLOT_RAISED;
	if (cell->bytes != bytes) /* it may change with the scale, for special values */
		return SLOT_MISMATCH;
	return cell->arrived & child_bit(packet->child) ? SLOT_DUPLICATE : SLOT_ADDED;
}

/*
 * Enters a vector that slot_judge() wants in the sum; `how` is its verdict. True: the payload is
 * the first one, to be copied; else it is combined with the sum. slot_entered() follows.
 */
static inline int slot_enter(struct slot_cell *cell, const struct wire_header *packet,
                             uint32_t bytes, enum slot_verdict how)
{
	int first = how == SLOT_RAISED || slot_is_clear(cell);

	if (first) {
		cell->op = packet->op;
		cell->shape = packet->flags & (uint8_t)~WIRE_RESENT;
		cell->kind = packet->to;
		cell->scale = packet->scale;
		cell->bytes = (uint16_t)bytes;
		cell->arrived = 0;
	}
	cell->arrived |= child_bit(packet->child);
	return first;
}

/* The payload is in the sum: is it complete now? `how` is slot_judge()'s verdict. */
static inline enum slot_verdict slot_entered(const struct slot_lane *lane, struct slot_cell *cell,
                                             enum slot_verdict how)
{
	if (~cell->arrived & lane->members)
		return how;
	cell->complete = 1;
	return SLOT_COMPLETE;
}

/* Takes a vector that was found intact. `cell` and `sum` are those of its slot. */
static inline struct slot_taken slot_take(const struct slot_lane *lane, struct slot_cell *cell,
                                          void *sum, const struct wire_header *packet,
                                          const void *payload, uint32_t bytes)
{
	struct slot_taken taken = { slot_judge(lane, cell, packet, bytes), 0 };

	if (taken.verdict != SLOT_ADDED && taken.verdict != SLOT_RAISED)
		return taken;
	if (taken.verdict == SLOT_RAISED)
		taken.again = cell->arrived & ~child_bit(packet->child);
	if (slot_enter(cell, packet, bytes, taken.verdict))
		combine_copy(sum, payload, bytes);
	else
		combine(packet->op, sum, payload, bytes);
	taken.verdict = slot_entered(lane, cell, taken.verdict);
	return taken;
}

#endif
