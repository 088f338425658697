/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What losses say about the rate of a lane's children (XAgg §IV-C: over 1 % in
 * a period, and they get less). Each child says of how many packets it knows
 * what has become of them, and how many of those were lost; what comes out is
 * a factor, of the share that they would get. It is one for all, as no sum
 * leaves before the slowest has brought its part: nobody need be faster.
 *
 * Too much lost, twice in a row if it is not very much: the factor falls by what was lost (half at
 * most), and a little more, so that the queue that overflows can drain. Nothing lost: it goes back
 * to where the losses began, rests there, and then tries more in growing steps; a try that fails
 * ends where it began, or nearer to what failed if it went far, and the rest is longer after it. A
 * link that has become slower so loses packets for a moment now and then, one that is fast again is
 * found out soon.
 *
 * A queue that all share drops the packets of this one or that, as it happens, and most of them at
 * one moment. So what all have lost counts, over a while, and of everyone; but of the same few who
 * lose period after period, while most do not, what they have lost: they have slow links.
 *
 * Losses that do not become fewer although the factor falls again and again are a path's own
 * (noise, not a queue): the factor goes back, and only what is lost beyond them counts; should that
 * be too much soon, it was a queue after all. Pure; the clock is the caller's.
 */
#ifndef TRIB_PLAN_LOSSES_H
#define TRIB_PLAN_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#define LOSSES_CHILDREN_MAX 64u
#define LOSSES_MAX 0.01 /* of a child's packets in a period; more is too much */
#define LOSSES_PERIOD_NS 100000000ull
#define LOSSES_SOON_NS 50000000ull  /* a period in which much is lost is over sooner */
#define LOSSES_BLIND_NS 60000000ull /* after a cut: what left before it is still found lost */
#define LOSSES_LEAST 0.05           /* the factor, whatever is lost */

struct losses {
	double factor;
	double ceiling; /* the factor that the last losses had left; above 1: none is known */
	double failed;  /* ... and that was too much, */
	double from;    /* ... before the last cut of all, */
	double step;    /* of the next try */
	uint64_t try_at, rest; /* when to try more, and how long that rests */
	uint64_t since;        /* when the period began, or will; 0: not yet */
	bool struck;           /* the last period had losses that could be chance */
	/* Cuts in a row that did not help: */
	unsigned cuts;
	uint64_t cut_at;
	double before, share; /* the factor before the first, and the share lost then */
	double back;          /* ... and after the last, if they are undone, */
	uint64_t back_until;  /* ... and until when that may turn out to be wrong */
	uint64_t known;       /* children that have said something, */
	uint64_t spoke, few; /* ... in the last period, and lost too much then while most did not */
	struct {
		uint32_t judged, lost;           /* as it last said */
		uint32_t from_judged, from_lost; /* when the period began, */
		uint32_t cut_judged, cut_lost;   /* and when the cuts did */
		double own;                      /* the share that its path loses by itself */
	} children[LOSSES_CHILDREN_MAX];
};

void losses_init(struct losses *losses);
/* The child's counters, which may wrap, are these now. True: the factor is another one. */
bool losses_hear(struct losses *losses, unsigned child, uint64_t now, uint32_t judged,
                 uint32_t lost);

#endif
