/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What workers send when the link of their aggregator gets slower under load,
 * and fast again (XAgg's Fig. 21): a stream of allreduces over a virtual
 * cluster, whose sums are all looked at, and what each worker has sent in each
 * window of time.
 */
#ifndef TRIB_CLI_RATES_HALVE_H
#define TRIB_CLI_RATES_HALVE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define HALVE_WORKERS_MAX 16u
#define HALVE_WINDOWS_MAX 480u
#define HALVE_PHASES 3u

struct halve_options {
	unsigned workers;
	uint64_t link_bps, slow_bps; /* of the aggregator's link; the others have link_bps */
	double phase_s, window_s;
	uint64_t bytes; /* of a vector */
	bool told;      /* tribd gets --link, so that it shares the link out */
	bool whole;     /* up to 64 KB cross at once, instead of packet by packet */
};

/* Between two changes of the link. */
struct halve_phase {
	double goodput_bps; /* of a worker: bytes of vectors summed in the time */
	double lowest_bps;  /* of a worker, in the slowest window */
	double settled_s;   /* until it stays near the phase's level; < 0: it does not */
	double level_bps;   /* of a worker, over the phase's second half */
	double ripple;      /* how far it was from that there, at most, as a share of it */
	uint64_t sent, resent;
};

struct halve_result {
	char plane[8];
	unsigned n;     /* windows */
	unsigned at[2]; /* the window in which the link changed */
	double window_s;
	double bps[HALVE_WINDOWS_MAX]; /* of a worker: the mean over all of them */
	struct halve_phase phases[HALVE_PHASES];
	uint64_t rounds, wrong;
	double worker_cpu, aggregator_cpu; /* seconds of a core a second; workers: all together */
	char why[240];                     /* it did not run; "" it did */
};

trib_status halve_run(const struct halve_options *options, const char *plane,
                      struct halve_result *out);

/*
 * rates_settle.c, pure. A rate has settled when it stays near its level to the
 * end. Who has to find out what a link carries tries more now and then, and
 * has less for a while when that was too much: near is what holds all of that.
 */
struct settle {
	unsigned span; /* windows of which the mean is looked at, */
	double share;  /* which is no further from the level */
};
/* The time from window `from` on until that is so up to window `to`. Negative: it is not. */
double settle_time(const double *bps, unsigned from, unsigned to, const struct settle *how,
                   double level, double window_s);
/* The furthest that such means are from the level, as a share of it. */
double settle_ripple(const double *bps, unsigned from, unsigned to, unsigned span, double level);
double settle_mean(const double *bps, unsigned from, unsigned to);
double settle_lowest(const double *bps, unsigned from, unsigned to);

#endif
