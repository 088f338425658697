/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_meter: measures what a path carries, from the sender's side. Pure.
 *
 * It counts confirmed packets over an interval in which the path was the bottleneck: the
 * sender always had more to send than the path took. If something else held the sender
 * back, the interval is discarded.
 */
#ifndef TRIB_PATH_PATH_METER_H
#define TRIB_PATH_PATH_METER_H

#include <stdbool.h>
#include <stdint.h>

#define METER_SPAN_NS 20000000ull   /* 20 ms: the shortest interval; buffers distort shorter ones */
#define METER_SPAN_MAX 200000000ull /* 200 ms: the longest interval, for slow paths */
#define METER_PACKETS 32u           /* the fewest packets that give a rate */

struct meter {
	uint64_t since;     /* start of the interval; 0: none runs */
	uint64_t confirmed; /* packets confirmed before the interval */
	bool pressed;       /* the path has held the sender back in this interval */
	uint64_t bps;       /* smoothed rate of the path; 0: unknown */
	unsigned rates;     /* measured so far */
};

/* Something other than the path holds the sender back: the interval is discarded. */
static inline void meter_hindered(struct meter *meter)
{
	meter->since = 0;
}

/* The path holds the sender back: too much is in flight, or the socket is full. */
static inline void meter_pressed(struct meter *meter)
{
	meter->pressed = true;
}

/* `confirmed` packets of `bytes` each have been confirmed since the start. */
static inline void meter_confirmed(struct meter *meter, uint64_t now, uint64_t confirmed,
                                   uint32_t bytes)
{
	uint64_t span = now - meter->since, packets = confirmed - meter->confirmed;

	if (meter->since &&
	    (span < METER_SPAN_NS || (packets < METER_PACKETS && span < METER_SPAN_MAX)))
		return;
	if (meter->since && meter->pressed && packets >= METER_PACKETS) {
		double bps = (double)packets * bytes * 8e9 / (double)span;

		meter->bps = meter->bps ? (uint64_t)(0.75 * (double)meter->bps + 0.25 * bps)
		                        : (uint64_t)bps;
		meter->rates++;
	}
	meter->since = now;
	meter->confirmed = confirmed;
	meter->pressed = false;
}

#endif
