/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink: a lane's way to its parent. Sums go up as the DATA of one child, and
 * results come down. Losses between them are found as a worker finds them: by
 * REPORTs to the parent and its answers. It has no timer: REPORTs of workers come
 * up from child to parent and drive it.
 *
 * Pure, like the rest of the folder.
 */
#ifndef TRIB_ENGINE_UPLINK_H
#define TRIB_ENGINE_UPLINK_H

#include "engine/dense.h"

#define UPLINK_GROUPS 16u
#define UPLINK_PATIENCE_US 1000u /* us between two questions about one fragment group */
#define UPLINK_YOUNG_MAX_US 100000u
#define UPLINK_ANEW_US 100000u /* us: uplink_judge_anew takes effect at most this often */
#define UPLINK_BATCH_US 200u   /* us: a report may overtake what the kernel sends in batches */

/* Which side sends a sum up: user space, or a program in the kernel. */
enum uplink_queued {
	UPLINK_NOT,    /* neither has to: the cell is not summed, or user space has sent the sum */
	UPLINK_QUEUED, /* user space: the sum waits in the ring */
	UPLINK_LEFT,   /* user space has to put the sum into the ring: the kernel may not send it */
	UPLINK_RAISED, /* the kernel has sent the sum; user space has not */
};
#define UPLINK_REPEATED 0x80u  /* bit of a cell's `misses`: its result was a repeat */
#define UPLINK_OLD_US 1000000u /* us: an older stamp says nothing */

struct uplink {
	uint64_t *ring; /* sums to send, one entry per cell */
	uint64_t head, tail;
	uint64_t sent;     /* one above the last sum that has gone up */
	uint64_t reported; /* every sum below has been reported */
	uint64_t end;      /* one above the last fragment that a child has mentioned */
	uint64_t told;     /* `settled` as last told to the parent */
	uint32_t told_at;
	uint64_t waiting;  /* ranks that the parent waits for, by its last STATUS */
	int reliable;      /* the carrier neither loses nor reorders: nothing is searched for */
	uint32_t rtt_us;   /* smoothed round trip */
	uint32_t asked_at; /* stamp of the last request for lost results; 0: never */
	uint64_t unjudged; /* sums below left at another rate, and are not judged */
	uint32_t anew_at;  /* stamp of the last change of rate; 0: none */
	uint64_t judged;   /* sums whose fate is known */
	uint64_t lost;     /* those of `judged` that did not arrive at once */
	uint64_t again;    /* results that arrived only as repeats */
	struct {
		uint64_t group;
		uint32_t at;
	} asked[UPLINK_GROUPS]; /* stamp of the last question about each fragment group */
};

/* What a STATUS of the parent says, as bits from its base on. */
struct uplink_news {
	uint64_t again[WIRE_GROUP / 64]; /* sums that the parent lacks */
	uint64_t lost[WIRE_GROUP / 64];  /* results that are lacking here */
	uint32_t n_again, n_lost;
	uint32_t n_astray; /* sums of `again` that the kernel had sent */
	uint32_t n_done;   /* fragments that are complete there, and that no child here needs */
};

static inline uint32_t uplink_stamp(uint32_t now_us)
{
	return now_us | 1; /* 0 is reserved for "none" */
}

static inline struct dense_cell *uplink_cell(const struct dense_lane *lane,
                                             const struct dense_pool *pool, uint64_t position)
{
	struct dense_cell *cell = dense_cell(pool, dense_index(lane, position));

	return cell->position == position ? cell : NULL;
}

/*
 * A fragment is complete: was its sum lost on the way up, or its result on the way
 * down? The parent also lacks a sum that it dropped because another subtree has a
 * higher scale. Such a sum does not complete: packets of the higher scale replace
 * it (dense_enter), which resets `misses`.
 */
static inline void uplink_count(struct uplink *up, const struct dense_cell *cell)
{
	up->again += (cell->misses & UPLINK_REPEATED) != 0;
	if (!cell->arrived || cell->position < up->unjudged)
		return;
	up->judged++;
	up->lost += cell->misses & (uint8_t)~UPLINK_REPEATED && !up->reliable;
}

/*
 * From now on sums go up at a lower rate (as in worker/dense/stream.h). At most
 * once per UPLINK_ANEW_US: if the rate fell all the time, nothing would ever be
 * judged.
 */
static inline void uplink_judge_anew(struct uplink *up, uint32_t now_us)
{
	if (up->anew_at && now_us - up->anew_at < UPLINK_ANEW_US)
		return;
	up->unjudged = up->sent;
	up->anew_at = uplink_stamp(now_us);
}

/*
 * Moves `settled`, which is acknowledged to the parent: below it, no child needs
 * anything, and every sum that went up is complete. A child's acknowledgement is
 * not enough: the child may be done with a fragment that has not gone up yet.
 * Gives 0 if all children have left and nothing is in flight.
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
	/* No cell holds a fragment from `end` on: all of them were skipped. */
	if (at == end && acked < DENSE_NEVER)
		at = acked;
	if (acked == DENSE_NEVER && at == end)
		return 0;
	lane->settled = at;
	dense_update_low(lane);
	return 1;
}

/*
 * The parent tells where its window begins. Two cores may call it at once: one
 * update may be lost until it is told again, but `low` stays right.
 */
static inline void uplink_low(struct dense_lane *lane, uint64_t low)
{
	uint64_t old = lane->low, settled = lane->settled;

	if (low > lane->above && low <= settled)
		lane->above = low;
	dense_move_low(lane, old, settled < lane->above ? settled : lane->above);
}

