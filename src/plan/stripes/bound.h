/* SPDX-License-Identifier: Apache-2.0 */
/* bound: upper bounds on the rate of any plan, and the rates of a star and of a ring. */
#ifndef TRIB_PLAN_STRIPES_BOUND_H
#define TRIB_PLAN_STRIPES_BOUND_H

#include "plan/stripes/model.h"

struct bound {
	double rate;    /* for any number of trees */
	double within;  /* for the allowed number of trees */
	bool by_worker; /* true: a worker's link sets it; false: all aggregating hosts together do
	                 */
	unsigned host;  /* if by_worker: that worker's host */
};

/*
 * The highest rate at which the hosts can absorb the workers - 1 streams of every tree, each
 * host counted with its cheapest place. Holds for trees of any shape. Adds the examined
 * hosts to *steps.
 */
struct bound bound_find(const struct model *model, uint64_t *steps);

/* The bound for the model's number of trees; `rate` is the bound for any number. */
double bound_within(const struct model *model, double rate, uint64_t *steps);

/* The rate of the best star, whatever its fan-in; 0: no host may aggregate. */
double bound_star(const struct model *model);
/* The rate of a ring: each worker sends and receives 2 (workers - 1) / workers of the vector. */
double bound_ring(const struct model *model);

#endif
