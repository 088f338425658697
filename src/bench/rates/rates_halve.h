/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures what workers send when the link of their aggregator becomes slow under
 * load, and fast again (XAgg's Fig. 21). A job does allreduces without pause over a
 * virtual cluster. Every sum is checked, and what each worker sends is counted in
 * windows of time.
 */
#ifndef TRIB_BENCH_RATES_RATES_HALVE_H
#define TRIB_BENCH_RATES_RATES_HALVE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define HALVE_WORKERS_MAX 16u
#define HALVE_WINDOWS_MAX 480u
#define HALVE_PHASES 3u

struct halve_options {
	unsigned workers;
	uint64_t link_bps, slow_bps; /* of the aggregator's link while it is slow; the other links
	                                keep link_bps */
	double phase_s, window_s;
	uint64_t bytes; /* of a vector */
	bool told;      /* tribd gets --link, so that it divides the link among its children */
	bool whole;     /* up to 64 KB cross at once, instead of packet by packet */
};

/* Between two changes of the link. */
struct halve_phase {
	double goodput_bps; /* payload of vectors summed in this phase, for one worker */
	double lowest_bps;  /* of one worker, in its slowest window */
	double settled_s;   /* seconds until the rate stays near the phase's level; below 0: it does
	                       not */
	double level_bps;   /* of one worker, over the second half of the phase */
	double ripple; /* the furthest that means there were from the level, as a share of it */
	uint64_t sent, resent;
};

struct halve_result {
	char plane[8];
	unsigned n;     /* number of windows */
	unsigned at[2]; /* the window in which the link changed */
	double window_s;
	double bps[HALVE_WINDOWS_MAX]; /* mean of all workers in each window */
	struct halve_phase phases[HALVE_PHASES];
	uint64_t rounds, wrong;
	double worker_cpu,
		aggregator_cpu; /* cores in use on average; worker_cpu: all workers together */
	char why[240];          /* why it did not run; "": it ran */
};

trib_status halve_run(const struct halve_options *options, const char *plane,
                      struct halve_result *out);

/*
 * rates_settle.c; pure.
 *
 * A rate has settled if it stays near its level until the end of the phase. A
 * sender that has to probe a link sends more now and then, and less for a while
 * afterwards. So the means of several windows are compared with the level.
 */
struct settle {
	unsigned span; /* windows in a mean */
	double share;  /* largest distance of a mean from the level, as a share of it */
};
/*
 * Seconds from window `from` until the rate is near its level and stays so up to window `to`.
 * Negative: it does not.
 */
double settle_time(const double *bps, unsigned from, unsigned to, const struct settle *how,
                   double level, double window_s);
/* The largest distance of such a mean from the level, as a share of it. */
double settle_ripple(const double *bps, unsigned from, unsigned to, unsigned span, double level);
double settle_mean(const double *bps, unsigned from, unsigned to);
double settle_lowest(const double *bps, unsigned from, unsigned to);

#endif
