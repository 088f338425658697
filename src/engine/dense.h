/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine: what a sum is, as pure functions from (state, packet) to (state,
 * verdict). No I/O, no clock, no allocation, no globals. Header only, so that
 * user space, BPF, tests and fuzzers run the same lines. It must not know
 * sockets or planes.
 *
 * dense: bulk vectors. A lane is a stream of fragments, numbered from 0 over
 * all rounds. Fragment p lives in cell p mod cells.
 *
 * Invariants:
 * 1. A child's packet is in a fragment's sum at most once (its bit in
 *    `arrived`), and only at the cell's scale.
 * 2. A cell is summed when the bit of every expected child is set. Without a
 *    parent it is then complete, and does not change until it is reused. With a
 *    parent the sum goes up. The cell is complete when the parent's result has
 *    replaced the sum.
 * 3. A cell is reused only for a fragment in [low, low + cells). `low` is the
 *    smallest acknowledgement of all members, so no member needs the old
 *    fragment any more. With a parent, `low` is also bounded by `settled` and
 *    by the parent's own `low`.
 * 4. The highest scale wins. A packet of a higher scale empties the cell, a
 *    packet of a lower scale is dropped. Each child sends at its own scale or
 *    higher and learns the highest one, so a cell completes only at the highest
 *    scale, whatever the order of packets: the sum has the same bits on every
 *    run. A sum that has gone up may have a lower scale than other subtrees, so
 *    a cell that is summed but not complete is emptied like any other.
 *
 * Children and ranks: a child is a worker or an aggregator, so several ranks may
 * come by one child. `members`, `arrived`, `left` and `ack[]` are about children.
 * `from` and `to` of a packet are ranks; by_rank[] maps a rank to its child.
 */
#ifndef TRIB_ENGINE_DENSE_H
#define TRIB_ENGINE_DENSE_H

#include "engine/combine.h"
#include "engine/engines.h"

#include <stddef.h>

#define DENSE_EMPTY (~0ull)
#define DENSE_LOW_EVERY 16u /* fragments between two looks at `low` in a large pool */
#define DENSE_AHEAD_CELLS 12u

enum dense_verdict {
	DENSE_ADDED = ENGINE_ADDED,         /* added; the sum waits for other children */
	DENSE_COMPLETE = ENGINE_COMPLETE,   /* added, and the last: the result may leave */
	DENSE_DUPLICATE = ENGINE_DUPLICATE, /* already in the sum */
	DENSE_FINISHED = ENGINE_FINISHED,   /* complete: the sender may lack the result */
	DENSE_STALE = ENGINE_STALE,         /* below the window: no child needs it */
	DENSE_AHEAD = ENGINE_AHEAD,         /* above the window: the cell is in use */
	DENSE_LOWER = ENGINE_LOWER,         /* the cell has a higher scale */
	DENSE_MISMATCH = ENGINE_MISMATCH,   /* children disagree on what this fragment is */
	DENSE_STRANGER = ENGINE_STRANGER,   /* the sender is not a member */
	DENSE_SUMMED = ENGINE_SUMMED,       /* added, and the last: the sum may go up */
	DENSE_FRESH = ENGINE_COUNTED, /* dense_judge() only: the first packet of its fragment */
	DENSE_HIGHER,                 /* dense_judge() only: the cell has a lower scale */
	DENSE_VERDICTS_END,
};

struct dense_cell {
	uint64_t position; /* of its fragment; DENSE_EMPTY: none */
	uint64_t arrived;  /* children whose packet is in the sum */
	uint32_t sent_at;  /* for the plane: time at which the result left for all, us */
	uint16_t scale;
	uint16_t bytes;
	uint8_t op;
	uint8_t from;
	uint8_t to;
	uint8_t shape; /* the packet's flags without WIRE_RESENT */
	uint8_t complete;
	uint8_t summed; /* every expected child is in the sum */
	uint8_t queued; /* for the plane: which side sends the sum up, enum uplink_queued */
	uint8_t misses; /* times that the parent lacked the sum; bit UPLINK_REPEATED: its result was
	                   a repeat */
	uint32_t lock;  /* 1: a core works on the cell; for planes where several cores sum */
	uint32_t raised_at; /* for the plane: time at which the sum last went up, us */
};

