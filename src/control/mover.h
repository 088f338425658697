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

#define MOVE_BACK 2.0 /* times the share below which servers are given up: they come back */

struct mover {
	const struct nodes *nodes;
	const struct node_limits *limits;
	uint64_t now;
	double exit_below;        /* of a step for communication: servers are given up; 0: never */
	unsigned children, trees; /* of plans, as in struct planner */
};

/* A plan that is at work. */
struct moving {
	struct plan_wish wish; /* its ranks, as they would ask for the next one */
	const char *plan;
	double rate_bps; /* that it was planned for; 0: not known */
	uint64_t made_at;
	double share;      /* of a step that communication takes; below 0: not known */
	uint64_t since;    /* when it came to the side of the limit where it is; 0: unknown */
	bool has_tried;    /* to do without servers, which was wrong */
	uint64_t links_at; /* when what is known of its ranks' links changed, since it was made and
	                      looked at; 0: it has not */
};

enum move {
	MOVE_NOT,   /* nothing is wrong with this node */
	MOVE_STAYS, /* something is, but the plan is better off with it; `why` says why */
	MOVE_LEAVES /* the node is to leave the plan's trees; `why` says why */
};

enum move mover_judge(const struct mover *mover, const struct moving *moving,
                      const struct node *node, char why[MOVE_WHY]);

/*
 * Are machines that are not the ranks' own worth their use (XAgg §V: it exits where communication
 * takes below a tenth of the step)? They are given up where it would take less also without them,
 * and taken back where it turns out to take much more. MOVE_LEAVES: another plan is to be made, and
 * moving->wish.frugal is what it is to be like no longer.
 */
enum move mover_weigh(const struct mover *mover, const struct moving *moving, char why[MOVE_WHY]);

/*
 * Would other trees be faster, as far as the ranks' links are known by now? Both are reckoned with
 * the same links. MOVE_LEAVES: another plan is to be made; MOVE_STAYS: it is the best already, or
 * nearly, until links_at is another one.
 */
enum move mover_reckon(const struct mover *mover, const struct moving *moving, char why[MOVE_WHY]);

/* The rate of the plan at work, by what is known now; 0: that cannot be said. */
double mover_rate(const struct mover *mover, const struct moving *moving);

/* On which side of the limits the share is: -1 where it is low, 1 where it is high, else 0. */
int mover_side(const struct mover *mover, double share);

#endif
