/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimum by a linear program (GLPK), to hold the fast planner against.
 * Its variables are what each host takes away, in how many places, and how
 * often as the root; places may be split as finely as one likes and trees may be
 * as many, so no plan is above it.
 */
#ifndef TRIB_CLI_PLAN_EXACT_H
#define TRIB_CLI_PLAN_EXACT_H

#include "plan/plan.h"

/* Whether this build has GLPK. */
bool exact_available(void);

/* The highest rate; an error where GLPK is not there or does not solve it. */
trib_status exact_rate(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                       double *bps);

#endif