/*
 * Where cells and sums lie. In front of each sum is room for a header: together
 * they are a packet.
 */
struct dense_pool {
	uint8_t *cells, *packets;
	size_t cell_step, packet_step;
};

struct dense_lane {
	uint64_t members; /* children, as bits; all of them are always expected */
	uint64_t left;    /* members that have left: they need no results */
	uint64_t low;     /* smallest ack[] of the members that have not left */
	uint32_t cells;
	uint32_t payload;    /* largest payload of a fragment, bytes */
	uint64_t has_parent; /* 1: sums go up and results come down; 0: no parent */
	uint64_t settled;    /* with a parent: fragments below are complete and needed by no child.
	                        Only user space moves it */
	uint64_t above;      /* the parent's `low`, as far as is known */
	uint64_t ack[WIRE_CHILDREN_MAX];     /* the child needs no fragment below */
	uint64_t by_rank[WIRE_CHILDREN_MAX]; /* the child that a rank comes by, as a bit; 0: none */
};

/* Adds a child and its ranks. */
static inline void dense_add_child(struct dense_lane *lane, unsigned child, uint64_t covers)
{
	lane->members |= child_bit(child);
	for (unsigned rank = 0; rank < WIRE_CHILDREN_MAX; rank++)
		if (covers >> rank & 1)
			lane->by_rank[rank] = child_bit(child);
}

/* Is it time to move `low`, now that this fragment is complete? */
static inline int dense_low_is_due(const struct dense_lane *lane, uint64_t position)
{
	return lane->cells < 64 * DENSE_LOW_EVERY || position % DENSE_LOW_EVERY == 0;
}

/* The child of rank `from`, as a bit; WIRE_ALL: all members. Also for `to`. */
static inline uint64_t dense_expected(const struct dense_lane *lane, uint8_t from)
{
	return from == WIRE_ALL ? lane->members : lane->by_rank[from & 63];
}

#define DENSE_NEVER (1ull << 62) /* above every position: these end at 2^56 */

/* The smallest acknowledgement of members that have not left; DENSE_NEVER: all have left. */
static inline uint64_t dense_acked(const struct dense_lane *lane)
{
	uint64_t low = DENSE_NEVER, absent = lane->left | ~lane->members;

	for (unsigned child = 0; child < WIRE_CHILDREN_MAX; child++) {
		if (!(lane->members >> child))
			break;
		/* The minimum without a branch: the verifier would follow both sides, each time. */
		uint64_t ack = lane->ack[child] + (absent >> child & 1) * DENSE_NEVER;
		int64_t less = (int64_t)(ack - low), mask = less >> 63;

		__asm__("" : "+r"(mask)); /* else the compiler makes a branch of it */
		low += (uint64_t)(less & mask);
	}
	return low;
}

/*
 * Several cores may call it: `low` never goes back. The loser of a race leaves it
 * to the next call.
 */
static inline void dense_move_low(struct dense_lane *lane, uint64_t old, uint64_t low)
{
	if (low < DENSE_NEVER && low > old)
		__sync_val_compare_and_swap(&lane->low, old, low);
}

/*
 * Moves the window. That is not worth the time for each acknowledgement. It is
 * called when a cell completes (in a large pool, for each DENSE_LOW_EVERY-th cell),
 * when a packet seems to be ahead, and when a report is answered. With a parent,
 * uplink_settle() comes first.
 */
static inline void dense_update_low(struct dense_lane *lane)
{
	uint64_t low, old = lane->low;

	if (!lane->has_parent)
		low = dense_acked(lane);
	else
		low = lane->settled < lane->above ? lane->settled : lane->above;
	dense_move_low(lane, old, low);
}

