/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many lanes a worker asks each tree for. Pure. Ranks may choose differently: the aggregator
 * grants the lowest number that any rank asked for, and no more than it has threads. Results do not
 * depend on the number.
 *
 * A lane is a thread at both ends, and one thread carries a few Gb/s. If cores are few, more
 * threads only take turns on them.
 */
#ifndef TRIB_WORKER_DENSE_LANE_COUNT_H
#define TRIB_WORKER_DENSE_LANE_COUNT_H

#include "wire/packet.h"

#define LANES_MAX 64u     /* of a communicator in all trees; each lane is a thread */
#define SLOT_LANES_MAX 4u /* beside them: lanes of small vectors */
#define LANES_ALL (LANES_MAX + SLOT_LANES_MAX)
#define LANES_SEVERAL 32u   /* of a communicator, if a tree has more than one lane */
#define LANES_AUTO_MAX 4u   /* chosen by default, in all trees; tribd has as many threads */
#define LANES_AUTO_CORES 2u /* for each lane: the program needs cores, too */

/* `asked`: the user's choice, 0: none. `cores`: for this worker. */
static inline unsigned lanes_choose(unsigned asked, unsigned cores, unsigned trees)
{
	unsigned lanes = asked;

	if (!asked) {
		lanes = cores / LANES_AUTO_CORES;
		lanes = (lanes < LANES_AUTO_MAX ? lanes : LANES_AUTO_MAX) / trees;
	}
	if (lanes > LANES_SEVERAL / trees) /* bound for the communicator */
		lanes = LANES_SEVERAL / trees;
	if (lanes > WIRE_LANES_MAX) /* bound for one tree */
		lanes = WIRE_LANES_MAX;
	return lanes ? lanes : 1;
}

#endif
