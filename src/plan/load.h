/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What trees cost: counted from the finished trees, edge by edge, and not from
 * how they were made. The rate of a plan, and what limits it, come from here.
 */
#ifndef TRIB_PLAN_LOAD_H
#define TRIB_PLAN_LOAD_H

#include "plan/shape.h"

enum load_what { LOAD_IN, LOAD_OUT, LOAD_CPU };

struct load {
	double in, out, cpu; /* bits a second */
};

struct load_verdict {
	double rate;   /* of all trees together, at most, in their proportions */
	unsigned host; /* what limits it */
	enum load_what what;
};

/* Counts a stream of this rate, and its result, between a child's host and its aggregator's. */
void load_edge(const struct model *model, struct load *loads, uint32_t child, uint32_t aggregator,
               double rate);
/* Counts what an aggregator costs its host beside its edges. */
void load_place(const struct model *model, struct load *loads, uint32_t host, double rate);
/* What limits most, and the rate at which it would be full, if `total` costs these loads. */
struct load_verdict load_judge(const struct model *model, const struct load *loads, double total);

/*
 * Scratch is loads[n], leaf[workers] and slots[n]. Trees keep their
 * proportions: rates are what a shape's trees would like.
 */
struct load_verdict load_rate(const struct model *model, const struct shape *shape,
                              struct load *loads, uint32_t *leaf, uint32_t *slots);

/* The same of trees that there are already; rate 0: one of their aggregators is none of the hosts'.
 */
struct load_verdict load_forest(const struct model *model, const struct forest *forest,
                                struct load *loads);

/*
 * Sets the trees' rates to what hosts can carry, given loads and verdict of load_rate, and then
 * raises one tree after the other by what its hosts have left. Returns what limits now.
 */
struct load_verdict load_raise(const struct model *model, struct shape *shape, struct load *loads,
                               const struct load_verdict *verdict);

/* "h3's 500 Mb/s link in", "s1's 2 cores". */
void load_name(const struct model *model, unsigned host, enum load_what what, char *out,
               size_t size);

#endif
