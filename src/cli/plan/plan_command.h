/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan: the command trib plan. It reads a cluster (plan_cluster.c), prints its plan
 * (plan_command.c), or compares plans with the optimum of a linear program (plan_check.c,
 * plan_exact.c). The planner itself is in src/plan; this room must not plan.
 */
#ifndef TRIB_CLI_PLAN_PLAN_COMMAND_H
#define TRIB_CLI_PLAN_PLAN_COMMAND_H

#include "plan/cluster/plan.h"

#include <stdio.h>

#define PLAN_NO_K UINT64_MAX /* value of k: no k-ary tree; 0: XAgg's tree with the best k */

struct plan_options {
	uint64_t random, seed, k, trees, children, check, bytes, core;
	const char *root;
	bool json, multicast;
	struct plan_limits limits; /* made of the options above */
};

/* A cluster in memory of its own. */
struct plan_cluster {
	struct plan_host *hosts;
	unsigned n;
	void *text; /* the names of the hosts point into it */
};

trib_status cluster_read(const char *path, struct plan_cluster *cluster);
trib_status cluster_draw(uint64_t seed, unsigned n, struct plan_cluster *cluster);
void cluster_free(struct plan_cluster *cluster);

/* Compares plans of random clusters with the optimum; returns an exit code. */
int plan_check(const struct plan_options *options);

#endif
