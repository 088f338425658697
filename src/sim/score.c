/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim.h"

static double share(double part, double whole)
{
	return whole != 0 ? part / whole : 0;
}

double sim_score(const struct sim_result *result)
{
	return share(result->jct_none_s - result->jct_s, result->jct_none_s - result->jct_all_s);
}

double sim_score_weighted(const struct sim_result *result)
{
	return share(result->weighted_none_s - result->weighted_s,
	             result->weighted_none_s - result->weighted_all_s);
}

double sim_utilization(const struct sim_result *result)
{
	return share(result->aggregated_s, result->jct_s);
}

double sim_gain(const struct sim_result *result)
{
	return share(result->jct_none_s - result->jct_s, result->jct_none_s);
}
