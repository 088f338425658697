/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/stripes owns the trees and shares of one job, and the bound that no plan can beat. It
 * must not touch other jobs: what they use is subtracted before.
 *
 * model: the cost of a place in a tree to its host, in multiples of the tree's rate. All
 * parts of the planner use this model.
 *
 * An aggregator with c children replaces c streams by one: it *takes* c - 1 streams away.
 * The takes of a tree's aggregators always add up to workers - 1, and any numbers with that
 * sum can be arranged into a tree (tree_shape.h).
 *
 * - A worker's host that takes t, with its own worker among the children, receives t
 *   streams and the parent's result, and sends as many. Compared with a worker that does
 *   not aggregate, that is t more each way, and t - 1 at the root.
 * - A server that takes t has t + 1 children and a parent: t + 2 each way, and t + 1 at the
 *   root.
 *
 * If NICs are the only limit, no tree beats stars. Proof: a star is all root and takes
 * workers - 1. Replace each place of a tree of rate x by a star on the same host that costs
 * the host as much. On workers' hosts these stars have rate x in all, on servers more.
 * Deeper trees help in two cases. If the number of children or trees is limited, they spread
 * one tree over more hosts. If cores are the limit, the last additions can move to a host
 * with idle cores.
 */
#ifndef TRIB_PLAN_STRIPES_MODEL_H
#define TRIB_PLAN_STRIPES_MODEL_H

#include "plan/cluster/plan.h"

#include <math.h>

enum model_kind { MODEL_WORKER, MODEL_SERVER, MODEL_SWITCH };

struct model_host {
	double in, out, cpu; /* bits a second; cpu 0: it may not aggregate */
	enum model_kind kind;
};

struct model {
	const struct plan_host *hosts;
	struct model_host *caps; /* [n] */
	uint32_t *ranks;         /* [workers]: the host of each rank */
	uint32_t *order;         /* [workers]: ranks, sorted so that similar speeds are adjacent */
	unsigned n, workers;
	unsigned children, depth, trees;
	bool multicast;
};

struct model_cost {
	unsigned in, out, cpu;
};

/* The cost of a place beyond that of the host's own worker. `take` is children - 1. */
static inline struct model_cost model_cost(const struct model *model, enum model_kind kind,
                                           unsigned take, bool is_root)
{
	struct model_cost cost = { .cpu = take + 1 };

	switch (kind) {
	case MODEL_SWITCH:
		cost.in = cost.out = 1;
		break;
	case MODEL_SERVER:
		cost.in = take + 2 - is_root;
		cost.out = model->multicast ? 2u - is_root : cost.in;
		break;
	case MODEL_WORKER:
		cost.in = take - is_root;
		cost.out = model->multicast ? 1u - is_root : cost.in;
		break;
	}
	return cost;
}

/*
 * The largest take of a place if the host has room for `in` and `out` streams and cores to add
 * `cpu` streams; 0 or less: no place fits. The inverse of model_cost.
 */
static inline int32_t model_room(const struct model *model, enum model_kind kind, int32_t in,
                                 int32_t out, int32_t cpu, bool is_root)
{
	int32_t beside = (kind == MODEL_SERVER ? 2 : 0) - is_root, room = cpu - 1;

	if (kind == MODEL_SWITCH)
		return in >= 1 && out >= 1 ? room : 0;
	room = in - beside < room ? in - beside : room;
	if (model->multicast)
		return out >= (kind == MODEL_SERVER ? 2 : 1) - is_root ? room : 0;
	return out - beside < room ? out - beside : room;
}

/* The rest of a host's link after its worker sends and receives at the rate. */
static inline double model_spare(const struct model_host *host, double link, double rate)
{
	return host->kind == MODEL_WORKER ? link - rate : link;
}

/* Fills the model; hosts, n and the memory are given. An error names the wrong host. */
trib_status model_fill(struct model *model, const struct plan_limits *limits);

/* The slowest worker's link rate. Every vector passes it, so it bounds all plans. */
double model_worker_rate(const struct model *model, unsigned *slowest);

#endif
