/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a running job should migrate to other trees (XAgg §V). Pure.
 *
 * A migration costs the ranks a fraction of a second. So it takes a reason that has lasted
 * (MIGRATION_LASTED_NS), a gain that is worth it (MIGRATION_GAIN_MIN), and some time since the last
 * plan (MIGRATION_REST_NS). This keeps a job from going back and forth.
 */
#ifndef TRIB_CONTROL_POLICY_MIGRATION_POLICY_H
#define TRIB_CONTROL_POLICY_MIGRATION_POLICY_H

#include "control/policy/planner.h"

#define MIGRATION_LASTED_NS (2000 * 1000000ull) /* 2 s: a reason must have lasted this long */
#define MIGRATION_REST_NS (10000 * 1000000ull)  /* 10 s: a younger plan is left alone */
#define MIGRATION_GAIN_MIN 1.1                  /* the new trees must be this many times as fast */
#define MIGRATION_LOADED_RATE 0.5 /* part of its rate that a plan keeps while a node is loaded */
#define MIGRATION_BACK_FACTOR 2.0 /* times exit_below: above it, a job gets servers back */
#define MIGRATION_WHY_MAX 160

struct migration_policy {
	const struct nodes *nodes;
	const struct node_limits *limits;
	uint64_t now;
	double exit_below; /* share of a step; a job that communicates less gives up servers; 0: off
	                    */
	unsigned children, trees; /* limits of plans, as in struct planner */
};

struct running_plan {
	struct plan_wish wish; /* its ranks, as they would ask for the next plan */
	const char *plan;
	double rate_bps; /* the rate that it was planned for; 0: unknown */
	uint64_t made_at;
	double share;              /* part of a step that communication takes; below 0: unknown */
	uint64_t since;            /* when `share` crossed a limit: migration_side; 0: unknown */
	bool tried_frugal;         /* a plan without servers was tried and was too slow */
	uint64_t links_changed_at; /* when estimates of its links last changed; 0: not since the
	                              last decision */
};

enum migration_decision {
	MIGRATION_NONE, /* there is no reason to leave the node */
	MIGRATION_STAY, /* there is a reason, but the plan is better off with the node */
	MIGRATION_LEAVE /* the node has to leave the plan's trees */
};

/* Is the node drained or loaded? `why` is set unless the result is MIGRATION_NONE. */
enum migration_decision migration_judge_node(const struct migration_policy *policy,
                                             const struct running_plan *running,
                                             const struct node *node, char why[MIGRATION_WHY_MAX]);

/*
 * Are servers (machines on which no rank runs) worth their use? XAgg §V gives them up if
 * communication takes less than a tenth of a step. They are given up if communication stays below
 * the limit without them, too. They are taken back if it turns out to take much more.
 * MIGRATION_LEAVE: make another plan, with wish.frugal inverted.
 */
enum migration_decision migration_judge_servers(const struct migration_policy *policy,
                                                const struct running_plan *running,
                                                char why[MIGRATION_WHY_MAX]);

/*
 * Would other trees be faster, by what is known of links now? Both rates are computed with the same
 * links. MIGRATION_LEAVE: make another plan. MIGRATION_STAY: the trees are good enough until
 * links_changed_at changes.
 */
enum migration_decision migration_judge_links(const struct migration_policy *policy,
                                              const struct running_plan *running,
                                              char why[MIGRATION_WHY_MAX]);

/* The rate of the running plan by what is known now; 0: unknown. */
double migration_rate(const struct migration_policy *policy, const struct running_plan *running);

/* -1: the share is below exit_below; 1: above MIGRATION_BACK_FACTOR times it; 0: between, or
 * unknown. */
int migration_side(double exit_below, double share);

#endif
