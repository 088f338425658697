/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans: measures a rate as the median over intervals of SPAN_NS. Bursts, stalls and a slow start
 * hardly change a median. The first interval, in which queues fill, is discarded. Pure.
 */
#ifndef TRIB_PATH_SPANS_H
#define TRIB_PATH_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#define SPAN_NS 20000000ull /* 20 ms: length of an interval */
#define SPANS_MAX 8u        /* later intervals are ignored */
#define SPANS_LEAST 2u      /* with fewer intervals the rate is unknown */

struct spans {
	uint64_t since;        /* start of the current interval; 0: none yet */
	uint64_t bytes;        /* bytes received before the current interval */
	unsigned ended;        /* intervals that have ended, the discarded first one included */
	unsigned n;            /* rates in `bps` */
	double bps[SPANS_MAX]; /* in descending order */
};

/* `bytes` have come in all. True: a new interval begins. */
static inline bool spans_at(struct spans *spans, uint64_t now, uint64_t bytes)
{
	uint64_t span = now - spans->since;

	if (spans->since && (now < spans->since || span < SPAN_NS))
		return false;
	if (spans->since && spans->ended++ && spans->n < SPANS_MAX) {
		/* A counter that went back was reset: the interval counts as empty. */
		uint64_t came = bytes > spans->bytes ? bytes - spans->bytes : 0;
		double bps = (double)came * 8e9 / (double)span;
		unsigned at = spans->n++;

		for (; at && spans->bps[at - 1] < bps; at--)
			spans->bps[at] = spans->bps[at - 1];
		spans->bps[at] = bps;
	}
	spans->since = now;
	spans->bytes = bytes;
	return true;
}

/* Bits a second; 0: unknown. */
static inline double spans_bps(const struct spans *spans)
{
	return spans->n < SPANS_LEAST ? 0 : spans->bps[spans->n / 2];
}

#endif
