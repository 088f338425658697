/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is: whether an allreduce that is about to begin is aggregated,
 * where jobs of a sharing group may not be at once. Known of each job is its
 * next allreduce; nothing is asked of anybody, so all hosts of all jobs come to
 * the same answer.
 *
 * `smart` is MINA's (III-D): nobody in the group is being aggregated, and no
 * job's next allreduce that would begin meanwhile has a higher score. `frugal`
 * differs in three things: only jobs whose trees meet this one are in its way
 * or compared with it; what gains nothing is not aggregated; and the gain is in
 * part the one that remains if later allreduces are aggregated as well, which is
 * what happens most of the time. `ahead` is a search over several steps of all
 * those jobs, which begins with that rule: plan/outlook.h.
 */
#ifndef TRIB_PLAN_TURN_H
#define TRIB_PLAN_TURN_H

#include "plan/groups.h"
#include "plan/pattern.h"

#include <stdbool.h>

enum turn_policy { TURN_NONE, TURN_GREEDY, TURN_SMART, TURN_FRUGAL, TURN_AHEAD };

/* A job's next allreduce. */
struct turn {
	double start_s; /* when it will begin; INFINITY: the job has no more */
	double fast_s;  /* how long it takes aggregated */
	double gain_s;  /* by how much sooner the step ends then */
};

/* Of the two predictions, how much of the one with later allreduces aggregated: two jobs on one
 * aggregator score .952 to .955 with anything from .5 to .95, and .938 with 0. */
#define TURN_OPTIMISM 0.7

/* An allreduce that will begin at `start` of a step that began at `began`. */
static inline struct turn turn_of(const struct pattern_op *op, double began, double start,
                                  enum turn_policy policy)
{
	double gain = pattern_gain(op, began, start);

	/* Without later ones aggregated it is at least as much: nothing is nothing. */
	if (policy >= TURN_FRUGAL && gain > 0)
		gain += TURN_OPTIMISM * (pattern_gain_fast(op, began, start) - gain);
	return (struct turn){ .start_s = start, .fast_s = op->fast_s, .gain_s = gain };
}

/* MINA's score: what a second of aggregation is worth, waiting for it included. */
static inline double turn_score(const struct turn *turn, double now)
{
	return turn->gain_s / (turn->start_s + turn->fast_s - now);
}

/* Whether another job's turn is worth more than mine and would begin before mine is over. */
static inline bool turn_yields(const struct turn *mine, double mine_score, const struct turn *other,
                               double now)
{
	return other->start_s < now + mine->fast_s && turn_score(other, now) > mine_score;
}

/*
 * Whether an allreduce that begins now, and whose tree is free, is aggregated.
 * `turns` has the next allreduce of each slot, this one's among them.
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
