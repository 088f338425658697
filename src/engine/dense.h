/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine: what is summed, as pure functions from (state, packet) to (state,
 * verdict). No I/O, no clock, no allocation, no globals; header only, so that
 * user space, BPF, tests and fuzzers run the same lines. An engine does not
 * know sockets: planes do.
 *
 * dense: bulk vectors. A lane is a stream of fragments, numbered from 0 over
 * all rounds. Fragment p lives in cell p mod cells.
 *
 * Invariants:
 * 1. A child's contribution to a fragment is in the sum at most once (its bit
 *    in `arrived`), and only at the cell's scale.
 * 2. A cell is summed when every expected child's bit is set. Without a parent
 *    it is complete then, and never changes until the cell is reused. With a
 *    parent the sum goes up, and the cell is complete when the parent's result
 *    has taken its place.
 * 3. A cell is reused only for a fragment in [low, low + cells), where low is
 *    the smallest acknowledgement of all members: every member has said that
 *    it needs nothing more of the old fragment. With a parent, neither must
 *    that: low is not above what is settled there nor above its own low.
 * 4. The highest scale wins: a packet of a higher scale empties the cell, one
 *    of a lower scale is dropped. Each child sends at its own scale or higher
 *    and learns the highest one, so a cell completes at the highest only, in
 *    whatever order packets come: the sum is the same bits on every run. A sum
 *    that has gone up may be of a scale below that of other subtrees: a cell
 *    that is summed but not complete is emptied like any other.
 *
 * Children are known by the lowest rank that comes by them, which may be many:
 * a child is a worker or an aggregator. `from` and `to` are ranks.
 */
#ifndef TRIB_ENGINE_DENSE_H
#define TRIB_ENGINE_DENSE_H

#include "engine/combine.h"

#include <stddef.h>

#define DENSE_EMPTY (~0ull)
#define DENSE_TURN 16u /* fragments */
#define DENSE_AHEAD_CELLS 12u

enum dense_verdict {
	DENSE_ADDED,     /* in the sum, which still waits for others */
	DENSE_COMPLETE,  /* in the sum, and it was the last: the result may leave */
	DENSE_DUPLICATE, /* was in already */
	DENSE_FINISHED,  /* the fragment is complete: its sender may miss the result */
	DENSE_STALE,     /* below the window: every child is done with it */
	DENSE_AHEAD,     /* above the window: its cell is still in use */
	DENSE_LOWER,     /* of a lower scale than another child's */
	DENSE_MISMATCH,  /* children disagree on what this fragment is */
	DENSE_STRANGER,  /* not from a member */
	DENSE_SUMMED,    /* in the sum, and it was the last of ours: it may go up */
	DENSE_FRESH,     /* dense_judge: the first of its fragment */
	DENSE_HIGHER,    /* dense_judge: of a higher scale than what is in the cell */
	DENSE_VERDICTS_END,
};

struct dense_cell {
	uint64_t position; /* of the fragment in it, or DENSE_EMPTY */
	uint64_t arrived;  /* children that are in the sum */
	uint32_t sent_at;  /* for the plane: when the result left for all */
	uint16_t scale;
	uint16_t bytes;
	uint8_t op;
	uint8_t from;
	uint8_t to;
	uint8_t shape; /* the packet's flags but for WIRE_RESENT */
	uint8_t complete;
	uint8_t summed;     /* every child that is expected is in */
	uint8_t queued;     /* for the plane: who is to send the sum up, enum uplink_queued */
	uint8_t misses;     /* times that the parent has said it has not got the sum; and
	                       UPLINK_REPEATED, when its result is here */
	uint32_t lock;      /* for planes where several cores sum: 1 while one of them is at it */
	uint32_t raised_at; /* for the plane: when the sum last went up */
};

/* Where cells and their sums lie. A sum lies behind room for a header, as a packet that can leave.
 */
struct dense_pool {
	uint8_t *cells, *packets;
	size_t cell_step, packet_step;
};

