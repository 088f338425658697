/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/rates/rates.h"

#include <math.h>

bool rates_is_newer(uint32_t number, uint32_t last)
{
	return (int32_t)(number - last) > 0;
}

static double child_weight(const struct rate_child *child)
{
	return child->weight > 0 ? child->weight : 1;
}

static double child_most(const struct rate_child *child, double cap)
{
	return fmax(fmin(child->max, cap), 0);
}

/*
 * Raises the rates of all children below their maximum equally, until the link is full. Each
 * iteration brings a child to its maximum or ends, so there are at most n.
 */
static void level_raise(double left, double cap, const struct rate_child *children, unsigned n,
                        double *rates)
{
	double level = 0;

	for (unsigned turn = 0; turn < n && left > 0; turn++) {
		double weights = 0, next = INFINITY;

		for (unsigned i = 0; i < n; i++) {
			double weight = child_weight(&children[i]);
			double most = child_most(&children[i], cap) / weight;

			if (!children[i].active || most <= level)
				continue;
			weights += weight;
			next = fmin(next, most);
		}
		if (weights <= 0)
			return;
		next = fmin(next, level + left / weights);
		for (unsigned i = 0; i < n; i++) {
			double weight = child_weight(&children[i]);

			if (children[i].active && child_most(&children[i], cap) / weight > level)
				rates[i] = next * weight;
		}
		left -= (next - level) * weights;
		level = next;
	}
}

double rates_share(double capacity_in, double capacity_out, const struct rate_child *children,
                   unsigned n, double *rates)
{
	double slowest = INFINITY;
	bool all_active = true;

	for (unsigned i = 0; i < n; i++) {
		rates[i] = 0;
		all_active = all_active && children[i].active;
	}
	level_raise(capacity_in, all_active ? capacity_out : INFINITY, children, n, rates);
	for (unsigned i = 0; i < n; i++)
		if (children[i].active)
			slowest = fmin(slowest, rates[i]);
	return isfinite(slowest) ? fmin(slowest, capacity_out) : 0;
}