/* Queues a sum, for the first time or again. */
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

/* Has the kernel left this sum to user space? */
static inline int uplink_is_left(const struct dense_cell *cell)
{
	return cell->queued == UPLINK_LEFT && cell->summed && !cell->complete;
}

/* Takes the next position from the ring. Gives 0 if there is none. */
static inline int uplink_next(struct uplink *up, const struct dense_lane *lane, uint64_t *position)
{
	if (up->head == up->tail)
		return 0;
	*position = up->ring[up->head++ % lane->cells];
	return 1;
}

/* Does the sum at this position still have to go up? */
static inline int uplink_claim(struct dense_cell *cell, uint64_t position)
{
	if (cell->position != position || cell->queued != UPLINK_QUEUED)
		return 0;
	cell->queued = UPLINK_NOT;
	return cell->summed && !cell->complete;
}

/* The next sum to send; NULL: none. */
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

/* A packet leaves that carries our acknowledgement. */
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
 * What to do with a RESULT of the parent. DENSE_FRESH and DENSE_ADDED: copy it
 * into the cell. Else: ignore it. It must match what our children sent, at the
 * scale of their sum. If none of them contributes, it begins a cell. Changes
 * nothing.
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

/* Records that the result is in the cell. `how` is the verdict of uplink_judge(). */
static inline void uplink_enter(struct dense_cell *cell, const struct wire_header *packet,
                                uint64_t position, uint32_t bytes, enum dense_verdict how)
{
	if (how == DENSE_FRESH) {
		dense_begin(cell, packet, position, bytes);
		cell->arrived = 0;
		cell->scale = packet->scale;
		cell->summed = 1;
		cell->misses = 0;
	}
	if (packet->flags & WIRE_RESENT)
		cell->misses |= UPLINK_REPEATED;
	cell->complete = 1;
}

/*
 * Takes a RESULT of the parent. DENSE_COMPLETE: it is in the cell, and goes down
 * to the children.
 */
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

/* Does the result of this fragment have to come from the parent? */
static inline int uplink_owes(const struct dense_lane *lane, const struct dense_pool *pool,
                              uint64_t position, int asked)
{
	const struct dense_cell *cell = uplink_cell(lane, pool, position);

	if (position < lane->settled || position >= lane->low + lane->cells)
		return 0;
	return cell ? cell->summed && !cell->complete : asked;
}

/*
 * Is an acknowledgement due? It is if the parent has not heard for a while how far
 * we are: the windows of its other children may depend on that. It is also if the
 * parent may be further than it told us: our own window may depend on that.
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
 * Makes a report to the parent about fragments from `base` on. If `lost` is given,
 * it names results that are known to be lost. Else the report asks for results
 * that a child lacks (`asked`), and for results of sums that went up longer ago
 * than an answer takes.
 */
static inline void uplink_report(struct uplink *up, const struct dense_lane *lane,
                                 const struct dense_pool *pool, uint64_t base, uint32_t bits,
                                 const uint64_t *asked, const uint64_t *lost, uint32_t now_us,
                                 struct wire_report *report)
{
	uint32_t young = up->rtt_us > UPLINK_PATIENCE_US ? up->rtt_us : UPLINK_PATIENCE_US;

	if (young > UPLINK_YOUNG_MAX_US)
		young = UPLINK_YOUNG_MAX_US;
	/*
	 * Only about fragments that our children have begun: a question about more
	 * would wait for them.
	 */
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

/* Had the sum left before the parent was asked? If not, the answer does not concern it. */
static inline int uplink_was_up(const struct dense_cell *cell, uint32_t stamp)
{
	int32_t before = (int32_t)(stamp - cell->raised_at);

	return cell->queued == UPLINK_RAISED ? before > (int32_t)UPLINK_BATCH_US
	                                     : before > 0 && cell->queued != UPLINK_QUEUED;
}

/* Takes one fragment of the parent's STATUS. */
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
		/*
		 * No child here contributes. The result was lost, or no child here wants it:
		 * we ask now and then.
		 */
		if (is_late && position >= dense_acked(lane)) {
			news->lost[i / 64] |= bit;
			news->n_lost++;
		}
	} else if (cell && cell->summed && !cell->complete) {
		if (complete && !dense_expected(lane, cell->to)) {
			cell->complete = 1; /* its result is for other children of the parent */
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
		up->asked_at = 0; /* an older stamp would lie in the future once the clock wraps */
	/* An answer to a report from before the last request says nothing new about results. */
	is_news = status->stamp && !up->reliable &&
	          (!up->asked_at || (int32_t)(status->stamp - up->asked_at) >= 0);
	is_late = !up->asked_at || now_us - up->asked_at > UPLINK_PATIENCE_US;
	*news = (struct uplink_news){ .n_again = 0 };
	if (status->stamp)
		up->waiting = status->waiting;
	/* It rises quickly: a result that waits in a queue must not be taken for lost. */
	if (status->stamp && rtt < 1000000)
		up->rtt_us = rtt > up->rtt_us ? (up->rtt_us + rtt) / 2 : (7 * up->rtt_us + rtt) / 8;
	for (uint32_t i = 0; i < status->bits && i < WIRE_GROUP; i++)
		uplink_hear(lane, pool, i, status, is_news, is_news && is_late, news);
	if (up->reliable)
		news->n_again = 0; /* missing sums are on their way, or have a lower scale */
	uplink_low(lane, status->low);
	uplink_settle(up, lane, pool);
}

#endif
