/* SPDX-License-Identifier: Apache-2.0 */
#include "control/policy/rank_health.h"

#include <math.h>

double rank_health_share(const struct rank_sample *samples, unsigned n)
{
	double least = n ? INFINITY : -1;

	for (unsigned i = 0; i < n; i++)
		least = fmin(least, samples[i].waits);
	return least;
}

void rank_health_slow(const struct rank_sample *samples, unsigned n, double rate_bps,
                      const bool *aggregates, double *slow)
{
	double most = 0;

	for (unsigned i = 0; i < n; i++)
		most = fmax(most, samples[i].carries_bps);
	for (unsigned i = 0; i < n; i++) {
		double carries = samples[i].carries_bps;

		slow[i] = carries > 0 && !aggregates[i] && carries < RANK_LINK_SLOW * rate_bps &&
		                          most >= RANK_LINK_APART * carries
		                  ? carries
		                  : 0;
	}
}

double rank_health_round(double waits, double rate_bps, double link_bps)
{
	if (waits < 0)
		return 0;
	return 1 - waits + (rate_bps > 0 && link_bps > 0 ? fmin(1, rate_bps / link_bps) : 0);
}

bool rank_health_late(double rate_bps, double share, double planned_bps)
{
	return rate_bps > 0 && share >= RANK_COMMUNICATES &&
	       rate_bps < RANK_PLAN_LATE * share * planned_bps;
}
