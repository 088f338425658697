/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pacing to a given rate, without burning a core: the sender asks when it may
 * go on, and sleeps until then.
 */
#ifndef TRIB_PATH_PACER_H
#define TRIB_PATH_PACER_H

#include <stdint.h>

#define PACER_BURST_NS 1000000ull /* what may be sent at once after a pause */

struct pacer {
	uint64_t rate;    /* bits a second; 0: no limit */
	uint64_t free_at; /* when the next packet may leave */
};

/* When may a packet leave? Not after `now`: at once. */
static inline uint64_t pacer_free_at(const struct pacer *pacer)
{
	return pacer->rate ? pacer->free_at : 0;
}

static inline void pacer_sent(struct pacer *pacer, uint64_t now, uint32_t bytes)
{
	if (!pacer->rate)
		return;
	if (pacer->free_at + PACER_BURST_NS < now)
		pacer->free_at = now - PACER_BURST_NS;
	pacer->free_at += bytes * 8000000000ull / pacer->rate;
}

#endif
