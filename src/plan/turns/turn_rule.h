/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn_rule: decides whether an allreduce that is about to start is aggregated, if the jobs
 * of its sharing group must take turns. It uses the next allreduce of each job, which all
 * hosts know, so all hosts decide alike without a message.
 *
 * `smart` is MINA's rule (III-D): no job of the sharing group is being aggregated, and no
 * job whose allreduce would start meanwhile has a higher score.
 * `frugal` differs in four ways. Only jobs whose trees meet this tree count. An allreduce
 * without a gain is not aggregated, if that could be in the way of another. The gain also considers
 * that later allreduces will be aggregated too, which is the usual case. And it follows the pace of
 * the present step: an allreduce that starts early tells that the others of its step will be early
 * too, so the predicted gain is right also if steps vary. `ahead` searches several steps of these
 * jobs, starting with `frugal` (plan/turns/outlook.h).
 */
#ifndef TRIB_PLAN_TURNS_TURN_RULE_H
#define TRIB_PLAN_TURNS_TURN_RULE_H

#include "plan/fabric/fabric.h"
#include "plan/fabric/sharing_groups.h"
#include "plan/turns/pattern.h"

#include <math.h>
#include <stdbool.h>

enum turn_policy { TURN_NONE, TURN_GREEDY, TURN_SMART, TURN_FRUGAL, TURN_AHEAD };

/* A job's next allreduce. */
struct turn {
	double start_s; /* its start; INFINITY: the job has no more */
	double fast_s;  /* its duration if aggregated */
	double gain_s;  /* seconds that the step gains by that */
};

/* What is known of a job's next allreduce, before it starts. */
struct turn_next {
	const struct pattern *pattern; /* NULL: the job has no more */
	unsigned op;
	double began_s; /* start of its step */
	double free_s;  /* end of the allreduce before it */
	double pace;    /* of its step, as in pattern_step_s; 1: unknown */
};

/* The jobs that share a fabric, by slot. */
struct turn_table {
	const struct groups *groups;
	const struct fabric *fabric;
	const uint32_t *in_use; /* by resource: allreduces that use it now */
	const struct turn_next *next;
	bool is_exclusive; /* every link and switch serves one job at a time, as in MINA */
};

/* Weight of the gain with later allreduces aggregated, against the gain without. Two jobs on one
 * aggregator score .952 to .955 with any value from .5 to .95, and .938 with 0. */
#define TURN_OPTIMISM 0.7

/* The turn of an allreduce that starts at `start`, in a step that started at `began`. */
static inline struct turn turn_of(const struct pattern_op *op, double began, double start,
                                  double pace, enum turn_policy policy)
{
	double gain = pattern_gain(op, began, start, pace);

	/* The plain gain is the larger one: if it is 0, so is the other. */
	if (policy >= TURN_FRUGAL && gain > 0)
		gain += TURN_OPTIMISM * (pattern_gain_fast(op, began, start, pace) - gain);
	return (struct turn){ .start_s = start, .fast_s = op->fast_s, .gain_s = gain };
}

/* As `policy` sees it. */
static inline double turn_pace(const struct turn_next *next, enum turn_policy policy)
{
	return policy >= TURN_FRUGAL ? next->pace : 1;
}

/* The turn of an allreduce that starts now. */
static inline struct turn turn_now(const struct turn_next *next, enum turn_policy policy,
                                   double now)
{
	return turn_of(&next->pattern->ops[next->op], next->began_s, now, turn_pace(next, policy),
	               policy);
}

/* The turn of a job's next allreduce, which has not started yet. */
static inline struct turn turn_foresee(const struct turn_next *next, enum turn_policy policy,
                                       double now)
{
	const struct pattern_op *op;
	double ready;

	if (!next->pattern)
		return (struct turn){ .start_s = INFINITY };
	op = &next->pattern->ops[next->op];
	ready = next->began_s + turn_pace(next, policy) * op->start_s;
	return turn_now(next, policy, fmax(fmax(next->free_s, ready), now));
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
 * The share that another job would take of the free places where its tree meets this one: 1 if
 * there is one place; 0 if the trees do not meet, or only where there is a place for every tree.
 * Jobs whose shares add up to 1 leave no place.
 */
static inline double turn_share(const struct turn_table *table, uint32_t slot, uint32_t other)
{
	const struct groups *groups = table->groups;
	uint32_t least = UINT32_MAX;

	for (uint32_t i = 0, k = 0; i < groups->tree_n[slot] && k < groups->tree_n[other];) {
		uint32_t left = groups->tree[slot][i], right = groups->tree[other][k];

		if (left == right) {
			uint32_t places = fabric_capacity(table->fabric, left);

			if (groups->users[left] > places && places - table->in_use[left] < least)
				least = places - table->in_use[left];
		}
		i += left <= right;
		k += right <= left;
	}
	return least < UINT32_MAX ? 1.0 / (least ? least : 1) : 0;
}

#define TURN_FULL 0.9999 /* 1, but for the rounding of a sum */

/*
 * Is an allreduce that starts now, and whose tree is free, aggregated? table->next has the next
 * allreduce of each slot, this one's included.
 */
static inline bool turn_is_mine(const struct turn_table *table, uint32_t slot,
                                enum turn_policy policy, double now)
{
	const struct groups *groups = table->groups;
	bool all_meet = policy < TURN_FRUGAL && table->is_exclusive;
	double score, taken = 0;
	struct turn mine;

	if (policy <= TURN_GREEDY)
		return policy == TURN_GREEDY;
	if (groups->next[slot] == slot)
		return true;
	mine = turn_now(&table->next[slot], policy, now);
	score = turn_score(&mine, now);
	for (uint32_t other = groups->next[slot]; other != slot && taken < TURN_FULL;
	     other = groups->next[other]) {
		struct turn turn = turn_foresee(&table->next[other], policy, now);
		double share = all_meet ? 1 : turn_share(table, slot, other);

		if (share > 0 && policy >= TURN_FRUGAL && !(mine.gain_s > 0))
			return false;
		if (turn_yields(&mine, score, &turn, now))
			taken += share;
	}
	return taken < TURN_FULL;
}

#endif
