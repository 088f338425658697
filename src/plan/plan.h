/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The planner: from what hosts can spare to trees and their shares.
 *
 * The model. A host's NIC is full duplex and has a rate in and a rate out; the
 * network between NICs is not a limit. In a tree of rate x a child sends x to
 * its aggregator and gets x of results back. What stays on a host (a worker
 * below the aggregator of its own host) costs no NIC. A result costs the
 * aggregator one send for each remote child, or a single one where the network
 * copies. A core of an aggregator adds core_bps of what its children send. A
 * switch has a port of its own for each neighbour, all of in_bps and out_bps.
 * Trees share the fragments, so a worker is in all of them, and the rate of an
 * allreduce is the sum of their rates.
 */
#ifndef TRIB_PLAN_PLAN_H
#define TRIB_PLAN_PLAN_H

#include "plan/tree.h"

#include <stddef.h>
#include <stdint.h>

#define PLAN_SENTENCE 256
#define PLAN_CORE_BPS 10e9 /* XAgg §VI-B: what one core adds and forwards */
#define PLAN_HOSTS_MAX 65536u
#define PLAN_TREES_MAX 256u /* a forest has fewer */

struct plan_host {
	const char *name;    /* for people: "h3" */
	const char *address; /* where its aggregator listens, as in the text of trees */
	double in_bps, out_bps;
	double idle_cores;
	uint64_t memory_total, memory_used; /* bytes; a total of 0 is not known */
	int rank;                           /* of the worker on this host, or -1 */
	bool may_aggregate;
	bool is_switch; /* a port for each neighbour instead of one NIC; never a worker */
	double round_s; /* its first round, training and transmission; 0 is not known */
};

struct plan_limits {
	unsigned trees;       /* at most this many */
	unsigned children;    /* of one aggregator, at least 2 */
	unsigned depth;       /* aggregators from a worker to the root */
	double core_bps;      /* what one idle core adds */
	uint64_t model_bytes; /* what an aggregator has to have room for */
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
	double bound_bps;  /* no choice of trees can be faster, however many there are */
	double within_bps; /* nor with no more trees than the limit, which may be less */
	double rate_bps;   /* of the plan */
	double star_bps;   /* of the best single aggregator with everyone below it */
	double ring_bps;   /* of a ring allreduce between the workers */
	unsigned workers, aggregators; /* hosts; those that the plan uses */
	unsigned trees, depth;
	uint64_t steps;              /* hosts looked at, to see how the work grows */
	char limit[PLAN_SENTENCE];   /* what keeps the plan from being faster */
	char bounded[PLAN_SENTENCE]; /* what sets the bound */
};

/* Bytes of work memory that n hosts need. */
size_t plan_work_bytes(unsigned n, const struct plan_limits *limits);

/*
 * Plans trees and shares. Ranks are 0 to workers - 1. `out` may be NULL, and
 * has to be where there are more than TREE_RANKS_MAX workers, or more trees
 * allowed than a forest has; the verdict is of the same plan then. An error names the host that is
 * wrong, or says that nobody may aggregate.
 */
trib_status plan_stripes(const struct plan_host *hosts, unsigned n,
                         const struct plan_limits *limits, void *work, size_t work_bytes,
                         struct forest *out, struct plan_verdict *verdict);

/*
 * The rate of trees that there are already, with hosts as they are now. 0: one of their aggregators
 * is none of the hosts', or may not aggregate.
 */
double plan_rate(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                 const struct forest *forest, void *work, size_t work_bytes);

/* Seconds that a vector takes at a rate; 0 bits a second take for ever. */
double plan_seconds(uint64_t bytes, double bps);

#endif
