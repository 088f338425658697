/* SPDX-License-Identifier: Apache-2.0 */
/* draw: random clusters for testing planners. The same seed gives the same cluster. */
#ifndef TRIB_PLAN_CLUSTER_DRAW_H
#define TRIB_PLAN_CLUSTER_DRAW_H

#include "plan/cluster/plan.h"

#define DRAW_NAME 32

/*
 * Fills n (at least 2) hosts and their names, "h3" and "10.0.0.3:7700". Links are equal, of
 * a few kinds, or all different with other load. All, some or no workers may aggregate.
 * Sometimes a switch is among the servers. At least two hosts are workers, and enough
 * hosts may aggregate for 64 children each.
 */
void draw_cluster(uint64_t seed, unsigned n, struct plan_host *hosts, char (*names)[2][DRAW_NAME]);

/* One of 0 to n - 1. */
unsigned draw_below(uint64_t *state, unsigned n);

#endif
