/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollout: one simulated future of the jobs that share an aggregator. Each job runs its
 * allreduces, and for each one the caller decides whether it is aggregated. A rollout's
 * cost at any moment is how late all jobs would end if each had the aggregator alone from
 * then on.
 */
#ifndef TRIB_PLAN_TURNS_ROLLOUT_H
#define TRIB_PLAN_TURNS_ROLLOUT_H

#include "plan/turns/outlook.h"

/* The jobs, and the places at their aggregator. */
struct rollout_set {
	const struct outlook *outlook;
	const struct outlook_job *jobs;
	unsigned n, places;
};

/* The simulated state of a job. */
struct rollout_runner {
	double began; /* start of the step */
	double free;  /* end of the last allreduce */
	double begin; /* start of the allreduce `at` */
	double late;  /* earliest end of the step, less the ideal time of its steps */
	unsigned at, step;
	bool is_known; /* its next turn is decided */
	struct outlook_turn turn;
};

/* A place at the aggregator. */
struct rollout_slot {
	double until;
	unsigned owner; /* job; n: free */
};

struct rollout {
	double late;   /* sum over all jobs */
	unsigned next; /* the job whose allreduce starts first */
	struct rollout_runner runner[OUTLOOK_JOBS];
	struct rollout_slot slots[OUTLOOK_JOBS];
};

/* The pace of the job's simulated step. Only that of its present step is known. */
static inline double rollout_pace(const struct rollout_set *set, const struct rollout_runner *it,
                                  unsigned j)
{
	return it->step ? 1 : set->jobs[j].pace;
}

/* Starts from the present state. */
void rollout_begin(const struct rollout_set *set, struct rollout *rollout);

/* Is the next allreduce part of a turn that is already granted? */
bool rollout_is_given(const struct rollout_set *set, const struct rollout *rollout);
/* A place where the next allreduce can be aggregated with a gain; NULL: none. */
const struct rollout_slot *rollout_slot(const struct rollout_set *set,
                                        const struct rollout *rollout);
/* Number of free places for the next allreduce. */
unsigned rollout_places(const struct rollout_set *set, const struct rollout *rollout);
/* Would another job start an allreduce meanwhile and find no place? */
bool rollout_is_contested(const struct rollout_set *set, const struct rollout *rollout);

/* Runs the next allreduce of `from`, aggregated at `slot` or not (NULL); `rollout` may be `from`.
 */
void rollout_advance(const struct rollout_set *set, struct rollout *rollout,
                     const struct rollout *from, const struct rollout_slot *slot);
/* Are two rollouts in the same state? */
bool rollout_is_same(const struct rollout_set *set, const struct rollout *a,
                     const struct rollout *b);

/* The smallest gain that counts, as a share of a step's computation. */
#define ROLLOUT_GAIN_LEAST 1e-4

#endif