/*
 * Takes a child's acknowledgement; an older one changes nothing. One beyond the
 * window is valid: a child may skip fragments that no child will send.
 */
static inline void dense_ack(struct dense_lane *lane, unsigned child, uint32_t half)
{
	uint64_t old, ack;

	if (child >= WIRE_CHILDREN_MAX)
		return;
	old = lane->ack[child];
	ack = wire_widen(half, old);
	if ((int64_t)(ack - old) > 0)
		lane->ack[child] = ack;
}

/*
 * The position of a packet's fragment. `pos` has its low 32 bits: no packet in
 * flight is 2^31 fragments away from the window.
 */
static inline uint64_t dense_position(const struct dense_lane *lane,
                                      const struct wire_header *packet)
{
	return wire_widen(packet->pos, lane->low);
}

static inline uint32_t dense_index(const struct dense_lane *lane, uint64_t position)
{
	return (uint32_t)(position % lane->cells);
}

/* The next position's cell, without a division. */
static inline uint32_t dense_next(const struct dense_lane *lane, uint32_t index)
{
	return index + 1 < lane->cells ? index + 1 : 0;
}

static inline struct dense_cell *dense_cell(const struct dense_pool *pool, uint32_t index)
{
	return (struct dense_cell *)(void *)(pool->cells + index * pool->cell_step);
}

static inline uint8_t *dense_packet(const struct dense_pool *pool, uint32_t index)
{
	return pool->packets + index * pool->packet_step;
}

/*
 * What to do with a DATA packet. DENSE_FRESH and DENSE_HIGHER: copy it into the
 * cell. DENSE_ADDED: combine it with the cell. Else: ignore it. Changes nothing.
 * `position` is its dense_position().
 */
static inline enum dense_verdict dense_judge(const struct dense_lane *lane,
                                             const struct dense_cell *cell,
                                             const struct wire_header *packet, uint64_t position,
                                             uint32_t bytes)
{
	uint64_t bit = child_bit(packet->child);
	uint8_t shape = packet->flags & (uint8_t)~WIRE_RESENT;

	if (packet->child >= WIRE_CHILDREN_MAX || !(lane->members & bit))
		return DENSE_STRANGER;
	if (bytes > lane->payload || !(dense_expected(lane, packet->from) & bit))
		return DENSE_MISMATCH;
	if (position < lane->low)
		return DENSE_STALE;
	if (position >= lane->low + lane->cells)
		return DENSE_AHEAD;
	if (cell->position != position)
		return DENSE_FRESH;
	if (cell->op != packet->op || cell->from != packet->from || cell->to != packet->to ||
	    cell->shape != shape || cell->bytes != bytes)
		return DENSE_MISMATCH;
	if (cell->complete)
		return DENSE_FINISHED;
	if (packet->scale != cell->scale)
		return packet->scale < cell->scale ? DENSE_LOWER : DENSE_HIGHER;
	return cell->arrived & bit ? DENSE_DUPLICATE : DENSE_ADDED;
}

/* Does the sum lack only this child? */
static inline int dense_is_last(const struct dense_lane *lane, const struct dense_cell *cell,
                                uint8_t child)
{
	return !(~(cell->arrived | child_bit(child)) & dense_expected(lane, cell->from));
}

/* The cell is for the fragment of this packet from now on. */
static inline void dense_begin(struct dense_cell *cell, const struct wire_header *packet,
                               uint64_t position, uint32_t bytes)
{
	cell->complete = cell->queued = 0; /* first: other cores read without the lock */
	cell->position = position;
	cell->op = packet->op;
	cell->from = packet->from;
	cell->to = packet->to;
	cell->shape = packet->flags & (uint8_t)~WIRE_RESENT;
	cell->bytes = (uint16_t)bytes;
}

/*
 * Records that the packet is in the sum. `how` is the verdict of dense_judge().
 * Gives DENSE_ADDED, or DENSE_COMPLETE or DENSE_SUMMED if it was the last.
 */