struct dense_lane {
	uint64_t members; /* children, as bits; all of them are expected, always */
	uint64_t left;    /* members that have left: they need no result any more */
	uint64_t low;     /* the smallest of ack[] over the members that have not left */
	uint32_t cells;
	uint32_t payload;                    /* the largest a fragment may have */
	uint64_t has_parent;                 /* 1: sums go up, and results come from there */
	uint64_t settled;                    /* with a parent: below, no child needs it any more,
	                                        and what has gone up from here is complete. Only
	                                        user space moves it */
	uint64_t above;                      /* the parent's low, as far as we know */
	uint64_t ack[WIRE_CHILDREN_MAX];     /* below, the child needs nothing more */
	uint64_t by_rank[WIRE_CHILDREN_MAX]; /* the child that a rank comes by, as a bit; 0: none */
};

static inline uint64_t dense_bit(unsigned child)
{
	return 1ull << (child & 63);
}

/* A child, and the ranks that come by it. */
static inline void dense_add_child(struct dense_lane *lane, unsigned child, uint64_t covers)
{
	lane->members |= dense_bit(child);
	for (unsigned rank = 0; rank < WIRE_CHILDREN_MAX; rank++)
		if (covers >> rank & 1)
			lane->by_rank[rank] = dense_bit(child);
}

/* Is it time to look where the window begins, now that this fragment is complete? */
static inline int dense_is_turn(const struct dense_lane *lane, uint64_t position)
{
	return lane->cells < 64 * DENSE_TURN || position % DENSE_TURN == 0;
}

/* Children that contribute where `from` does, or that want what is for `to`. */
static inline uint64_t dense_expected(const struct dense_lane *lane, uint8_t from)
{
	return from == WIRE_ALL ? lane->members : lane->by_rank[from & 63];
}

/* The smallest acknowledgement of the members that have not left; DENSE_NEVER: all have. */
#define DENSE_NEVER (1ull << 62) /* positions end at 2^56 */
static inline uint64_t dense_acked(const struct dense_lane *lane)
{
	uint64_t low = DENSE_NEVER, absent = lane->left | ~lane->members;

	for (unsigned child = 0; child < WIRE_CHILDREN_MAX; child++) {
		if (!(lane->members >> child))
			break;
		/* The smaller one without a branch: the verifier would walk both ways, each time.
		 */
		uint64_t ack = lane->ack[child] + (absent >> child & 1) * DENSE_NEVER;
		int64_t less = (int64_t)(ack - low), mask = less >> 63;

		__asm__("" : "+r"(mask)); /* or the compiler makes it one after all */
		low += (uint64_t)(less & mask);
	}
	return low;
}

/* Several cores may be at it: it never goes back. Who is overtaken leaves it to the next. */
static inline void dense_move_low(struct dense_lane *lane, uint64_t old, uint64_t low)
{
	if (low < DENSE_NEVER && low > old)
		__sync_val_compare_and_swap(&lane->low, old, low);
}

/*
 * Where the window begins. Not done with each acknowledgement: when a cell
 * completes, in large pools when every sixteenth does, when one seems to be
 * ahead, and when a report is answered is soon enough. With a parent,
 * uplink_settle comes first.
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
 * Takes a child's acknowledgement; an old one changes nothing. One beyond the
 * window is right: a child may skip fragments that nobody will ever send.
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

/* Of a packet's fragment: nothing is under way that is half of the numbers away from the window. */
static inline uint64_t dense_position(const struct dense_lane *lane,
                                      const struct wire_header *packet)
{
	return wire_widen(packet->pos, lane->low);
}

static inline uint32_t dense_index(const struct dense_lane *lane, uint64_t position)
{
	return (uint32_t)(position % lane->cells);
}

/* The cell behind this one, which is the next position's: a division less. */
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
 * What is to be done with a DATA packet: DENSE_FRESH or DENSE_HIGHER, copy it
 * into the cell; DENSE_ADDED, combine it with the cell; else, leave it. Nothing
 * is changed. `position` is dense_position of it.
 */
