/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which job gets the next turn at a shared aggregator, and for which requests. Pure: the
 * input is what jobs have reported of their steps and progress.
 *
 *   greedy   the job that can use the aggregator first, for the rest of its step
 *   fair     of these jobs, the one that has used it least
 *   score    for each request, the job that gains most per second of the aggregator (MINA III-D,
 *            plan/turns/turn_rule.h; the simulator has the same rule). All jobs are planned ahead
 *            together (plan/turns/outlook.h), so a turn's requests are known before they begin.
 *   none     no job
 */
#ifndef TRIB_CONTROL_POLICY_TURN_POLICY_H
#define TRIB_CONTROL_POLICY_TURN_POLICY_H

#include "plan/turns/pattern.h"
#include "wire/packet.h"

#include <stdbool.h>

/* In the order of the values of TRIB_SHARING. */
enum turn_policy {
	TURN_POLICY_SCORE,
	TURN_POLICY_GREEDY,
	TURN_POLICY_FAIR,
	TURN_POLICY_NONE,
	TURN_POLICIES_END
};

const char *turn_policy_name(enum turn_policy policy);

/* A job as its rank 0 reports it. Times are nanoseconds of the controller's clock. */
struct turn_job {
	unsigned ops; /* requests of a step; 0: unknown */
	struct wire_turn_op op[WIRE_TURN_OPS_MAX];
	uint64_t compute;
	uint64_t base, next,
		finished;  /* request numbers: first of the step, next to begin, next to finish */
	uint64_t began_at; /* when the step began */
	uint64_t busy_at;  /* when the oldest request in flight began; 0: none in flight */
	bool fast;         /* requests in flight use the aggregator */
	uint64_t used;     /* total time of its turns */
	uint64_t wants_since;
	/* Its turn, if it has one. */
	bool held;
	uint64_t held_to;
	bool open;         /* it may get a turn, or an extension of its turn */
	uint64_t agree_ns; /* time that its ranks take to agree on a turn */
	uint64_t early_ns; /* requests may begin sooner than predicted by this time */
	/* Made by turn_policy_learn from `op` and `compute`. */
	double spread; /* mean change of the computation, as a share of it, where it changed */
	struct pattern pattern;
	struct pattern_op pattern_ops[WIRE_TURN_OPS_MAX];
};

/* To be called when `op` or `compute` has changed. */
void turn_policy_learn(struct turn_job *job);

/* A turn to be granted: requests [from, to) of jobs[job]. */
struct turn_grant {
	unsigned job;
	uint64_t from, to;
};

/* False: no turn is to be granted now. */
bool turn_policy_decide(struct turn_job *const *jobs, unsigned n, enum turn_policy policy,
                        unsigned capacity, uint64_t now, struct turn_grant *grant);

#endif
