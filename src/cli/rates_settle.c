/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/rates_halve.h"

#include <math.h>

double settle_mean(const double *bps, unsigned from, unsigned to)
{
	double sum = 0;

	for (unsigned i = from; i < to; i++)
		sum += bps[i];
	return to > from ? sum / (to - from) : 0;
}

double settle_lowest(const double *bps, unsigned from, unsigned to)
{
	double lowest = INFINITY;

	for (unsigned i = from; i < to; i++)
		lowest = fmin(lowest, bps[i]);
	return to > from ? lowest : 0;
}

double settle_time(const double *bps, unsigned from, unsigned to, const struct settle *how,
                   double level, double window_s)
{
	unsigned good = 0;

	for (unsigned i = from; how->span && i + how->span <= to; i++) {
		double mean = settle_mean(bps, i, i + how->span);

		good = fabs(mean - level) <= how->share * level ? good + 1 : 0;
		if (good == how->hold)
			return (i + 1 - good - from) * window_s;
	}
	return -1;
}
