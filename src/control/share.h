/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets the next turn at a shared aggregator, and for which requests. Pure:
 * from what jobs have told of their steps, and of how far they are, to a choice.
 *
 * `greedy`: who could use it first, for the rest of his step. `fair`: of those,
 * who has had the least. `score`: for each request, who gains most for a second
 * of the aggregator (MINA III-D, plan/turn.h, which the simulator has too), found
 * ahead for all jobs together (plan/outlook.h), so that a turn is known by the
 * numbers of its requests before they begin. `none`: nobody.
 */
#ifndef TRIB_CONTROL_SHARE_H
#define TRIB_CONTROL_SHARE_H

#include "plan/pattern.h"
#include "wire/packet.h"

#include <stdbool.h>

/* In the order of the words of TRIB_SHARING. */
enum share_policy { SHARE_SCORE, SHARE_GREEDY, SHARE_FAIR, SHARE_NONE, SHARE_POLICIES_END };

const char *share_policy_name(enum share_policy sharing);

/* A job as it was told by its rank 0; times in nanoseconds on one clock. */
struct share_job {
	unsigned ops; /* of a step; 0: not known */
	struct wire_turn_op op[WIRE_TURN_OPS_MAX];
	uint64_t compute;
	uint64_t base, next, finished; /* requests: of the step's first, not begun, not over */
	uint64_t began_at;             /* the step */
	uint64_t busy_at; /* since when the request is under way that ends next; 0: none is */
	bool fast;        /* what is under way is at the aggregator */
	uint64_t used;    /* how long it has had turns */
	uint64_t wants_since;
	/* Its turn, where it has one. */
	bool held;
	uint64_t held_to;
	bool open;         /* it may be given a turn, or more of the one it has */
	uint64_t agree_ns; /* so long its ranks take to agree */
	uint64_t early_ns; /* ... and so much sooner than it is foretold may requests begin */
	/* share_learn: what was told, in the terms of plans. */
	struct pattern pattern;
	struct pattern_op pattern_ops[WIRE_TURN_OPS_MAX];
};

/* Its ops and compute have been told. */
void share_learn(struct share_job *job);

/* A turn that is to be given: these requests. */
struct share_move {
	unsigned job;
	uint64_t from, to;
};

/* What is to be done now; false: nothing. */
bool share_decide(struct share_job *const *jobs, unsigned n, enum share_policy sharing,
                  unsigned capacity, uint64_t now, struct share_move *move);

#endif
