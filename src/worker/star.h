/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank's part in going from one shared aggregator to another. Pure; what is
 * done about it is shift.c, and the controller's part is control/shifting.c.
 *
 * The shared stars of a plan are numbered. The controller tells of another one
 * when nothing of the turns at the one before is left: all requests of theirs
 * are over at all ranks, and no more are given there. So who is told of it can
 * leave at once: nobody needs anything of what was there. From then on until
 * the first turn at the new star, on which all agree as on any other, every
 * request goes the communicator's own way; so ranks need not know of each other
 * how far they are with leaving and joining, and nothing waits for it.
 *
 * A star that cannot be joined, or that ends while nothing is under way there,
 * is no failure of the communicator's: the rank is astray, agrees to no turn, and
 * the controller learns of it.
 */
#ifndef TRIB_WORKER_STAR_H
#define TRIB_WORKER_STAR_H

#include "worker/turn.h"

enum star_step {
	STAR_NONE,    /* the plan has none */
	STAR_JOINED,  /* turns may be agreed on */
	STAR_LEAVING, /* of the one before lanes are left */
	STAR_JOINING,
	STAR_ASTRAY, /* not in it, until there is another one */
};

struct star {
	uint32_t number; /* the newest that was heard of */
	enum star_step step;
};

/*
 * A word of the controller's about turns, or about another star (then the step is
 * STAR_LEAVING); `next` as for turn_hear. False: nothing has changed.
 */
bool star_hear(struct star *star, struct turn *turn, const struct wire_turn *word, uint64_t next);

/*
 * The star has ended, or another rank of it has. True: nothing is under way there
 * nor can be, so requests just go their own way. False: it takes other trees.
 * `quiet`: all that was begun there is over, at all ranks as far as is known here.
 */
bool star_lose(struct star *star, const struct turn *turn, uint64_t next, bool quiet);

/* What the controller is told of it: enum wire_turn_flag. */
static inline uint8_t star_flags(const struct star *star)
{
	if (star->step == STAR_ASTRAY)
		return WIRE_TURN_ASTRAY;
	return star->step == STAR_LEAVING || star->step == STAR_JOINING ? WIRE_TURN_JOINING : 0;
}

#endif
