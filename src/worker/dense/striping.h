/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits vectors over lanes of different strength. Pure. Every rank has to come to the same split,
 * so weights become integers once, and the rest is integer arithmetic. Parts are whole fragments:
 * blocks, and so the bits of float sums, are the same as for a vector that is not split.
 */
#ifndef TRIB_WORKER_DENSE_STRIPING_H
#define TRIB_WORKER_DENSE_STRIPING_H

#include "worker/dense/lane_count.h"

#include <stdbool.h>
#include <stddef.h>

#define STRIPING_ROTATION 64u

struct striping {
	unsigned n;
	uint32_t upto[LANES_MAX];            /* sum of the weights up to this lane's */
	uint8_t rotation[STRIPING_ROTATION]; /* lanes for small vectors, in proportion to their
	                                        weights */
};

struct part {
	unsigned lane;
	size_t first, count; /* elements */
};

/* `weights` are relative to each other and above 0; `n` is 1 to LANES_MAX. */
void striping_init(struct striping *striping, const double *weights, unsigned n);

/*
 * Is a vector of `count` elements, `per` in a fragment, too small to be split? A lane has to get
 * `least` fragments.
 */
static inline bool striping_is_small(const struct striping *striping, size_t count, size_t per,
                                     unsigned least)
{
	size_t most = (size_t)least * striping->n - 1; /* fragments */

	return count <= per ? most > 0 : (count - 1) / per < most;
}

/* How many lanes such a vector uses if it need not use all: each one gets `least` fragments. */
static inline unsigned striping_some(const struct striping *striping, size_t count, size_t per,
                                     unsigned least)
{
	size_t lanes = (count + per - 1) / per / least;

	return lanes >= striping->n ? striping->n : lanes ? (unsigned)lanes : 1;
}

/* The parts of a larger vector in the first `lanes` of them, in proportion to their weights. Gives
 * the number of parts; no part is empty. */
unsigned striping_split(const struct striping *striping, unsigned lanes, size_t count, size_t per,
                        struct part parts[LANES_MAX]);
/* The lane for the small vector with this number. */
static inline unsigned striping_rotate(const struct striping *striping, uint64_t number)
{
	return striping->rotation[number % STRIPING_ROTATION];
}

/* The lane's share of a vector, from 0 to 1. */
static inline double striping_share(const struct striping *striping, unsigned lane)
{
	uint32_t before = lane ? striping->upto[lane - 1] : 0;

	return (double)(striping->upto[lane] - before) / striping->upto[striping->n - 1];
}

#endif
