/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/cluster/candidates.h"
#include "plan/cluster/sort.h"

#include <math.h>

static double round_time(const struct candidates_round *round)
{
	return round->training_s + round->transmission_s;
}

bool candidates_worth(const struct candidates_round *rounds, unsigned n, double share)
{
	double all = 0, transmission = 0;

	for (unsigned i = 0; i < n; i++) {
		all += round_time(&rounds[i]);
		transmission += rounds[i].transmission_s;
	}
	return transmission > 0 && transmission >= share * all;
}

bool candidate_fits(const struct plan_host *host, const struct plan_limits *limits)
{
	/* In floating point, because the sum of two sizes may overflow. */
	return host->may_aggregate &&
	       (!host->memory_total || (double)host->memory_used + (double)limits->model_bytes <=
	                                       CANDIDATES_MEMORY * (double)host->memory_total);
}

static double bandwidth(const struct plan_host *host)
{
	return fmin(host->in_bps, host->out_bps);
}

static bool candidate_before(const void *context, uint32_t a, uint32_t b)
{
	const struct plan_host *hosts = context;
	const struct plan_host *first = &hosts[a], *second = &hosts[b];
	double free_first = (double)first->memory_total - (double)first->memory_used;
	double free_second = (double)second->memory_total - (double)second->memory_used;

	if (bandwidth(first) != bandwidth(second))
		return bandwidth(first) > bandwidth(second);
	if (first->idle_cores != second->idle_cores)
		return first->idle_cores > second->idle_cores;
	return free_first != free_second ? free_first > free_second : a < b;
}

unsigned candidates_select(const struct plan_host *hosts, unsigned n,
                           const struct plan_limits *limits, uint32_t *out)
{
	unsigned chosen = 0;

	for (unsigned i = 0; i < n; i++)
		if (hosts[i].rank < 0 && candidate_fits(&hosts[i], limits) &&
		    bandwidth(&hosts[i]) <= hosts[i].idle_cores * limits->core_bps)
			out[chosen++] = i;
	sort_indices(out, chosen, candidate_before, hosts);
	return chosen;
}
