/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All trees of a small cluster, and the cost of a tree. Counted edge by edge, independently of the
 * planner.
 */
#ifndef TRIB_TEST_PLAN_TREES_H
#define TRIB_TEST_PLAN_TREES_H

#include "plan/cluster/plan.h"

#define TREES_HOSTS_MAX 128
#define NOT_IN -2 /* this host has no aggregator in the tree */

struct plain_tree {
	int parent[TREES_HOSTS_MAX]; /* parent of the aggregator on each host; -1: the root */
	int leaf[TREE_RANKS_MAX];    /* the host that each rank sends to */
};

/* The cost of a tree of rate 1 to each host: in, out, cores. */
typedef double plain_load[TREES_HOSTS_MAX][3];
void plain_cost(const struct plan_host *hosts, unsigned n, bool multicast,
                const struct plain_tree *tree, plain_load load);
/* The rate at which the first host reaches its capacity. */
double plain_rate(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                  plain_load load);
/* NULL if the tree is valid and within limits, else the reason. */
const char *plain_fault(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                        const struct plain_tree *tree);
/* Finds hosts by their addresses. False: one is unknown. */
bool plain_from_tree(const struct plan_host *hosts, unsigned n, const struct tree *tree,
                     struct plain_tree *out);
/*
 * The rate of a forest if its trees are loaded in proportion to their shares; 0: a tree is invalid.
 */
double plain_forest_rate(const struct plan_host *hosts, unsigned n,
                         const struct plan_limits *limits, const struct forest *forest);

/* Calls back with every valid tree within limits. For clusters of a few hosts. */
void plain_each(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                void (*take)(void *context, const struct plain_tree *tree), void *context);
/* The rate of the fastest valid tree. */
double plain_best(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits);

#endif
