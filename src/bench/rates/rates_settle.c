/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/rates/rates_halve.h"

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

/* Distance of the mean of the windows from `at` on from the level, as a share of the level. */
static double off(const double *bps, unsigned at, unsigned span, double level)
{
	return fabs(settle_mean(bps, at, at + span) - level) / level;
}

double settle_time(const double *bps, unsigned from, unsigned to, const struct settle *how,
                   double level, double window_s)
{
	unsigned at;

	if (!how->span || from + how->span > to)
		return -1;
	at = to - how->span + 1; /* goes back from the end as long as means are near */
	while (at > from && off(bps, at - 1, how->span, level) <= how->share)
		at--;
	return at + how->span > to ? -1 : (at - from) * window_s;
}

double settle_ripple(const double *bps, unsigned from, unsigned to, unsigned span, double level)
{
	double most = 0;

	for (unsigned i = from; i + span <= to; i++)
		most = fmax(most, off(bps, i, span, level));
	return most;
}
