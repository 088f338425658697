/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink: a lane's other side, where it has a parent. Sums go up as DATA of
 * one child, results come down, and what is lost between is found as a worker
 * finds it: by REPORTs to the parent and its answers. It has no timer of its
 * own: the workers' REPORTs come up from child to parent and drive it.
 *
 * Pure, like the rest of the folder.
 */
#ifndef TRIB_ENGINE_UPLINK_H
#define TRIB_ENGINE_UPLINK_H

#include "engine/dense.h"

#define UPLINK_GROUPS 16u
#define UPLINK_PATIENCE_US 1000u /* the parent is asked about one group once in so long */
#define UPLINK_YOUNG_MAX_US 100000u
#define UPLINK_ANEW_US 100000u /* between two rates that are judged by themselves */
#define UPLINK_BATCH_US 200u   /* a report may overtake what the kernel sends in batches */

/* Who is to send a sum up, where two can: user space, and a program in the kernel. */
enum uplink_queued {
	UPLINK_NOT,    /* nobody, or it has been sent from the ring */
	UPLINK_QUEUED, /* it waits in the ring */
	UPLINK_LEFT,   /* the kernel may not: it is to be put into the ring */
	UPLINK_RAISED, /* the kernel has, and nobody else */
};
#define UPLINK_REPEATED 0x80u  /* a cell's `misses`: its result came only when it was sent again */
#define UPLINK_OLD_US 1000000u /* longer ago, a stamp says nothing any more */

struct uplink {
	uint64_t *ring; /* of as many entries as there are cells: sums to go up */
	uint64_t head, tail;
	uint64_t sent;     /* above every sum that has gone up */
	uint64_t reported; /* every sum below is in a report */
	uint64_t end;      /* above every fragment that a child has spoken of */
	uint64_t told;     /* what was settled when the parent was last told */
	uint32_t told_at;
	uint64_t waiting;  /* ranks that the parent waits for, by its last STATUS */
	int reliable;      /* the way loses nothing and keeps the order: nothing is looked for */
	uint32_t rtt_us;   /* smoothed */
	uint32_t asked_at; /* when lost results were last asked for, as a stamp; 0: never */
	uint64_t unjudged; /* what went up below left at another rate, and is not counted, */
	uint32_t anew_at;  /* ... since then, as a stamp; 0: all is */
	uint64_t judged;   /* sums of which it is known what became of them, */
	uint64_t lost;     /* and how many of those did not come at once */
	uint64_t again;    /* results that came only when they were sent again */
	struct {
		uint64_t group;
		uint32_t at;
	} asked[UPLINK_GROUPS]; /* when the parent was last asked about a group */
};

/* What a STATUS of the parent's tells, as bits from its base on. */
struct uplink_news {
	uint64_t again[WIRE_GROUP / 64]; /* sums that have not come there */
	uint64_t lost[WIRE_GROUP / 64];  /* results that have not come here */
	uint32_t n_again, n_lost;
	uint32_t n_astray; /* of those to send again, who has sent them was the kernel */
	uint32_t n_done;   /* that nobody here wants, and that are complete there */
};

static inline uint32_t uplink_stamp(uint32_t now_us)
{
	return now_us | 1; /* 0 means: none */
}

static inline struct dense_cell *uplink_cell(const struct dense_lane *lane,
                                             const struct dense_pool *pool, uint64_t position)
{
	struct dense_cell *cell = dense_cell(pool, dense_index(lane, position));

	return cell->position == position ? cell : NULL;
}

/*
 * A fragment is complete: was its sum lost on the way up, or its result on the
 * way down? The parent misses also what it has dropped because another subtree
 * has a higher scale; but such a sum does not complete, its children's at the
 * higher scale take its place (dense_enter), and then nobody has missed it.
 */
static inline void uplink_count(struct uplink *up, const struct dense_cell *cell)
{
	up->again += (cell->misses & UPLINK_REPEATED) != 0;
	if (!cell->arrived || cell->position < up->unjudged)
		return;
	up->judged++;
	up->lost += cell->misses & (uint8_t)~UPLINK_REPEATED && !up->reliable;
}

/* It goes up at a lower rate from now on (as worker/stream.h has it). Where that falls all the
   time, nothing would ever be judged. */
static inline void uplink_judge_anew(struct uplink *up, uint32_t now_us)
{
	if (up->anew_at && now_us - up->anew_at < UPLINK_ANEW_US)
		return;
	up->unjudged = up->sent;
	up->anew_at = uplink_stamp(now_us);
}

