/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One way in which jobs that share an aggregator may go on, on paper: each runs
 * its allreduces, and for each that begins somebody says whether it is
 * aggregated. How good a way is can be seen at any moment: how late all are, if
 * they had the aggregator for themselves from there on.
 */
#ifndef TRIB_PLAN_WAY_H
#define TRIB_PLAN_WAY_H

#include "plan/outlook.h"

/* Who goes on, and where. */
struct way_set {
	const struct outlook *outlook;
	const struct outlook_job *jobs;
	unsigned n, places;
};

/* A job as it runs on. */
struct way_runner {
	double began, free, begin; /* begin: of the allreduce `at` */
	double late; /* when the step ends at best, less what its steps take at best */
	unsigned at, step;
	bool is_known; /* its turn */
	struct outlook_turn turn;
};

/* A place at the aggregator. */
struct way_slot {
	double until;
	unsigned owner; /* n: nobody */
};

struct way {
	double late;   /* all jobs together */
	unsigned next; /* whose allreduce begins first */
	struct way_runner runner[OUTLOOK_JOBS];
	struct way_slot slots[OUTLOOK_JOBS];
};

/* As it is now. */
void way_begin(const struct way_set *set, struct way *way);

/* Is the next allreduce one that was agreed on? */
bool way_is_given(const struct way_set *set, const struct way *way);
/* Where the next allreduce can be aggregated, and would gain by it; NULL: nowhere. */
const struct way_slot *way_slot(const struct way_set *set, const struct way *way);
/* So many places are free for it. */
unsigned way_places(const struct way_set *set, const struct way *way);
/* Will others begin something meanwhile, and find no place? */
bool way_is_contested(const struct way_set *set, const struct way *way);

/* The next allreduce of `from`, aggregated there or not; `way` may be `from`. */
void way_advance(const struct way_set *set, struct way *way, const struct way *from,
                 const struct way_slot *slot);
/* Is it the same from here on? */
bool way_is_same(const struct way_set *set, const struct way *a, const struct way *b);

/* What is not worth having: of a step's computation. */
#define WAY_GAIN_LEAST 1e-4

#endif
