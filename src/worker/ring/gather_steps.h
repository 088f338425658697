/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_steps: an allgather with few messages. In step k a rank has the vectors of 2^k ranks, and
 * sends them all to one other rank. So log2(N) messages of each rank are enough, where sending to
 * every rank takes N - 1. The bytes are the same. Pure.
 *
 * If N is a power of two, ranks exchange in pairs (recursive doubling): acknowledgements travel
 * with the vectors of the other direction. Otherwise each rank sends 2^k ranks back (Bruck).
 */
#ifndef TRIB_WORKER_RING_GATHER_STEPS_H
#define TRIB_WORKER_RING_GATHER_STEPS_H

#include <stdbool.h>

struct gather_step {
	unsigned to, from;     /* ranks */
	unsigned n;            /* vectors in each of the two messages */
	unsigned sends, takes; /* the first one of each; the last is followed by vector 0 */
};

/* Do steps save messages among so many ranks? */
bool gather_takes_steps(unsigned size);
/* The number of steps. */
unsigned gather_steps(unsigned size);
struct gather_step gather_step(unsigned rank, unsigned size, unsigned step);

#endif
