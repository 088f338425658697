/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges ranks by their reports: XAgg's evaluation of workers (§V), in every round instead of only
 * the first. Pure.
 */
#ifndef TRIB_CONTROL_POLICY_RANK_HEALTH_H
#define TRIB_CONTROL_POLICY_RANK_HEALTH_H

#include <stdbool.h>

#define RANK_LINK_SLOW 0.7  /* a link with less than this part of the planned rate is slow */
#define RANK_LINK_APART 1.4 /* some other link must carry this many times as much */

#define RANK_COMMUNICATES 0.2 /* share of a step; below it, the measured rate says little */
#define RANK_PLAN_LATE 0.6    /* part of the planned rate; a slower plan is late */

/* The report of one rank. */
struct rank_sample {
	double waits;       /* share of time spent waiting for results; below 0: unknown */
	double carries_bps; /* rate of its link while it always had more to send; 0: unknown */
};

/*
 * The share of a step that communication takes: the waiting time of the rank that waits least. The
 * other ranks also wait for that rank, and no tree makes it faster. Below 0: a report is missing.
 */
double rank_health_share(const struct rank_sample *samples, unsigned n);

/*
 * Finds links that are slower than the plan's rate needs. slow[rank]: the link's rate; 0: the link
 * is fine, or unknown. A rank beside an aggregator of the plan (aggregates[]) shares its link with
 * it, so its report does not count.
 */
void rank_health_slow(const struct rank_sample *samples, unsigned n, double rate_bps,
                      const bool *aggregates, double *slow);

/*
 * XAgg's t1 + t2: the part of a step in which a rank computes and sends; 0: unknown. `waits`: the
 * part in which it waits (below 0: unknown). The rank sends at rate_bps over a link of link_bps.
 */
double rank_health_round(double waits, double rate_bps, double link_bps);

/*
 * Is the plan much slower than planned? `rate_bps`: measured over wall time; 0: unknown. `share`:
 * of a step that communication takes; below 0: unknown.
 */
bool rank_health_late(double rate_bps, double share, double planned_bps);

#endif
