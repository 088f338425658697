/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int double_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

bool stats_slowest(const double *samples, unsigned ranks, unsigned iterations, double *times)
{
	for (unsigned i = 0; i < iterations; i++) {
		times[i] = 0;
		for (unsigned r = 0; r < ranks; r++) {
			double sample = samples[(size_t)r * iterations + i];

			if (isnan(sample))
				return false;
			if (sample > times[i])
				times[i] = sample;
		}
	}
	return ranks > 0;
}

bool stats_mean(const double *samples, unsigned ranks, unsigned iterations, double *times)
{
	for (unsigned i = 0; i < iterations; i++) {
		double sum = 0;

		for (unsigned r = 0; r < ranks; r++)
			sum += samples[(size_t)r * iterations + i];
		if (isnan(sum))
			return false;
		times[i] = ranks ? sum / ranks : 0;
	}
	return ranks > 0;
}

void stats_sort(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), double_compare);
}

double stats_median(double *values, size_t n)
{
	stats_sort(values, n);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double stats_percentile(const double *sorted, size_t n, double percent)
{
	/* Subtracts a little, so that 99 % of 100 is the 99th whatever the rounding. */
	size_t rank = (size_t)ceil(percent / 100 * (double)n - 1e-9);

	if (rank < 1)
		rank = 1;
	return sorted[(rank > n ? n : rank) - 1];
}

/* Condenses every run by itself. `room` has space for one run and for three values a run. */
static void runs_compute(const double *times, unsigned repeats, unsigned iterations, double *room,
                         struct bench_stats *out)
{
	double *p1 = room + iterations, *medians = p1 + repeats, *p99 = medians + repeats;

	for (unsigned r = 0; r < repeats; r++) {
		memcpy(room, times + (size_t)r * iterations, iterations * sizeof(*room));
		medians[r] = stats_median(room, iterations); /* sorts */
		p1[r] = stats_percentile(room, iterations, 1);
		p99[r] = stats_percentile(room, iterations, 99);
	}
	out->of_runs = (struct bench_quantiles){ .p1 = stats_median(p1, repeats),
		                                 .median = stats_median(medians, repeats),
		                                 .p99 = stats_median(p99, repeats) };
	out->spread = medians[repeats - 1] - medians[0];
}

void stats_compute(const double *times, unsigned repeats, unsigned iterations,
                   struct bench_stats *out)
{
	size_t n = (size_t)repeats * iterations;
	double *sorted =
		n ? malloc((n + iterations + 3 * (size_t)repeats) * sizeof(*sorted)) : NULL;

	*out = (struct bench_stats){ 0 };
	if (!sorted)
		return;
	runs_compute(times, repeats, iterations, sorted + n, out);
	memcpy(sorted, times, n * sizeof(*sorted));
	out->repeats = repeats;
	out->median = stats_median(sorted, n);
	out->min = sorted[0];
	out->p99 = stats_percentile(sorted, n, 99);
	out->spread = out->median > 0 ? out->spread / out->median : 0;
	free(sorted);
}

void stats_ratio(const double *a, const double *b, unsigned n, struct bench_range *out)
{
	double *kept = n ? malloc(n * sizeof(*kept)) : NULL;

	*out = (struct bench_range){ 0 };
	if (!kept)
		return;
	for (unsigned i = 0; i < n; i++) {
		double value = b ? a[i] / b[i] : a[i];

		if (!isnan(value))
			kept[out->n++] = value;
	}
	if (out->n) {
		out->median = stats_median(kept, out->n);
		out->least = kept[0];
		out->most = kept[out->n - 1];
	}
	free(kept);
}

void stats_range(const double *values, unsigned n, struct bench_range *out)
{
	stats_ratio(values, NULL, n, out);
}
