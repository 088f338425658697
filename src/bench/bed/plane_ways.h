/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane_ways: the systems of a benchmark that does the same work in several ways, on several
 * planes, and the systems that cannot run here.
 */
#ifndef TRIB_BENCH_BED_PLANE_WAYS_H
#define TRIB_BENCH_BED_PLANE_WAYS_H

#include "base/status.h"

#define LEFT_OUT_MAX 512
/* A reason. */
#define NEEDS_ROOT "it needs a virtual cluster, which needs root"

/* Names end with NULL. */
struct plane_ways {
	const char *const *ways;   /* what --systems takes */
	const char *const *planes; /* what --plane takes */
	trib_status (*add)(void *report, unsigned way, const char *plane);
};

/*
 * Calls `add` for each of `ways`, which is a list with commas. The first way of the table is added
 * on each of `planes`, the others on the first plane of that list.
 */
trib_status plane_ways_choose(const struct plane_ways *table, const char *ways, const char *planes,
                              void *report);

/* Why an aggregator cannot run on this plane here; NULL: it can. Valid until the next call. */
const char *plane_missing(const char *plane);

/* Adds "NAME PLANE (WHY)" to a list of systems that cannot run. `plane` NULL: without it. */
void left_out_add(char list[LEFT_OUT_MAX], const char *name, const char *plane, const char *why);

#endif
