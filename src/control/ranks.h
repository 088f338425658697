/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks at work, judged by what they say in their reports: XAgg's evaluation of
 * workers (§V), of every round instead of the first one. Pure.
 */
#ifndef TRIB_CONTROL_RANKS_H
#define TRIB_CONTROL_RANKS_H

#include <stdbool.h>

#define RANKS_SLOW 0.7 /* a link that carries less than this part of what is planned is slow */
#define RANKS_APART \
	1.4 /* times as much another rank's carries: then it is the link, not what all share */

#define RANKS_COMMUNICATE 0.2 /* below this share of a step, how fast it goes says little */
#define RANKS_LATE 0.6        /* of what the plan would give in that share: less is late */

/* What a rank of a plan has said. */
struct rank_word {
	double waits;       /* share of its time that it waits for results; below 0: unknown */
	double carries_bps; /* its link, when there was always more to send; 0: unknown */
};

/*
 * The share of a step that communication takes: what the rank waits that waits least.
 * The others wait for that one too, and no tree makes it faster. Below 0: not all have said.
 */
double ranks_share(const struct rank_word *words, unsigned n);

/*
 * Whose link is slower than the plan's rate asks for, into slow[n]: what it carries; 0: nothing is
 * wrong with it, or that is not known. A rank beside an aggregator of the plan (aggregates[])
 * shares its link with that, and says nothing of it.
 */
void ranks_slow(const struct rank_word *words, unsigned n, double rate_bps, const bool *aggregates,
                double *slow);

/*
 * The part of a step that a rank computes and sends in, XAgg's t1 + t2: it waits `waits` of the
 * step (below 0: unknown), and its link carries so many times what it sends. 0: unknown.
 */
double ranks_round(double waits, double rate_bps, double link_bps);

/*
 * Do the vectors go much slower than was planned? `rate_bps` of wall time (0: unknown), where
 * communication takes `share` of a step (below 0: unknown).
 */
bool ranks_late(double rate_bps, double share, double planned_bps);

#endif
