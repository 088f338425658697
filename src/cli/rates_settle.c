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

/* From the end: the last mean that is off is where it had not settled yet. */
double settle_time(const double *bps, unsigned from, unsigned to, unsigned span, double level,
                   double share, double window_s)
{
	unsigned i;

	if (!span || to < from + span)
		return -1;
	for (i = to - span + 1; i > from; i--)
		if (fabs(settle_mean(bps, i - 1, i - 1 + span) - level) > share * level)
			break;
	return i > to - span ? -1 : (i - from) * window_s;
}
