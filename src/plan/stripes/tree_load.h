/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_load: the load that finished trees put on hosts, counted edge by edge and
 * independently of the planner. The rate of a plan, and what limits it, come from here.
 */
#ifndef TRIB_PLAN_STRIPES_TREE_LOAD_H
#define TRIB_PLAN_STRIPES_TREE_LOAD_H

#include "plan/stripes/tree_shape.h"

enum load_what { LOAD_IN, LOAD_OUT, LOAD_CPU };

struct load {
	double in, out, cpu; /* bits a second */
};

struct load_verdict {
	double rate;         /* highest rate of all trees together, in their proportions */
	unsigned host;       /* the host that limits it */
	enum load_what what; /* the resource that limits it */
};

/* Counts a stream of this rate, and its result, between the hosts of a child and its parent. */
void load_edge(const struct model *model, struct load *loads, uint32_t child, uint32_t aggregator,
               double rate);
/* Counts the cores that an aggregator costs its host. */
void load_place(const struct model *model, struct load *loads, uint32_t host, double rate);
/* The tightest limit, and the rate at which it is full, if rate `total` causes these loads. */
struct load_verdict load_judge(const struct model *model, const struct load *loads, double total);

/*
 * The rate of a shape's trees in the proportions of their rates. Scratch: loads[n],
 * leaf[workers] and slots[n].
 */
struct load_verdict load_rate(const struct model *model, const struct shape *shape,
                              struct load *loads, uint32_t *leaf, uint32_t *slots);

/* The rate of existing trees; 0: an aggregator is not among the hosts. */
struct load_verdict load_forest(const struct model *model, const struct forest *forest,
                                struct load *loads);

/*
 * Scales the trees' rates to what hosts can carry, given loads and verdict of load_rate. Then
 * raises one tree after the other by the capacity left on its hosts. Returns the new limit.
 */
struct load_verdict load_raise(const struct model *model, struct shape *shape, struct load *loads,
                               const struct load_verdict *verdict);

/* "h3's 500 Mb/s link in", "s1's 2 cores". */
void load_name(const struct model *model, unsigned host, enum load_what what, char *out,
               size_t size);

#endif
