/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a path carries, seen by its sender: packets that were confirmed over a
 * while in which there was always more to send than the path took. A sender
 * that waits for others, or has nothing to say, learns nothing. Pure.
 */
#ifndef TRIB_PATH_METER_H
#define TRIB_PATH_METER_H

#include <stdbool.h>
#include <stdint.h>

#define METER_SPAN_NS 20000000ull /* shorter ones are judged by what buffers swallow */
#define METER_PACKETS 32u         /* fewer are too few to judge by */

struct meter {
	uint64_t since;     /* when this while began; 0: there is none */
	uint64_t confirmed; /* packets by then */
	bool pressed;       /* the path has held the sender back since */
	uint64_t bps;       /* what it carries, of late; 0: not known */
};

/* Something else than the path holds the sender back. */
static inline void meter_hindered(struct meter *meter)
{
	meter->since = 0;
}

/* The path does: too much is under way, or the socket is full. */
static inline void meter_pressed(struct meter *meter)
{
	meter->pressed = true;
}

/* So many packets in all, of so many bytes each, have come through. */
static inline void meter_confirmed(struct meter *meter, uint64_t now, uint64_t confirmed,
                                   uint32_t bytes)
{
	uint64_t span = now - meter->since, packets = confirmed - meter->confirmed;

	if (meter->since && span < METER_SPAN_NS)
		return;
	if (meter->since && meter->pressed && packets >= METER_PACKETS) {
		double bps = (double)packets * bytes * 8e9 / (double)span;

		meter->bps = meter->bps ? (uint64_t)(0.75 * (double)meter->bps + 0.25 * bps)
		                        : (uint64_t)bps;
	}
	meter->since = now;
	meter->confirmed = confirmed;
	meter->pressed = false;
}

#endif
