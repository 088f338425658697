/* SPDX-License-Identifier: Apache-2.0 */
/* Condenses many times into a few figures. Pure. */
#ifndef TRIB_BENCH_REPORT_SAMPLES_H
#define TRIB_BENCH_REPORT_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>

/* Each is the median of one figure a run, so that a run that was disturbed changes little. */
struct bench_quantiles {
	double p1, median, p99;
};

struct bench_stats {
	unsigned repeats;        /* runs that were counted; 0: the other fields mean nothing */
	double min, median, p99; /* of all times of all runs */
	struct bench_quantiles of_runs;
	double spread; /* of the medians of all runs: (largest - smallest) / median */
};

/* A figure that has one value a run. */
struct bench_range {
	unsigned n; /* runs that were counted; 0: the other fields mean nothing */
	double median, least, most;
};

/*
 * An allreduce is over when its last rank has the sum. So times[i] becomes the
 * maximum over ranks of samples[rank * iterations + i]. False: a sample is missing
 * (NaN).
 */
bool stats_slowest(const double *samples, unsigned ranks, unsigned iterations, double *times);

/* The same with the mean over ranks, as MPI's benchmarks have it. */
bool stats_mean(const double *samples, unsigned ranks, unsigned iterations, double *times);

/* `times` holds `iterations` for each of `repeats` runs. */
void stats_compute(const double *times, unsigned repeats, unsigned iterations,
                   struct bench_stats *out);

/* Values that are NaN are skipped. */
void stats_range(const double *values, unsigned n, struct bench_range *out);

/* Condenses a[i] / b[i], so that changes from run to run affect both of a pair alike. */
void stats_ratio(const double *a, const double *b, unsigned n, struct bench_range *out);

/* In ascending order. */
void stats_sort(double *values, size_t n);
/* Mean of the two middle values if n is even. Reorders `values`; n is at least 1. */
double stats_median(double *values, size_t n);

/* The smallest value that `percent` of all values do not exceed. `sorted` is ascending. */
double stats_percentile(const double *sorted, size_t n, double percent);

#endif