/*
 * Moves on the mark up to which no child needs anything and all that went up
 * is complete: that is what we acknowledge to the parent. A child may be done
 * with a fragment that is here and no further, so its word is not enough.
 * False: all children have left, and nothing is under way any more.
 */
static inline int uplink_settle(struct uplink *up, struct dense_lane *lane,
                                const struct dense_pool *pool)
{
	uint64_t acked = dense_acked(lane), end = lane->settled + lane->cells, at = lane->settled;

	for (; at < end && at < acked; at++) {
		const struct dense_cell *cell = uplink_cell(lane, pool, at);

		if (cell && !cell->complete)
			break;
		if (cell)
			uplink_count(up, cell);
	}
	/* No cell holds anything from `end` on: all of it was skipped. */
	if (at == end && acked < DENSE_NEVER)
		at = acked;
	if (acked == DENSE_NEVER && at == end)
		return 0;
	lane->settled = at;
	dense_update_low(lane);
	return 1;
}

/*
 * The parent says where its window begins. Two may be at it at once: what one
 * of them has heard may be forgotten until it is said again, but `low` stays.
 */
static inline void uplink_low(struct dense_lane *lane, uint64_t low)
{
	uint64_t old = lane->low, settled = lane->settled;

	if (low > lane->above && low <= settled)
		lane->above = low;
	dense_move_low(lane, old, settled < lane->above ? settled : lane->above);
}

/* A sum is to go up, for the first time or again. */
static inline void uplink_push(struct uplink *up, const struct dense_lane *lane,
                               struct dense_cell *cell)
{
	if (cell->position >= up->end)
		up->end = cell->position + 1;
	if (cell->queued == UPLINK_QUEUED || up->tail - up->head >= lane->cells)
		return;
	cell->queued = UPLINK_QUEUED;
	up->ring[up->tail++ % lane->cells] = cell->position;
}

/* Is it a sum that the kernel has left to user space? */
static inline int uplink_is_left(const struct dense_cell *cell)
{
	return cell->queued == UPLINK_LEFT && cell->summed && !cell->complete;
}

/* Takes the next one out of the ring; false: there is none. */
static inline int uplink_next(struct uplink *up, const struct dense_lane *lane, uint64_t *position)
{
	if (up->head == up->tail)
		return 0;
	*position = up->ring[up->head++ % lane->cells];
	return 1;
}

/* Is what came out of the ring still to go up? */
static inline int uplink_claim(struct dense_cell *cell, uint64_t position)
{
	if (cell->position != position || cell->queued != UPLINK_QUEUED)
		return 0;
	cell->queued = UPLINK_NOT;
	return cell->summed && !cell->complete;
}

/* The next one that goes up; NULL: there is none. */
static inline struct dense_cell *uplink_pop(struct uplink *up, const struct dense_lane *lane,
                                            const struct dense_pool *pool)
{
	uint64_t position;

	while (uplink_next(up, lane, &position)) {
		struct dense_cell *cell = dense_cell(pool, dense_index(lane, position));

		if (uplink_claim(cell, position))
			return cell;
	}
	return NULL;
}

/* Something leaves that says how far we are. */
static inline void uplink_tell(struct uplink *up, const struct dense_lane *lane, uint32_t now_us)
{
	up->told = lane->settled;
	up->told_at = now_us;
}

/* A sum leaves. */
static inline void uplink_raise(struct uplink *up, const struct dense_lane *lane,
                                struct dense_cell *cell, uint32_t now_us)
{
	uplink_tell(up, lane, now_us);
	cell->raised_at = now_us;
	if (cell->position >= up->sent)
		up->sent = cell->position + 1;
}

/*
 * What is to be done with a RESULT of the parent's: DENSE_FRESH or
 * DENSE_ADDED, copy it into the cell; else, leave it. It must be what our
 * children have sent, at the scale of their sum; where none of them
 * contributes, it begins a cell. Nothing is changed.
 */
static inline enum dense_verdict uplink_judge(const struct dense_lane *lane,
                                              const struct dense_cell *cell,
                                              const struct wire_header *packet, uint64_t position,
                                              uint32_t bytes)
{
	uint8_t shape = packet->flags & (uint8_t)~WIRE_RESENT;

	if (position < lane->low)
		return DENSE_STALE;
	if (position >= lane->low + lane->cells)
		return DENSE_AHEAD;
	if (bytes > lane->payload)
		return DENSE_MISMATCH;
	if (cell->position != position)
		return dense_expected(lane, packet->from) ? DENSE_MISMATCH : DENSE_FRESH;
	if (cell->complete)
		return DENSE_FINISHED;
	if (!cell->summed || cell->scale != packet->scale || cell->op != packet->op ||
	    cell->from != packet->from || cell->to != packet->to || cell->shape != shape ||
	    cell->bytes != bytes)
		return DENSE_MISMATCH;
	return DENSE_ADDED;
}

