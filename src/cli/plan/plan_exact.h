/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimum of a linear program (GLPK), to compare the fast planner with. The
 * variables of each host: how many streams it merges, in how many places, and how
 * often as the root. Places and trees may be split as finely as needed, so that no
 * plan is better.
 */
#ifndef TRIB_CLI_PLAN_PLAN_EXACT_H
#define TRIB_CLI_PLAN_PLAN_EXACT_H

#include "plan/cluster/plan.h"

/* The highest rate; an error if GLPK does not solve it. NULL in a build without GLPK. */
trib_status exact_rate(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                       double *bps) __attribute__((weak));

#endif
