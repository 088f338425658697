/* SPDX-License-Identifier: Apache-2.0 */
/* What many times come down to. Pure. */
#ifndef TRIB_CLI_BENCH_STATS_H
#define TRIB_CLI_BENCH_STATS_H

#include <stdbool.h>
#include <stddef.h>

struct bench_stats {
	unsigned repeats; /* runs that went in; 0: the rest means nothing */
	double min, median, p99;
	double spread; /* of the runs' medians: (largest - smallest) / median */
};

/* A figure that every run has. */
struct bench_range {
	unsigned n; /* runs that went in; 0: the rest means nothing */
	double median, least, most;
};

/*
 * An allreduce is over when its last rank has the sum: times[i] becomes the
 * maximum over ranks of samples[rank * iterations + i]. False where a sample
 * is missing (NaN).
 */
bool stats_slowest(const double *samples, unsigned ranks, unsigned iterations, double *times);

/* `times` holds `iterations` for each of `repeats` runs. */
void stats_compute(const double *times, unsigned repeats, unsigned iterations,
                   struct bench_stats *out);

/* Values that are NaN are left out. */
void stats_range(const double *values, unsigned n, struct bench_range *out);

/* Of a[i] / b[i]: what changes from run to run meets both of a pair. */
void stats_ratio(const double *a, const double *b, unsigned n, struct bench_range *out);

/* Between the two middle ones where n is even. Reorders `values`; n is at least 1. */
double stats_median(double *values, size_t n);

/* The smallest value that `percent` of all do not exceed. `sorted` is ascending. */
double stats_percentile(const double *sorted, size_t n, double percent);

#endif
