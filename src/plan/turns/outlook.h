/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/turns owns the decision which job is aggregated when several share an aggregator. It
 * must not touch hosts or trees: jobs are steps of known length to it.
 *
 * outlook: plans the next turns of the jobs that share an aggregator.
 *
 * It simulates the jobs for some steps ahead, from the known pattern of their steps, in
 * many variants (plan/turns/rollout.h): every allreduce decided by turn_rule.h; every
 * allreduce aggregated that finds a place; and, for the next allreduces that conflict, both
 * with and without aggregation, keeping the best few. It picks the variant in which all
 * jobs together end least late.
 *
 * The result is ranges of allreduce numbers. Hosts agree on these ahead of time, so no
 * allreduce waits for a message.
 */
#ifndef TRIB_PLAN_TURNS_OUTLOOK_H
#define TRIB_PLAN_TURNS_OUTLOOK_H

#include "plan/turns/pattern.h"

#include <stdbool.h>

#define OUTLOOK_JOBS 16u

/* A job as it is now; times in seconds on one clock. */
struct outlook_job {
	const struct pattern *pattern;
	double began_s; /* start of its step */
	double pace;    /* of its step, as in pattern_step_s */
	unsigned at;    /* the first allreduce that has not started; pattern->n: all have */
	double free_s;  /* end of the allreduces that have started */
	double fixed_s; /* an allreduce that starts before this is too soon to agree on */
	bool holds;     /* it has a turn now */
	unsigned given; /* the first allreduce after its present turn */
};

struct outlook {
	unsigned capacity;
	double now_s;
	double handover_s; /* idle time of the aggregator between two jobs */
	/*
	 * Steps vary, so an allreduce without a predicted gain may gain after all: it is
	 * aggregated if that is in the way of no other job.
	 */
	bool varies;
};

/* The next turn of a job: allreduces [from, to) of a step. */
struct outlook_turn {
	unsigned step;     /* 0: the present step, 1: the next ... */
	unsigned from, to; /* equal: no turn */
	double begin_s, end_s;
};

/* For n jobs, at most OUTLOOK_JOBS. */
void outlook_plan(const struct outlook *outlook, const struct outlook_job *jobs, unsigned n,
                  struct outlook_turn *turns);

#endif
