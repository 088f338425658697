/* SPDX-License-Identifier: Apache-2.0 */
/* trib plan: what its files share. */
#ifndef TRIB_CLI_PLAN_H
#define TRIB_CLI_PLAN_H

#include "plan/plan.h"

#include <stdio.h>

#define PLAN_NO_K UINT64_MAX /* for k: stripes; 0 is XAgg's tree of the best k */

struct plan_options {
	uint64_t random, seed, k, trees, children, check, bytes, core;
	const char *root;
	bool json, multicast;
	struct plan_limits limits; /* of the above */
};

/* A cluster in memory of its own. */
struct plan_cluster {
	struct plan_host *hosts;
	unsigned n;
	void *text; /* what names point into */
};

trib_status cluster_read(const char *path, struct plan_cluster *cluster);
trib_status cluster_draw(uint64_t seed, unsigned n, struct plan_cluster *cluster);
void cluster_free(struct plan_cluster *cluster);

/* Compares plans of random clusters with the optimum; an exit code. */
int plan_check(const struct plan_options *options);

#endif