/* The result is in the cell, as `how` told. */
static inline void uplink_enter(struct dense_cell *cell, const struct wire_header *packet,
                                uint64_t position, uint32_t bytes, enum dense_verdict how)
{
	if (how == DENSE_FRESH) {
		cell->complete = cell->queued = 0; /* first: others look without the lock */
		cell->arrived = 0;
		cell->position = position;
		cell->op = packet->op;
		cell->from = packet->from;
		cell->to = packet->to;
		cell->shape = packet->flags & (uint8_t)~WIRE_RESENT;
		cell->bytes = (uint16_t)bytes;
		cell->scale = packet->scale;
		cell->summed = 1;
		cell->misses = 0;
	}
	if (packet->flags & WIRE_RESENT)
		cell->misses |= UPLINK_REPEATED;
	cell->complete = 1;
}

/* Takes a RESULT of the parent's. DENSE_COMPLETE: it is in the cell, and goes down. */
static inline enum dense_verdict uplink_take(struct dense_lane *lane, struct dense_cell *cell,
                                             void *sum, const struct wire_header *packet,
                                             const void *payload, uint32_t bytes)
{
	uint64_t position = dense_position(lane, packet);
	enum dense_verdict how;

	uplink_low(lane, wire_widen(packet->ack, lane->above));
	how = uplink_judge(lane, cell, packet, position, bytes);
	if (how != DENSE_FRESH && how != DENSE_ADDED)
		return how;
	combine_copy(sum, payload, bytes);
	uplink_enter(cell, packet, position, bytes, how);
	return DENSE_COMPLETE;
}

/* Is it the parent that has to say something about this fragment? */
static inline int uplink_owes(const struct dense_lane *lane, const struct dense_pool *pool,
                              uint64_t position, int asked)
{
	const struct dense_cell *cell = uplink_cell(lane, pool, position);

	if (position < lane->settled || position >= lane->low + lane->cells)
		return 0;
	return cell ? cell->summed && !cell->complete : asked;
}

/*
 * Nothing has told the parent for a while how far we are, or it may be further
 * than it has told us, with its window or with the first sum that we wait for:
 * the windows of others, and of our own children, may hang on it.
 */
static inline int uplink_ack_is_due(const struct uplink *up, const struct dense_lane *lane,
                                    const struct dense_pool *pool, uint32_t now_us)
{
	const struct dense_cell *first = uplink_cell(lane, pool, lane->settled);

	if (now_us - up->told_at >= UPLINK_PATIENCE_US)
		return lane->settled != up->told || lane->settled != lane->above ||
		       (first && first->summed && !first->complete);
	return lane->settled - up->told > lane->cells / 4;
}

/* A child has reported on these fragments. Is the parent to be asked about them now? */
static inline int uplink_is_due(struct uplink *up, const struct dense_lane *lane,
                                const struct dense_pool *pool, const struct wire_report *report,
                                uint32_t now_us)
{
	uint64_t group = report->base / WIRE_GROUP;
	uint32_t slot = (uint32_t)(group % UPLINK_GROUPS), owed = 0;
	uint32_t patience = up->rtt_us > UPLINK_PATIENCE_US ? up->rtt_us : UPLINK_PATIENCE_US;

	if (report->base + report->bits > up->end)
		up->end = report->base + report->bits;
	if (up->asked[slot].group == group && up->asked[slot].at &&
	    now_us - up->asked[slot].at < patience)
		return 0;
	for (uint32_t i = 0; i < report->bits && i < WIRE_GROUP && !owed; i++)
		owed |= (uint32_t)uplink_owes(lane, pool, report->base + i,
		                              (int)(report->missing[i / 64] >> i % 64 & 1));
	if (!owed)
		return 0;
	up->asked[slot].group = group;
	up->asked[slot].at = uplink_stamp(now_us);
	return 1;
}

/*
 * What to ask the parent about fragments from `base` on. Results that `lost`
 * names are known to be lost; else those are asked for that a child misses
 * (`asked`), or whose sum has been up for longer than an answer takes.
 */
static inline void uplink_report(struct uplink *up, const struct dense_lane *lane,
                                 const struct dense_pool *pool, uint64_t base, uint32_t bits,
                                 const uint64_t *asked, const uint64_t *lost, uint32_t now_us,
                                 struct wire_report *report)
{
	uint32_t young = up->rtt_us > UPLINK_PATIENCE_US ? up->rtt_us : UPLINK_PATIENCE_US;

