/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Going from one shared star to another. Pure; sharing/star_switch.c acts on it, and the
 * controller's part is control/sharing/star_migration.c.
 *
 * The shared stars of a plan are numbered. The controller announces another star when the turns at
 * the current one are used up: all their requests are over at all ranks, and no more are granted.
 * So a rank that hears of it can leave at once. From then on until the first turn at the new star,
 * every request uses the communicator's own trees. So ranks need not know how far the others are
 * with leaving and joining, and no request waits for it.
 *
 * If a star cannot be joined, or ends while nothing is in flight there, the communicator does not
 * fail: the rank is astray, agrees to no turn, and tells the controller.
 */
#ifndef TRIB_WORKER_TURNS_STAR_H
#define TRIB_WORKER_TURNS_STAR_H

#include "worker/turns/turn.h"

enum star_step {
	STAR_NONE,    /* the plan has no shared star */
	STAR_JOINED,  /* the rank may agree to turns */
	STAR_LEAVING, /* the previous star still has lanes */
	STAR_JOINING,
	STAR_ASTRAY, /* not joined: waits for the next star */
};

struct star {
	uint32_t number; /* of the newest star that a message named */
	enum star_step step;
};

/*
 * A message of the controller about turns, or about another star (then the step becomes
 * STAR_LEAVING); `next` as for turn_hear. False: nothing has changed.
 */
bool star_hear(struct star *star, struct turn *turn, const struct wire_turn *message,
               uint64_t next);

/*
 * The star has ended, or another rank has left it. True: nothing is or can be in flight there, so
 * requests use the own trees. False: the communicator needs other trees. `quiet`: all requests that
 * started there are over, at all ranks as far as this rank knows.
 */
bool star_lose(struct star *star, const struct turn *turn, uint64_t next, bool quiet);

/* For the controller: enum wire_turn_flag. */
static inline uint8_t star_flags(const struct star *star)
{
	if (star->step == STAR_ASTRAY)
		return WIRE_TURN_ASTRAY;
	return star->step == STAR_LEAVING || star->step == STAR_JOINING ? WIRE_TURN_JOINING : 0;
}

#endif
