/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XAgg's k-ary tree (§V): one tree of idle servers, built from the workers up.
 * The first server gets k workers, and what its link gives each of them is the
 * reference rate; others get as many children as their links have of it. An
 * aggregator with a single child would only delay, so it is left out.
 */
#ifndef TRIB_PLAN_KARY_H
#define TRIB_PLAN_KARY_H

#include "plan/plan.h"

#define KARY_MIN 2u
#define KARY_MAX 64u   /* that is tried where k is to be found; the paper has 5 */
#define KARY_CHOOSE -1 /* for the root: the best candidate */

struct kary_node {
	uint32_t host;
	uint32_t parent; /* a node after it; the root, which is the last, is its own */
};

/* Memory is the caller's: nodes[n], leaf[n], for n hosts. */
struct kary {
	unsigned k, n_nodes, n_workers;
	unsigned depth; /* aggregators from a worker to the root, at most */
	struct kary_node *nodes;
	uint32_t *leaf;  /* the node of each rank */
	double rate_bps; /* predicted; 0: there is no such tree */
	uint64_t steps;  /* hosts looked at, to see how the work grows */
};

/* Bytes of work memory that n hosts need, beside the tree's. */
size_t kary_work_bytes(unsigned n);

/*
 * The tree for one k, or with k = 0 the fastest for k from KARY_MIN to KARY_MAX or the
 * number of workers: where several are as fast, of the fewest aggregators, and then of
 * the smallest k; none that is deeper than the limit. `root` is a host or KARY_CHOOSE.
 */
trib_status kary_plan(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                      unsigned k, int root, void *work, size_t work_bytes, struct kary *out);

/* As a forest of one tree, for up to TREE_RANKS_MAX workers. */
trib_status kary_forest(const struct plan_host *hosts, const struct kary *kary, struct forest *out);

#endif
