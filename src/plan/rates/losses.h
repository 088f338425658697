/* SPDX-License-Identifier: Apache-2.0 */
/*
 * losses: adapts the rate of a lane's children to packet loss (XAgg §IV-C: more than 1 % in a
 * period lowers the rate). Pure; the caller supplies the clock.
 *
 * Each child reports how many of its packets have a known fate, and how many of those were lost.
 * The result is one factor for all children, applied to their shares of the link. One factor is
 * enough, because no sum leaves before the slowest child's part has arrived.
 *
 * Falling. If too much is lost, the factor falls by the lost ratio (half at most) and a little
 * more, so that the overflowing queue drains. A moderate loss must occur in two periods in a row.
 *
 * Rising. If nothing is lost, the factor returns to where the losses began, stays there for a
 * while, and then rises in growing steps. A step that causes loss is undone: the factor returns to
 * its value before the step, or closer to the failed value if the step was large. The next pause is
 * longer. So a slowed link loses a few packets now and then, and a recovered link is noticed soon.
 *
 * Which losses count. A shared queue drops packets of random children, most of them at one moment.
 * Therefore the losses of all children together count, over a period. If the same few children lose
 * packets period after period while most do not, these few have slow links, and their losses count.
 *
 * Noise. If losses do not shrink although the factor falls again and again, they are random losses
 * of the path and not a queue's. The factor is restored, and only losses beyond the noise count. If
 * these become too many soon after, it was a queue after all, and the cuts are restored.
 */
#ifndef TRIB_PLAN_RATES_LOSSES_H
#define TRIB_PLAN_RATES_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#define LOSSES_CHILDREN_MAX 64u
#define LOSSES_MAX 0.01               /* loss ratio in a period; more lowers the factor */
#define LOSSES_PERIOD_NS 100000000ull /* 100 ms: length of a period */
#define LOSSES_SOON_NS 50000000ull    /* 50 ms: length of a period with heavy loss */
#define LOSSES_BLIND_NS 60000000ull   /* 60 ms after a cut: losses are of packets sent before it */
#define LOSSES_LEAST 0.05             /* the lowest factor */

struct losses {
	double factor;       /* the result: 1: the full share */
	double ceiling;      /* the factor after the last losses; above 1: unknown */
	double failed;       /* the factor that last caused losses */
	double from;         /* the factor before the last cut */
	double step;         /* size of the next rise */
	uint64_t try_at;     /* time of the next rise */
	uint64_t rest;       /* pause between two rises */
	uint64_t since;      /* start of the period, which may lie ahead; 0: none yet */
	bool struck;         /* the last period had a moderate loss, which may be chance */
	unsigned cuts;       /* cuts in a row that did not help */
	uint64_t cut_at;     /* time of the last of these cuts */
	double before;       /* the factor before the first of these cuts */
	double share;        /* the loss ratio before the first of these cuts */
	double back;         /* the factor after the last of these cuts, if they were undone */
	uint64_t back_until; /* until then, new losses restore the undone cuts */
	uint64_t known;      /* children that have ever reported, as bits */
	uint64_t spoke;      /* children that have reported in this period, as bits */
	uint64_t few;        /* the few children that lost too much in the last period, as bits */
	struct {
		uint32_t judged, lost;           /* the last report */
		uint32_t from_judged, from_lost; /* the report at the start of the period */
		uint32_t cut_judged, cut_lost;   /* the report at the first of the cuts */
		double own;                      /* the random loss ratio of its path */
	} children[LOSSES_CHILDREN_MAX];
};

void losses_init(struct losses *losses);
/* A child reports its counters, which may wrap. True: the factor has changed. */
bool losses_hear(struct losses *losses, unsigned child, uint64_t now, uint32_t judged,
                 uint32_t lost);

#endif
