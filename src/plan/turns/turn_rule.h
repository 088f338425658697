/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn_rule: decides whether an allreduce that is about to start is aggregated, if the jobs
 * of its sharing group must take turns. It uses the next allreduce of each job, which all
 * hosts know, so all hosts decide alike without a message.
 *
 * `smart` is MINA's rule (III-D): no job of the sharing group is being aggregated, and no
 * job whose allreduce would start meanwhile has a higher score.
 * `frugal` differs in three ways. Only jobs whose trees meet this tree count. An allreduce
 * without a gain is not aggregated. The gain also considers that later allreduces will
 * be aggregated too, which is the usual case.
 * `ahead` searches several steps of these jobs, starting with `frugal`
 * (plan/turns/outlook.h).
 */
#ifndef TRIB_PLAN_TURNS_TURN_RULE_H
#define TRIB_PLAN_TURNS_TURN_RULE_H

#include "plan/fabric/sharing_groups.h"
#include "plan/turns/pattern.h"

#include <stdbool.h>

enum turn_policy { TURN_NONE, TURN_GREEDY, TURN_SMART, TURN_FRUGAL, TURN_AHEAD };

/* A job's next allreduce. */
struct turn {
	double start_s; /* its start; INFINITY: the job has no more */
	double fast_s;  /* its duration if aggregated */
	double gain_s;  /* seconds that the step gains by that */
};

/* Weight of the gain with later allreduces aggregated, against the gain without. Two jobs on one
 * aggregator score .952 to .955 with any value from .5 to .95, and .938 with 0. */
#define TURN_OPTIMISM 0.7

/* The turn of an allreduce that starts at `start`, in a step that started at `began`. */
static inline struct turn turn_of(const struct pattern_op *op, double began, double start,
                                  enum turn_policy policy)
{
	double gain = pattern_gain(op, began, start);

	/* The plain gain is the larger one: if it is 0, so is the other. */
	if (policy >= TURN_FRUGAL && gain > 0)
		gain += TURN_OPTIMISM * (pattern_gain_fast(op, began, start) - gain);
	return (struct turn){ .start_s = start, .fast_s = op->fast_s, .gain_s = gain };
}

/* MINA's score: the gain for a second of aggregation, waiting included. */
static inline double turn_score(const struct turn *turn, double now)
{
	return turn->gain_s / (turn->start_s + turn->fast_s - now);
}

/* Does another job's turn score higher and start before mine ends? */
static inline bool turn_yields(const struct turn *mine, double mine_score, const struct turn *other,
                               double now)
{
	return other->start_s < now + mine->fast_s && turn_score(other, now) > mine_score;
}

/*
 * Is an allreduce that starts now, and whose tree is free, aggregated? `turns` has the next
 * allreduce of each slot, this one's included.
 */
static inline bool turn_is_mine(const struct groups *groups, const struct turn *turns,
                                uint32_t slot, enum turn_policy policy, double now)
{
	const struct turn *mine = &turns[slot];
	double score;

	if (policy <= TURN_GREEDY)
		return policy == TURN_GREEDY;
	if (groups->next[slot] == slot)
		return true;
	if (policy >= TURN_FRUGAL && !(mine->gain_s > 0))
		return false;
	score = turn_score(mine, now);
	for (uint32_t other = groups->next[slot]; other != slot; other = groups->next[other])
		if (turn_yields(mine, score, &turns[other], now) &&
		    (policy < TURN_FRUGAL || groups_meet(groups, slot, other)))
			return false;
	return true;
}

#endif
