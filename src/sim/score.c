/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim.h"

#include <math.h>

#define NOISE 1e-12

static double share(double part, double whole)
{
	return whole != 0 ? part / whole : 0;
}

/* A difference in the last digits only counts as zero. */
static double less(double a, double b)
{
	return fabs(a - b) > NOISE * a ? a - b : 0;
}

static double score_of(double jct, double all, double none)
{
	return less(none, all) > 0 ? less(none, jct) / less(none, all) : 1;
}

double sim_score(const struct sim_result *result)
{
	return score_of(result->jct_s, result->jct_all_s, result->jct_none_s);
}

double sim_score_weighted(const struct sim_result *result)
{
	return score_of(result->weighted_s, result->weighted_all_s, result->weighted_none_s);
}

double sim_utilization(const struct sim_result *result)
{
	return share(result->aggregated_s, result->jct_s);
}

double sim_gain(const struct sim_result *result)
{
	return share(less(result->jct_none_s, result->jct_s), result->jct_none_s);
}

double sim_gain_all(const struct sim_result *result)
{
	return share(less(result->jct_none_s, result->jct_all_s), result->jct_none_s);
}
