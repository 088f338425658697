/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a job that runs should go on in other trees, because a machine of its
 * plan is wanted for something else (XAgg §V). Pure. A move costs the ranks a
 * fraction of a second, so it takes a reason that has lasted, a gain that is
 * worth it, and a while since the last one: a job does not go to and fro.
 */
#ifndef TRIB_CONTROL_MOVER_H
#define TRIB_CONTROL_MOVER_H

#include "control/planner.h"

#define MOVE_LASTED (2000 * 1000000ull) /* ns that a node has to have been loaded */
#define MOVE_REST (10000 * 1000000ull)  /* and so long a plan is left in peace */
#define MOVE_GAIN 1.1                   /* times as fast as now, or it is not worth it */
#define MOVE_LEFT 0.5 /* of a plan's rate, while others fight for the cores of one of its nodes */
#define MOVE_WHY 160

struct mover {
	const struct nodes *nodes;
	const struct node_limits *limits;
	uint64_t now;
};

/* A plan that is at work. */
struct moving {
	struct plan_wish wish; /* its ranks, as they would ask for the next one */
	const char *plan;
	double rate_bps; /* that it was planned for; 0: not known */
	uint64_t made_at;
};

enum move {
	MOVE_NOT,   /* nothing is wrong with this node */
	MOVE_STAYS, /* something is, but the plan is better off with it; `why` says why */
	MOVE_LEAVES /* the node is to leave the plan's trees; `why` says why */
};

enum move mover_judge(const struct mover *mover, const struct moving *moving,
                      const struct node *node, char why[MOVE_WHY]);

#endif
