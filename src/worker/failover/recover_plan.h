/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a vector that some rank lacks is completed in other trees. Pure.
 *
 * For each block every rank gives two numbers, and all ranks learn the maximum over all ranks:
 * `owner`, its rank plus 1 if it can give the block's result (0: it cannot), and `lacks`, 1 if it
 * still needs the result.
 *
 *  - No rank lacks the block: nothing is to be done.
 *  - A rank has it: that rank sends it to the ranks that lack it.
 *  - No rank has it: the collective is done again for this block. The inputs are as the user gave
 *    them, also in place: only a result overwrites an input, and then its rank is an owner.
 *
 * All ranks see the same numbers and come to the same repairs. Neighbouring blocks that need the
 * same are one repair.
 */
#ifndef TRIB_WORKER_FAILOVER_RECOVER_PLAN_H
#define TRIB_WORKER_FAILOVER_RECOVER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct repair {
	bool again;          /* the collective is done again; false: the result is sent */
	unsigned from;       /* the rank that sends it */
	size_t first, count; /* blocks */
};

/* The next repair from block `at` on; false: there is none. */
bool repair_next(const uint8_t *owner, const uint8_t *lacks, size_t blocks, size_t at,
                 struct repair *out);

/* What a rank knows of a vector before all ranks agree. */
struct holding {
	bool finished; /* the user has the buffers back */
	bool wants;    /* the result is wanted here */
	bool copies;   /* one rank gives its bytes to all others */
	bool gives;    /* if `copies`: this rank gives them */
	bool empty;    /* there are no elements: the ranks only meet */
};

/* Does this rank lack the block? `have`: the block is done here. */
static inline bool holding_lacks(const struct holding *holding, bool have)
{
	return !holding->finished && (holding->wants || holding->empty) && !have;
}

/*
 * Can this rank give the block? A rank that has finished has copies of every block that another may
 * lack; for other blocks its answer does not matter. Bytes that are only copied belong to the rank
 * that gives them, because no other rank keeps them.
 */
static inline bool holding_owns(const struct holding *holding, bool have)
{
	if (holding->copies)
		return holding->gives;
	return (holding->wants || holding->empty) && (holding->finished || have);
}

#endif
