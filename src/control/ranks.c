/* SPDX-License-Identifier: Apache-2.0 */
#include "control/ranks.h"

#include <math.h>

double ranks_share(const struct rank_word *words, unsigned n)
{
	double least = n ? INFINITY : -1;

	for (unsigned i = 0; i < n; i++)
		least = fmin(least, words[i].waits);
	return least;
}

void ranks_slow(const struct rank_word *words, unsigned n, double rate_bps, const bool *aggregates,
                double *slow)
{
	double most = 0;

	for (unsigned i = 0; i < n; i++)
		most = fmax(most, words[i].carries_bps);
	for (unsigned i = 0; i < n; i++) {
		double carries = words[i].carries_bps;

		slow[i] = carries > 0 && !aggregates[i] && carries < RANKS_SLOW * rate_bps &&
		                          most >= RANKS_APART * carries
		                  ? carries
		                  : 0;
	}
}

double ranks_round(double waits, double rate_bps, double link_bps)
{
	if (waits < 0)
		return 0;
	return 1 - waits + (rate_bps > 0 && link_bps > 0 ? fmin(1, rate_bps / link_bps) : 0);
}

bool ranks_late(double rate_bps, double share, double planned_bps)
{
	return rate_bps > 0 && share >= RANKS_COMMUNICATE &&
	       rate_bps < RANKS_LATE * share * planned_bps;
}