static inline enum dense_verdict dense_judge(const struct dense_lane *lane,
                                             const struct dense_cell *cell,
                                             const struct wire_header *packet, uint64_t position,
                                             uint32_t bytes)
{
	uint64_t bit = dense_bit(packet->child);
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

/* Would this child be the last whose part the sum lacks? */
static inline int dense_is_last(const struct dense_lane *lane, const struct dense_cell *cell,
                                uint8_t child)
{
	return !(~(cell->arrived | dense_bit(child)) & dense_expected(lane, cell->from));
}

/* The packet is in the sum, as `how` told: DENSE_ADDED, or DENSE_COMPLETE if it was the last. */
static inline enum dense_verdict dense_enter(const struct dense_lane *lane, struct dense_cell *cell,
                                             const struct wire_header *packet, uint64_t position,
                                             uint32_t bytes, enum dense_verdict how)
{
	int last;

	if (how == DENSE_FRESH) {
		cell->complete = cell->queued = 0; /* first: others look without the lock */
		cell->position = position;
		cell->op = packet->op;
		cell->from = packet->from;
		cell->to = packet->to;
		cell->shape = packet->flags & (uint8_t)~WIRE_RESENT;
		cell->bytes = (uint16_t)bytes;
	}
	if (how != DENSE_ADDED) {
		cell->scale = packet->scale;
		cell->arrived = 0;
		cell->summed = cell->misses = 0;
	}
	last = dense_is_last(lane, cell, packet->child);
	cell->arrived |= dense_bit(packet->child);
	if (!last)
		return DENSE_ADDED;
	cell->summed = 1;
	if (lane->has_parent)
		return DENSE_SUMMED;
	cell->complete = 1;
	return DENSE_COMPLETE;
}

/*
 * Takes one DATA packet that was found sound and intact. `cell` and `sum` are
 * those at dense_index() of its position.
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
	if (how == DENSE_COMPLETE && dense_is_turn(lane, position))
		dense_update_low(lane);
	return how;
}

/*
 * Does the aggregator still need this fragment from the child? `cell` is the
 * position's. A sum that the parent misses again and again may be of a lower
 * scale than others' there, and what its children have sent since, at a higher
 * one, may be lost.
 */
static inline int dense_is_missing(const struct dense_lane *lane, const struct dense_cell *cell,
                                   unsigned child, uint64_t position)
{
	if (position < lane->low || position < lane->ack[child])
		return 0;
	return cell->position != position ||
	       !(cell->complete || (cell->arrived & dense_bit(child) && cell->misses < 2));
}

/* The ranks that come by these children. */
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

/* Did its result leave within `young` microseconds? Another core may have sent it after `now`. */
static inline int dense_is_young(const struct dense_cell *cell, uint32_t now_us, uint32_t young)
{
	return now_us - cell->sent_at < young || cell->sent_at - now_us - 1 < 1000000;
}

/* The cell some way behind this one, for those who walk through many. */
static inline uint32_t dense_ahead(const struct dense_lane *lane, uint32_t index)
{
	return index + DENSE_AHEAD_CELLS < lane->cells ? index + DENSE_AHEAD_CELLS : index;
}

/* Which fragments from `base` on are complete. */
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

		/* Each is in another cache line, too far apart for the machine to guess. */
		__builtin_prefetch(dense_cell(pool, dense_ahead(lane, index)));
		if (position < lane->low || (cell->position == position && cell->complete))
			status->complete[i / 64] |= 1ull << (i % 64);
	}
}

/*
 * Has the result of a complete cell left, more than `spare_us` ago? A core that
 * completes a cell holds its lock until it has said when.
 */
static inline int dense_has_left(const struct dense_cell *cell, uint32_t now_us, uint32_t spare_us)
{
	return !__atomic_load_n(&cell->lock, __ATOMIC_ACQUIRE) &&
	       !dense_is_young(cell, now_us, spare_us);
}

/* What a report asks of one fragment; all in one look at its cell. */
static inline void dense_answer_one(const struct dense_lane *lane, const struct dense_cell *cell,
                                    unsigned child, uint64_t position,
                                    const struct wire_report *report, uint32_t now_us,
                                    uint32_t spare_us, uint32_t i, struct wire_status *status,
                                    uint64_t repeat[WIRE_GROUP / 64])
{
	uint64_t bit = 1ull << (i % 64);
	int is_complete =
		cell->position == position && __atomic_load_n(&cell->complete, __ATOMIC_ACQUIRE);
	int is_awaited = is_complete && dense_expected(lane, cell->to) & dense_bit(child);

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
 * Answers a child's REPORT: `status` says which of its fragments are missing
 * and which are complete, and a bit in `repeat` each result that the child
 * asked for, that is complete, and that is not too young. What became complete
 * within `spare_us` is not called so yet to who gets it: the result may still be in
 * a queue, and the answer must not overtake it.
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
