/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a vector that not everyone has is made whole in other trees. Pure.
 *
 * For each block every rank says two things, and the maximum over all ranks is
 * known to all: `owner`, one more than its rank if it can give the block's
 * result (0: it cannot), and `lacks`, whether it still needs it.
 *
 *  - Nobody lacks it: nothing is to be done.
 *  - Somebody has it: it is sent from there to those who lack it.
 *  - Nobody has it: the collective is done again for this block. Inputs are as
 *    the user gave them, also in place: only a result overwrites an input, and
 *    whoever has the result is its owner.
 *
 * All ranks see the same two rows, so they come to the same steps. Neighbours
 * that need the same are one step.
 */
#ifndef TRIB_WORKER_RECOVER_PLAN_H
#define TRIB_WORKER_RECOVER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct repair {
	bool again;          /* the collective is done again; else the result is sent */
	unsigned from;       /* by this rank */
	size_t first, count; /* blocks */
};

/* The next step from block `at` on; false: there is none. */
bool repair_next(const uint8_t *owner, const uint8_t *lacks, size_t blocks, size_t at,
                 struct repair *out);

/* What a rank knows of a vector before all agree. */
struct holding {
	bool finished; /* the user has his buffers back */
	bool wants;    /* its result, here */
	bool copies;   /* one rank gives, all others get the same bytes */
	bool gives;    /* where it copies: we are that one */
	bool empty;    /* there are no elements: to have met is all there is to it */
};

/* What it says of a block that is done here, or is not. */
static inline bool holding_lacks(const struct holding *holding, bool have)
{
	return !holding->finished && (holding->wants || holding->empty) && !have;
}

/*
 * Who has finished has copies of all that somebody may lack; of other blocks it
 * may say what it wants, as nobody lacks them. Of bytes that are only copied,
 * the one that gives them is the owner, as nobody else keeps them.
 */
static inline bool holding_owns(const struct holding *holding, bool have)
{
	if (holding->copies)
		return holding->gives;
	return (holding->wants || holding->empty) && (holding->finished || have);
}

#endif
