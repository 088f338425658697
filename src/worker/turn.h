/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank's part in the sharing of an aggregator: which requests are summed
 * there, and which go the communicator's own way. Pure. The controller's part
 * is control/turns.h, which has the whole protocol.
 *
 * What is known is a range of request numbers. It changes by an agreement of
 * all ranks, so all choose alike for every request; and it ends by itself, so a
 * turn that was given is over without another word.
 */
#ifndef TRIB_WORKER_TURN_H
#define TRIB_WORKER_TURN_H

#include "wire/packet.h"

#include <stdbool.h>

struct turn_range {
	uint64_t from, to; /* empty where they are the same */
};

struct turn {
	uint64_t session; /* of the controller's, the newest that was heard; older words are void */
	uint64_t change;  /* the number of the newest one that was heard of */
	enum wire_turn_phase phase;
	struct turn_range asked; /* WIRE_TURN_ASKED: what is to hold */
	struct turn_range now;   /* what holds */
	struct turn_range last;  /* ... and what held before, for requests below now.from */
};

static inline bool turn_range_has(const struct turn_range *range, uint64_t request)
{
	return request >= range->from && request < range->to;
}

/* Have all requests of it been begun? Of one that is empty, wherever that is, they have. */
static inline bool turn_range_is_over(const struct turn_range *range, uint64_t next)
{
	return range->from == range->to || next >= range->to;
}

/* Is this request summed at the shared aggregator? The same on all ranks, without a message. */
static inline bool turn_uses(const struct turn *turn, uint64_t request)
{
	return turn_range_has(&turn->now, request) || turn_range_has(&turn->last, request);
}

/* Has it to wait, because others may have agreed on it in a way that is not known here yet? */
static inline bool turn_waits(const struct turn *turn, uint64_t request)
{
	return turn->phase == WIRE_TURN_ASKED && request >= turn->asked.from;
}

/* Have all requests been begun that were given? */
static inline bool turn_is_used_up(const struct turn *turn, uint64_t next)
{
	return turn_range_is_over(&turn->now, next) && turn_range_is_over(&turn->last, next);
}

/*
 * A word of the controller's; `next` is the first request that has not begun
 * here. False: it is an old one, and nothing has changed.
 */
bool turn_hear(struct turn *turn, const struct wire_turn *word, uint64_t next);

#endif
