/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kary: XAgg's k-ary tree (§V), one tree of idle servers, built from the workers up. The
 * first server gets k workers, and its link rate divided by k is the reference rate. Other
 * servers get as many children as their links can carry at that rate. An aggregator with a
 * single child only adds delay and is left out.
 */
#ifndef TRIB_PLAN_STRIPES_KARY_H
#define TRIB_PLAN_STRIPES_KARY_H

#include "plan/cluster/plan.h"

#define KARY_MIN 2u
#define KARY_MAX 64u   /* largest k that the search tries; the paper stops at 5 */
#define KARY_CHOOSE -1 /* as the root: pick the best candidate */

struct kary_node {
	uint32_t host;
	uint32_t parent; /* index of a later node; the root is last and its own parent */
};

/* Memory is the caller's: nodes[n], leaf[n], for n hosts. */
struct kary {
	unsigned k, n_nodes, n_workers;
	unsigned depth; /* most aggregators from a worker to the root */
	struct kary_node *nodes;
	uint32_t *leaf;  /* the node of each rank */
	double rate_bps; /* predicted rate; 0: there is no such tree */
	uint64_t steps;  /* hosts examined; shows how the work grows */
};

/* Bytes of work memory for n hosts, beside the tree's. */
size_t kary_work_bytes(unsigned n);

/*
 * The tree for one k. With k = 0: the fastest tree for k from KARY_MIN to KARY_MAX or the
 * number of workers. Ties go to the fewest aggregators, then to the smallest k. Trees
 * deeper than the limit are skipped. `root` is a host or KARY_CHOOSE.
 */
trib_status kary_plan(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                      unsigned k, int root, void *work, size_t work_bytes, struct kary *out);

/* Converts it to a forest of one tree, for up to TREE_RANKS_MAX workers. */
trib_status kary_forest(const struct plan_host *hosts, const struct kary *kary, struct forest *out);

#endif
