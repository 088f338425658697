/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast something comes, by the middle one of short spans: bursts, stalls and a slow start
 * count for little, and the first span, in which queues fill, for nothing. Pure.
 */
#ifndef TRIB_PATH_SPANS_H
#define TRIB_PATH_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#define SPAN_NS 20000000ull
#define SPANS_MAX 8u   /* those that follow are not looked at */
#define SPANS_LEAST 2u /* from so many on something is known */

struct spans {
	uint64_t since; /* when this one began; 0: none has */
	uint64_t bytes; /* by then */
	unsigned ended; /* so many have, the first one too */
	unsigned n;
	double bps[SPANS_MAX]; /* the fastest first */
};

/* So many bytes have come by now, in all. True: another span begins. */
static inline bool spans_at(struct spans *spans, uint64_t now, uint64_t bytes)
{
	uint64_t span = now - spans->since;

	if (spans->since && (now < spans->since || span < SPAN_NS))
		return false;
	if (spans->since && spans->ended++ && spans->n < SPANS_MAX) {
		/* Counters that have gone back say nothing. */
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

/* Bits a second; 0: not known yet. */
static inline double spans_bps(const struct spans *spans)
{
	return spans->n < SPANS_LEAST ? 0 : spans->bps[spans->n / 2];
}

#endif
