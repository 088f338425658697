/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/cluster owns hosts with their links, cores and memory, and which of them may
 * aggregate. It must not touch the search for trees, which is in plan/stripes.
 *
 * plan: the planner's interface. It turns the idle resources of hosts into trees and
 * shares.
 *
 * The model:
 * - A host's NIC is full duplex, with a rate in and a rate out. The network between NICs
 *   is not a limit.
 * - In a tree of rate x, a child sends x to its aggregator and receives x of results.
 * - Traffic within a host (a worker below the aggregator of its own host) costs no NIC.
 * - A result costs the aggregator one send for each remote child, or a single send if the
 *   network copies (multicast).
 * - A core of an aggregator adds core_bps of its children's data.
 * - A switch has its own port for each neighbour, each with in_bps and out_bps.
 * - Trees divide the fragments. A worker is in all trees, and the rate of an allreduce is
 *   the sum of the trees' rates.
 */
#ifndef TRIB_PLAN_CLUSTER_PLAN_H
#define TRIB_PLAN_CLUSTER_PLAN_H

#include "plan/tree/tree.h"

#include <stddef.h>
#include <stdint.h>

#define PLAN_SENTENCE 256
#define PLAN_CORE_BPS 10e9 /* bits a second that one core adds and forwards (XAgg §VI-B) */
#define PLAN_HOSTS_MAX 65536u
#define PLAN_TREES_MAX 256u /* a forest holds FOREST_TREES_MAX of these */

struct plan_host {
	const char *name;    /* for people: "h3" */
	const char *address; /* where its aggregator listens, as in the text of trees */
	double in_bps, out_bps;
	double idle_cores;
	uint64_t memory_total, memory_used; /* bytes; total 0: unknown */
	int rank;                           /* the worker on this host; -1: none */
	bool may_aggregate;
	bool is_switch; /* has a port for each neighbour instead of one NIC; never a worker */
	double round_s; /* duration of its first round, training and transmission; 0: unknown */
};

struct plan_limits {
	unsigned trees;       /* most trees */
	unsigned children;    /* most children of an aggregator, at least 2 */
	unsigned depth;       /* most aggregators from a worker to the root */
	double core_bps;      /* bits a second that one idle core adds */
	uint64_t model_bytes; /* memory that an aggregator must have free */
	bool multicast;       /* the network copies results */
};

#define PLAN_LIMITS_DEFAULT                                                         \
	(struct plan_limits)                                                        \
	{                                                                           \
		.trees = FOREST_TREES_MAX, .children = 64, .depth = TREE_DEPTH_MAX, \
		.core_bps = PLAN_CORE_BPS                                           \
	}

/* Rates are in bits of the vector a second: a vector of v bytes takes 8 v / rate. */
struct plan_verdict {
	double bound_bps;     /* upper bound for any number of trees */
	double within_bps;    /* upper bound for the allowed number of trees */
	double rate_bps;      /* the plan's rate */
	double star_bps;      /* rate of the best single star */
	double ring_bps;      /* rate of a ring allreduce between the workers */
	unsigned workers;     /* hosts with a worker */
	unsigned aggregators; /* hosts that aggregate in this plan */
	unsigned trees, depth;
	uint64_t steps;              /* hosts examined; shows how the work grows */
	char limit[PLAN_SENTENCE];   /* what keeps the plan from being faster */
	char bounded[PLAN_SENTENCE]; /* what sets the bound */
};

/* Bytes of work memory for n hosts. */
size_t plan_work_bytes(unsigned n, const struct plan_limits *limits);

/*
 * Plans trees and shares. Ranks are 0 to workers - 1. `out` may be NULL. It must be NULL if
 * there are more than TREE_RANKS_MAX workers or if more trees are allowed than a forest
 * holds; the verdict is that of the same plan. An error names the wrong host, or says that
 * no host may aggregate.
 */
trib_status plan_stripes(const struct plan_host *hosts, unsigned n,
                         const struct plan_limits *limits, void *work, size_t work_bytes,
                         struct forest *out, struct plan_verdict *verdict);

/*
 * The rate of existing trees with the hosts as they are now. 0: an aggregator is not among the
 * hosts, or may not aggregate.
 */
double plan_rate(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                 const struct forest *forest, void *work, size_t work_bytes);

/* Seconds that a vector takes at a rate; INFINITY at rate 0. */
double plan_seconds(uint64_t bytes, double bps);

#endif
