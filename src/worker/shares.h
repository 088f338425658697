/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How vectors are split over lanes of unlike strength. Pure. Every rank has to
 * come to the same split, so weights are made integers once and the rest is
 * integer arithmetic. Parts are whole fragments: blocks, and so the bits of
 * float sums, are those of a vector that is not split.
 */
#ifndef TRIB_WORKER_SHARES_H
#define TRIB_WORKER_SHARES_H

#include "worker/lanes.h"

#include <stdbool.h>
#include <stddef.h>

#define SHARES_TURNS 64u

struct shares {
	unsigned n;
	uint32_t upto[LANES_MAX];    /* the sum of the weights up to this lane's */
	uint8_t turns[SHARES_TURNS]; /* whose turn it is, each as often as its weight says */
};

struct part {
	unsigned lane;
	size_t first, count; /* elements */
};

/* `weights` are above 0 and relative to each other; `n` is 1 to LANES_MAX. */
void shares_init(struct shares *shares, const double *weights, unsigned n);

/* Is a vector of so many elements, `per` in a fragment, too small to be split? */
bool shares_is_small(const struct shares *shares, size_t count, size_t per);
/* The parts of one that is not; gives their number. None is empty. */
unsigned shares_split(const struct shares *shares, size_t count, size_t per,
                      struct part parts[LANES_MAX]);
/* The lane that a small one goes to as a whole. */
static inline unsigned shares_turn(const struct shares *shares, uint64_t turn)
{
	return shares->turns[turn % SHARES_TURNS];
}

/* The part of the whole that is the lane's. */
static inline double shares_of(const struct shares *shares, unsigned lane)
{
	uint32_t before = lane ? shares->upto[lane - 1] : 0;

	return (double)(shares->upto[lane] - before) / shares->upto[shares->n - 1];
}

#endif
