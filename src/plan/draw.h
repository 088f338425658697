/* SPDX-License-Identifier: Apache-2.0 */
/* Random clusters, the same for the same seed: to try planners on. */
#ifndef TRIB_PLAN_DRAW_H
#define TRIB_PLAN_DRAW_H

#include "plan/plan.h"

#define DRAW_NAME 32

/*
 * Fills n (at least 2) hosts and their names, "h3" and "10.0.0.3:7700". Links
 * may be alike, of a few kinds, or all unlike with other loads on them; workers
 * may aggregate all, some or none; at times a switch is among the servers.
 * At least two hosts are workers, and enough may aggregate for 64 children each.
 */
void draw_cluster(uint64_t seed, unsigned n, struct plan_host *hosts, char (*names)[2][DRAW_NAME]);

/* The next number of a sequence that starts with any seed. */
uint64_t draw_next(uint64_t *state);
/* One of 0 to n - 1. */
unsigned draw_below(uint64_t *state, unsigned n);

#endif
