/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turns that jobs which share an aggregator will have next. From what is known
 * of their steps they run on, on paper, for some steps, in many ways (plan/way.h):
 * each allreduce decided on as turn.h has it; all aggregated that find a place; and,
 * for the next ones of which two jobs are in each other's way, both with and
 * without, of which the best few are kept. The way is taken in which all jobs
 * together are least late at the end.
 *
 * What comes out is ranges of allreduces by number. Hosts can agree on those
 * ahead, so nobody has to be asked when one begins.
 */
#ifndef TRIB_PLAN_OUTLOOK_H
#define TRIB_PLAN_OUTLOOK_H

#include "plan/pattern.h"

#include <stdbool.h>

#define OUTLOOK_JOBS 16u

/* A job as it is now; times in seconds on one clock. */
struct outlook_job {
	const struct pattern *pattern;
	double began_s; /* its step */
	unsigned at;    /* the first allreduce that has not begun; pattern->n: all have */
	double free_s;  /* when those that have begun will be over */
	double fixed_s; /* what begins before then is too soon to be agreed on */
	bool holds;     /* it has the aggregator */
	unsigned given; /* ... for those below this one */
};

struct outlook {
	unsigned capacity;
	double now_s;
	double handover_s; /* so long the aggregator is nobody's, from one job to another */
};

/* What a job will have next. */
struct outlook_turn {
	unsigned step;     /* 0: of this step, 1: of the next ... */
	unsigned from, to; /* allreduces; the same: nothing */
	double begin_s, end_s;
};

/* At most OUTLOOK_JOBS of them. */
void outlook_plan(const struct outlook *outlook, const struct outlook_job *jobs, unsigned n,
                  struct outlook_turn *turns);

#endif
