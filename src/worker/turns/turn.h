/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns: the rules of sharing an aggregator, as a rank follows them. Pure: no clock, no I/O, no
 * memory. This header says which requests use the shared star; star.h says which star that is;
 * step_profile.h measures a job's training steps. The room must not touch any other room.
 *
 * A turn is a range of request numbers. A range changes only by an agreement of all ranks, so all
 * ranks decide alike for every request. A range ends by itself: no message ends a turn. The
 * protocol, and the controller's part, are in control/policy/turn_protocol.h.
 */
#ifndef TRIB_WORKER_TURNS_TURN_H
#define TRIB_WORKER_TURNS_TURN_H

#include "wire/packet.h"

#include <stdbool.h>

struct turn_range {
	uint64_t from, to; /* empty if both are equal */
};

struct turn {
	uint64_t session; /* the controller's newest; messages of older sessions are ignored */
	uint64_t change;  /* number of the newest change that a message named */
	enum wire_turn_phase phase;
	struct turn_range asked; /* the range to agree on; valid in WIRE_TURN_ASKED */
	struct turn_range now;   /* the current range */
	struct turn_range last;  /* the previous range, for requests below now.from */
};

static inline bool turn_range_has(const struct turn_range *range, uint64_t request)
{
	return request >= range->from && request < range->to;
}

/* Have all requests of the range started? `next`: the first that has not. Empty: yes. */
static inline bool turn_range_is_over(const struct turn_range *range, uint64_t next)
{
	return range->from == range->to || next >= range->to;
}

/* Does this request use the shared star? The same on all ranks, without a message. */
static inline bool turn_uses(const struct turn *turn, uint64_t request)
{
	return turn_range_has(&turn->now, request) || turn_range_has(&turn->last, request);
}

/* Does the request have to wait, because it may be decided and not known here yet? */
static inline bool turn_waits(const struct turn *turn, uint64_t request)
{
	return turn->phase == WIRE_TURN_ASKED && request >= turn->asked.from;
}

/* Have all requests of all turns started? */
static inline bool turn_is_used_up(const struct turn *turn, uint64_t next)
{
	return turn_range_is_over(&turn->now, next) && turn_range_is_over(&turn->last, next);
}

/*
 * A message of the controller; `next` is the first request that has not started here. False: the
 * message is old, and nothing has changed.
 */
bool turn_hear(struct turn *turn, const struct wire_turn *message, uint64_t next);

#endif
