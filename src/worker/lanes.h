/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many lanes a worker asks each tree for. Pure. Ranks may come to unlike
 * answers: the aggregator gives the fewest that any asked for, and no more than
 * it has threads. Results do not depend on it.
 *
 * A lane is a thread at both ends, and one thread carries some Gb/s at most. But
 * where cores are few, more threads only take turns on them.
 */
#ifndef TRIB_WORKER_LANES_H
#define TRIB_WORKER_LANES_H

#include "wire/packet.h"

#define LANES_MAX 64u       /* of one communicator, all trees together: each is a thread */
#define LANES_SEVERAL 32u   /* the same where trees have more than one */
#define LANES_AUTO_MAX 4u   /* of all trees together; tribd has as many threads by itself */
#define LANES_AUTO_CORES 2u /* for each lane: the program has something to do as well */

/* `asked` is the user's, 0 where there is none; `cores` are those of one worker. */
static inline unsigned lanes_choose(unsigned asked, unsigned cores, unsigned trees)
{
	unsigned lanes = asked;

	if (!asked) {
		lanes = cores / LANES_AUTO_CORES;
		lanes = (lanes < LANES_AUTO_MAX ? lanes : LANES_AUTO_MAX) / trees;
	}
	if (lanes > LANES_SEVERAL / trees) /* there are only so many in all */
		lanes = LANES_SEVERAL / trees;
	if (lanes > WIRE_LANES_MAX) /* ... and in one tree */
		lanes = WIRE_LANES_MAX;
	return lanes ? lanes : 1;
}

#endif