static inline enum dense_verdict dense_enter(const struct dense_lane *lane, struct dense_cell *cell,
                                             const struct wire_header *packet, uint64_t position,
                                             uint32_t bytes, enum dense_verdict how)
{
	int last;

	if (how == DENSE_FRESH)
		dense_begin(cell, packet, position, bytes);
	if (how != DENSE_ADDED) {
		cell->scale = packet->scale;
		cell->arrived = 0;
		cell->summed = cell->misses = 0;
	}
	last = dense_is_last(lane, cell, packet->child);
	cell->arrived |= child_bit(packet->child);
	if (!last)
		return DENSE_ADDED;
	cell->summed = 1;
	if (lane->has_parent)
		return DENSE_SUMMED;
	cell->complete = 1;
	return DENSE_COMPLETE;
}

/*
 * Takes a DATA packet that was found intact. `cell` and `sum` are those at
 * dense_index() of its position.
 */
static inline enum dense_verdict dense_take(struct dense_lane *lane, struct dense_cell *cell,
                                            void *sum, const struct wire_header *packet,
                                            const void *payload, uint32_t bytes)
{
	uint64_t position = dense_position(lane, packet);
	enum dense_verdict how = dense_judge(lane, cell, packet, position, bytes);

	if (how == DENSE_STRANGER || how == DENSE_MISMATCH)
		return how;
	dense_ack(lane, packet->child, packet->ack);
	if (how == DENSE_AHEAD) {
		dense_update_low(lane);
		how = dense_judge(lane, cell, packet, position, bytes);
	}
	if (how == DENSE_FRESH || how == DENSE_HIGHER)
		combine_copy(sum, payload, bytes);
	else if (how == DENSE_ADDED)
		combine(packet->op, sum, payload, bytes);
	else
		return how;
	how = dense_enter(lane, cell, packet, position, bytes, how);
	if (how == DENSE_COMPLETE && dense_low_is_due(lane, position))
		dense_update_low(lane);
	return how;
}

/*
 * Does the aggregator still need this fragment from the child? `cell` is the cell
 * of the position. If the parent lacks a sum twice, the sum's scale may be too low,
 * and packets of a higher scale may have been lost. Then the fragment is needed
 * again.
 */
static inline int dense_is_missing(const struct dense_lane *lane, const struct dense_cell *cell,
                                   unsigned child, uint64_t position)
{
	if (position < lane->low || position < lane->ack[child])
		return 0;
	return cell->position != position ||
	       !(cell->complete || (cell->arrived & child_bit(child) && cell->misses < 2));
}

/* The ranks of these children. */
static inline uint64_t dense_ranks(const struct dense_lane *lane, uint64_t children)
{
	uint64_t ranks = 0;

	for (unsigned rank = 0; rank < WIRE_CHILDREN_MAX; rank++)
		ranks |= (uint64_t)((lane->by_rank[rank] & children) != 0) << rank;
	return ranks;
}

/* Children that still owe this fragment. */
static inline uint64_t dense_waiting(const struct dense_lane *lane, const struct dense_pool *pool,
                                     uint64_t position)
{
	const struct dense_cell *cell = dense_cell(pool, dense_index(lane, position));

	if (cell->position != position)
		return lane->members;
	return cell->complete || cell->summed ? 0
	                                      : dense_expected(lane, cell->from) & ~cell->arrived;
}

/* Did the result leave within the last `young` us? Another core may have sent it after `now_us`. */
static inline int dense_is_young(const struct dense_cell *cell, uint32_t now_us, uint32_t young)
{
	return now_us - cell->sent_at < young || cell->sent_at - now_us - 1 < 1000000;
}

/* The cell to prefetch, some way ahead. */
static inline uint32_t dense_ahead(const struct dense_lane *lane, uint32_t index)
{
	return index + DENSE_AHEAD_CELLS < lane->cells ? index + DENSE_AHEAD_CELLS : index;
}

