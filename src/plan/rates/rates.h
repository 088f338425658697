/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/rates owns how an aggregator divides its link, and what losses change in that. It must
 * not touch trees: it knows one aggregator and its children.
 *
 * rates: how fast each child of an aggregator may send (XAgg §IV-C). The aggregator's link
 * is divided by max-min fairness: no child can get more unless a child with less gets even
 * less, and no capacity stays idle while a child wants more. Called whenever a child starts
 * or stops, never per packet. losses.h adapts the result to packet loss.
 */
#ifndef TRIB_PLAN_RATES_RATES_H
#define TRIB_PLAN_RATES_RATES_H

#include <stdbool.h>
#include <stdint.h>

struct rate_child {
	double max;    /* most bits a second that it can send */
	double weight; /* relative weight; 0 means 1. If a link serves several trees of one job,
	                  it is the tree's share */
	bool active;   /* it is sending now, or asks to */
};

/*
 * Divides `capacity_in` among the active children into rates[n]; inactive children get 0.
 * Sums leave at the rate of the slowest child. If all children are active, no child needs
 * more than `capacity_out` (inequality 1). If some are inactive, faster children may run
 * ahead into the pool. Returns the rate at which sums can leave: the slowest active
 * child's, at most capacity_out.
 */
double rates_share(double capacity_in, double capacity_out, const struct rate_child *children,
                   unsigned n, double *rates);

/* Is this serial number newer than the last accepted one? Messages may overtake each other. */
bool rates_is_newer(uint32_t number, uint32_t last);

#endif
