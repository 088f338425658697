/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a place in a tree costs a host, in multiples of the tree's rate. All
 * parts of the planner count by these lines.
 *
 * An aggregator with c children replaces c streams by one. It takes c - 1
 * away, so the "takes" of a tree's aggregators add up to workers - 1 whatever
 * its form, and any such numbers can be arranged into a tree (shape.h). A
 * worker's host that takes t away and has its own worker among its children
 * receives t streams from other hosts and the result from its parent, and sends
 * as many: compared to a worker that only sends and receives its own, that is t
 * more each way, and t - 1 at the root. A server that takes t away has t + 1
 * children and a parent: t + 2 each way, and t + 1 at the root.
 *
 * So on NICs alone no tree beats stars: a star takes workers - 1 and is all
 * root. Give each host of a tree of rate x the star of the rate that costs the
 * host as much as its place in the tree does. On workers' hosts these rates add
 * up to x, with servers to more. Depth helps where children or trees are few,
 * because it spreads one tree over more hosts, and where cores are: the last
 * additions may move to a host that has idle ones.
 */
#ifndef TRIB_PLAN_MODEL_H
#define TRIB_PLAN_MODEL_H

#include "plan/plan.h"

#include <math.h>

enum model_kind { MODEL_WORKER, MODEL_SERVER, MODEL_SWITCH };

struct model_host {
	double in, out, cpu; /* bits a second; 0 cpu: it may not aggregate */
	enum model_kind kind;
};

struct model {
	const struct plan_host *hosts;
	struct model_host *caps; /* [n] */
	uint32_t *ranks;         /* [workers]: the host of each rank */
	uint32_t *order;         /* [workers]: ranks, those alike in speed side by side */
	unsigned n, workers;
	unsigned children, depth, trees;
	bool multicast;
};

struct model_cost {
	unsigned in, out, cpu;
};

/* Beyond what a worker on the host costs anyway. `take` is children - 1. */
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
 * The most that a place takes away where the host has room for so many streams
 * in and out and cores to add so many; 0 or less: it has no place. As model_cost.
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

/* What is left of a host's links when its worker sends and receives at the rate. */
static inline double model_spare(const struct model_host *host, double link, double rate)
{
	return host->kind == MODEL_WORKER ? link - rate : link;
}

/* Fills what is not given (hosts, n and the memory are); an error names the host that is wrong. */
trib_status model_fill(struct model *model, const struct plan_limits *limits);

/* The slowest link of a worker: all that is summed passes it. */
double model_worker_rate(const struct model *model, unsigned *slowest);

#endif
