/* SPDX-License-Identifier: Apache-2.0 */
/* What no plan can beat, and what one star and a ring would do. */
#ifndef TRIB_PLAN_BOUND_H
#define TRIB_PLAN_BOUND_H

#include "plan/model.h"

struct bound {
	double rate;    /* with any number of trees */
	double within;  /* with as many as the plan may have */
	bool by_worker; /* a worker's own link sets it, else all that may aggregate together */
	unsigned host;  /* that worker's host */
};

/*
 * The highest rate at which the hosts can take away the workers - 1 streams
 * that every tree has to, each counted by the best place it could have. Holds
 * for trees of any form. Adds the hosts looked at to *steps.
 */
struct bound bound_find(const struct model *model, uint64_t *steps);

/* The same with as many trees as the model has, where `rate` is of any number. */
double bound_within(const struct model *model, double rate, uint64_t *steps);

/* The best single aggregator with all workers below it, however many; 0: nobody may be it. */
double bound_star(const struct model *model);
/* Each worker sends and receives 2 (workers - 1) / workers of the vector. */
double bound_ring(const struct model *model);

#endif
