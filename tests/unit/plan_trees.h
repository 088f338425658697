/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All trees of a small cluster, and what a tree costs: counted here once more,
 * edge by edge and by other lines than the planner's.
 */
#ifndef TRIB_TEST_PLAN_TREES_H
#define TRIB_TEST_PLAN_TREES_H

#include "plan/plan.h"

#define TREES_HOSTS_MAX 128
#define NOT_IN -2 /* this tree */

struct plain_tree {
	int parent[TREES_HOSTS_MAX]; /* of the aggregator on each host; -1: the root */
	int leaf[TREE_RANKS_MAX];    /* the host that each rank sends to */
};

/* What a tree of rate 1 costs each host: in, out, cores. */
typedef double plain_load[TREES_HOSTS_MAX][3];
void plain_cost(const struct plan_host *hosts, unsigned n, bool multicast,
                const struct plain_tree *tree, plain_load load);
/* The rate at which the first host is full. */
double plain_rate(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                  plain_load load);
/* NULL where the tree is sound and within limits, else what is wrong. */
const char *plain_fault(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                        const struct plain_tree *tree);
/* By the addresses of hosts; false where one is not known. */
bool plain_from_tree(const struct plan_host *hosts, unsigned n, const struct tree *tree,
                     struct plain_tree *out);
/* The rate of a forest in the proportions of its shares; 0 where a tree of it is not sound. */
double plain_forest_rate(const struct plan_host *hosts, unsigned n,
                         const struct plan_limits *limits, const struct forest *forest);

/* Calls back with every sound tree within limits. For clusters of a handful of hosts. */
void plain_each(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                void (*take)(void *context, const struct plain_tree *tree), void *context);
/* The fastest of them. */
double plain_best(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits);

#endif