/* Which fragments are complete, from `base` on. */
static inline void dense_complete(const struct dense_lane *lane, const struct dense_pool *pool,
                                  uint64_t base, uint32_t bits, struct wire_status *status)
{
	uint32_t index = dense_index(lane, base & WIRE_POSITION_MASK);

	status->base = base;
	status->bits = bits < WIRE_GROUP ? bits : WIRE_GROUP;
	for (uint32_t i = 0; i < WIRE_GROUP / 64; i++)
		status->complete[i] = 0;
	for (uint32_t i = 0; i < status->bits; i++, index = dense_next(lane, index)) {
		uint64_t position = (base + i) & WIRE_POSITION_MASK;
		const struct dense_cell *cell = dense_cell(pool, index);

		/* Each cell is in another cache line, too far apart for the hardware prefetcher. */
		__builtin_prefetch(dense_cell(pool, dense_ahead(lane, index)));
		if (position < lane->low || (cell->position == position && cell->complete))
			status->complete[i / 64] |= 1ull << (i % 64);
	}
}

/*
 * Did the result of a complete cell leave more than `spare_us` ago? A core that
 * completes a cell holds its lock until it has written sent_at.
 */
static inline int dense_has_left(const struct dense_cell *cell, uint32_t now_us, uint32_t spare_us)
{
	return !__atomic_load_n(&cell->lock, __ATOMIC_ACQUIRE) &&
	       !dense_is_young(cell, now_us, spare_us);
}

/* Answers one fragment of a report, with one look at its cell. */
static inline void dense_answer_one(const struct dense_lane *lane, const struct dense_cell *cell,
                                    unsigned child, uint64_t position,
                                    const struct wire_report *report, uint32_t now_us,
                                    uint32_t spare_us, uint32_t i, struct wire_status *status,
                                    uint64_t repeat[WIRE_GROUP / 64])
{
	uint64_t bit = 1ull << (i % 64);
	int is_complete =
		cell->position == position && __atomic_load_n(&cell->complete, __ATOMIC_ACQUIRE);
	int is_awaited = is_complete && dense_expected(lane, cell->to) & child_bit(child);

	if (position < lane->low ||
	    (is_complete && (!spare_us || !is_awaited || dense_has_left(cell, now_us, spare_us))))
		status->complete[i / 64] |= bit;
	if (dense_is_missing(lane, cell, child, position))
		status->missing[i / 64] |= bit;
	else if (report->missing[i / 64] & bit && is_awaited &&
	         !dense_is_young(cell, now_us, report->young))
		repeat[i / 64] |= bit;
}

/*
 * Answers a child's REPORT. `status` gets the fragments that are missing and those
 * that are complete. `repeat` gets the results that the child asked for, that are
 * complete, and that are old enough. A result that left within `spare_us` is not
 * called complete yet: it may still be in a queue, and the answer must not
 * overtake it.
 */
static inline void dense_answer(struct dense_lane *lane, const struct dense_pool *pool,
                                unsigned child, const struct wire_report *report, uint32_t now_us,
                                uint32_t spare_us, struct wire_status *status,
                                uint64_t repeat[WIRE_GROUP / 64])
{
	uint32_t index = dense_index(lane, report->base & WIRE_POSITION_MASK);

	dense_update_low(lane);
	for (uint32_t i = 0; i < WIRE_GROUP / 64; i++)
		status->complete[i] = status->missing[i] = repeat[i] = 0;
	status->low = lane->low;
	status->waiting = dense_ranks(lane, dense_waiting(lane, pool, lane->ack[child]));
	status->stamp = report->stamp;
	status->base = report->base;
	status->bits = report->bits < WIRE_GROUP ? report->bits : WIRE_GROUP;
	for (uint32_t i = 0; i < status->bits; i++, index = dense_next(lane, index)) {
		__builtin_prefetch(dense_cell(pool, dense_ahead(lane, index)));
		dense_answer_one(lane, dense_cell(pool, index), child,
		                 (report->base + i) & WIRE_POSITION_MASK, report, now_us, spare_us,
		                 i, status, repeat);
	}
}

#endif
