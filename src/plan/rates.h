/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast each child of an aggregator may send (XAgg §IV-C). The parent's
 * links are shared so that nobody can get more without somebody who has less
 * getting even less (max-min), and none is left idle while a child wants more.
 * Called whenever a child starts or ends; never per packet. What losses change
 * is in losses.h.
 */
#ifndef TRIB_PLAN_RATES_H
#define TRIB_PLAN_RATES_H

#include <stdbool.h>
#include <stdint.h>

struct rate_child {
	double max;    /* bits a second that it can send, at most */
	double weight; /* what it gets compared to others; 0 is 1. In proportion to a tree's
	                  share, where a link serves several trees of one job */
	bool active;   /* it is sending now, or asks to */
};

/*
 * Shares `capacity_in` between the active children into rates[n]; inactive
 * ones get 0. The aggregate leaves at the rate of the slowest child, so where
 * all are active no child needs more than `capacity_out` (inequality 1); while
 * some are not, faster ones may run ahead into the pool. Returns the rate at
 * which sums can leave: the slowest active child's, at most capacity_out.
 */
double rates_share(double capacity_in, double capacity_out, const struct rate_child *children,
                   unsigned n, double *rates);

/* Notices overtake each other: whether one with this number is newer than the last taken. */
bool rates_is_newer(uint32_t number, uint32_t last);

#endif