	if (young > UPLINK_YOUNG_MAX_US)
		young = UPLINK_YOUNG_MAX_US;
	/* About no more than our children have begun: who asks for more waits for it. */
	if (base + bits > up->end)
		bits = up->end > base ? (uint32_t)(up->end - base) : 0;
	report->base = base;
	report->bits = bits < WIRE_GROUP ? bits : WIRE_GROUP;
	report->stamp = uplink_stamp(now_us);
	report->young = lost ? 0 : young;
	report->want = report->judged = report->lost = 0;
	report->waiting = 0;
	uplink_tell(up, lane, now_us);
	for (uint32_t i = 0; i < WIRE_GROUP / 64; i++)
		report->missing[i] = lost ? lost[i] : 0;
	if (lost)
		up->asked_at = report->stamp;
	for (uint32_t i = 0; i < report->bits && !lost && !up->reliable; i++) {
		const struct dense_cell *cell = uplink_cell(lane, pool, base + i);
		int wanted = asked && asked[i / 64] >> i % 64 & 1;

		if (uplink_owes(lane, pool, base + i, wanted) &&
		    (!cell || now_us - cell->raised_at > young))
			report->missing[i / 64] |= 1ull << i % 64;
	}
}

/* Had the sum left by when the parent was asked? Else the answer says nothing of it. */
static inline int uplink_was_up(const struct dense_cell *cell, uint32_t stamp)
{
	int32_t before = (int32_t)(stamp - cell->raised_at);

	return cell->queued == UPLINK_RAISED ? before > (int32_t)UPLINK_BATCH_US
	                                     : before > 0 && cell->queued != UPLINK_QUEUED;
}

/* One fragment that the parent's STATUS speaks of. */
static inline void uplink_hear(struct dense_lane *lane, const struct dense_pool *pool, uint32_t i,
                               const struct wire_status *status, int is_news, int is_late,
                               struct uplink_news *news)
{
	uint64_t position = (status->base + i) & WIRE_POSITION_MASK, bit = 1ull << i % 64;
	struct dense_cell *cell = uplink_cell(lane, pool, position);
	int complete = (int)(status->complete[i / 64] >> i % 64 & 1);

	if (position < lane->settled || position >= lane->low + lane->cells)
		return;
	if (complete && !cell) {
		/* Of others only: lost, or for nobody here, so we ask now and then. */
		if (is_late && position >= dense_acked(lane)) {
			news->lost[i / 64] |= bit;
			news->n_lost++;
		}
	} else if (cell && cell->summed && !cell->complete) {
		if (complete && !dense_expected(lane, cell->to)) {
			cell->complete = 1; /* its result is for others */
			news->n_done++;
		} else if (complete && is_news) {
			news->lost[i / 64] |= bit;
			news->n_lost++;
		} else if (!complete && status->missing[i / 64] & bit &&
		           uplink_was_up(cell, status->stamp)) {
			cell->misses += cell->misses < 2;
			news->again[i / 64] |= bit;
			news->n_again++;
			news->n_astray += cell->queued == UPLINK_RAISED;
		}
	}
}

/* Takes the parent's answer to a report of ours. */
static inline void uplink_status(struct uplink *up, struct dense_lane *lane,
                                 const struct dense_pool *pool, const struct wire_status *status,
                                 uint32_t now_us, struct uplink_news *news)
{
	uint32_t rtt = now_us - status->stamp;
	int is_news, is_late;

	if (uplink_stamp(now_us) - up->asked_at > UPLINK_OLD_US)
		up->asked_at = 0; /* or it would be ahead of all when half of the clock is round */
	/* Asked before what was asked for last could come: it says nothing new of results. */
	is_news = status->stamp && !up->reliable &&
	          (!up->asked_at || (int32_t)(status->stamp - up->asked_at) >= 0);
	is_late = !up->asked_at || now_us - up->asked_at > UPLINK_PATIENCE_US;
	*news = (struct uplink_news){ .n_again = 0 };
	if (status->stamp)
		up->waiting = status->waiting;
	/* Quick to rise: what is called lost while it waits in a queue is sent twice. */
	if (status->stamp && rtt < 1000000)
		up->rtt_us = rtt > up->rtt_us ? (up->rtt_us + rtt) / 2 : (7 * up->rtt_us + rtt) / 8;
	for (uint32_t i = 0; i < status->bits && i < WIRE_GROUP; i++)
		uplink_hear(lane, pool, i, status, is_news, is_news && is_late, news);
	if (up->reliable)
		news->n_again = 0; /* what is not there is on its way, or of a lower scale */
	uplink_low(lane, status->low);
	uplink_settle(up, lane, pool);
}

#endif
