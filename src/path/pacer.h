/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pacing to a given rate, without burning a core: the sender asks when it may
 * go on, and sleeps until then. A sleep is as long as a batch of packets takes,
 * so that there are some thousand of them a second and not one a packet, also
 * for who is woken by something else meanwhile; what is late by then leaves at
 * once, so the rate is kept.
 */
#ifndef TRIB_PATH_PACER_H
#define TRIB_PATH_PACER_H

#include <stdint.h>

/* What may be sent at once after a pause. Cores that are shared give a thread back after some ms:
   what it could not send meanwhile would be lost to the rate. */
#define PACER_BURST_NS 5000000ull
#define PACER_NAP_NS 500000ull       /* the longest sleep between two batches */
#define PACER_BATCH 65536u           /* bytes of one */
#define PACER_STALE_NS 2000000000ull /* a rate that nobody has repeated for so long is over */

struct pacer {
	uint64_t rate;    /* bits a second; 0: no limit */
	uint64_t free_at; /* when the next packet could leave */
	uint64_t nap_end; /* ... and when it may, with others */
	uint64_t own;     /* the user's limit; 0: none */
	uint64_t given;   /* the receiver's; 0: none */
	uint64_t told_at; /* when that was last said */
	uint32_t serial;  /* of the rate that the receiver last gave */
};

static inline void pacer_choose(struct pacer *pacer, uint64_t given)
{
	pacer->rate = !given || (pacer->own && pacer->own < given) ? pacer->own : given;
}

/* Before any word of the receiver but its first. */
static inline void pacer_start(struct pacer *pacer, uint64_t own, uint64_t given, uint64_t now)
{
	*pacer = (struct pacer){ .own = own, .given = given, .told_at = now };
	pacer_choose(pacer, given);
}

/* The receiver shares out its links (0: no limit); what a newer word has overtaken is over. */
static inline void pacer_given(struct pacer *pacer, uint64_t rate, uint32_t serial, uint64_t now)
{
	if ((int32_t)(serial - pacer->serial) < 0)
		return;
	if (serial != pacer->serial)
		pacer->given = rate;
	pacer->serial = serial;
	pacer->told_at = now;
	pacer_choose(pacer, pacer->given);
}

/* Nobody stands by the rate any more: the user's own holds, and what is confirmed (flight.h). */
static inline void pacer_forget(struct pacer *pacer, uint64_t now)
{
	if (pacer->given && now > pacer->told_at + PACER_STALE_NS)
		pacer_choose(pacer, 0);
}

/* When may a packet leave? Not after `now`: at once. Else it is worth waking up then. */
static inline uint64_t pacer_free_at(const struct pacer *pacer)
{
	if (!pacer->rate)
		return 0;
	return pacer->free_at > pacer->nap_end ? pacer->free_at : pacer->nap_end;
}

static inline uint64_t pacer_span(const struct pacer *pacer, uint32_t bytes)
{
	return bytes * 8000000000ull / pacer->rate;
}

static inline void pacer_sent(struct pacer *pacer, uint64_t now, uint32_t bytes)
{
	if (!pacer->rate)
		return;
	if (pacer->free_at + PACER_BURST_NS < now)
		pacer->free_at = now - PACER_BURST_NS;
	pacer->free_at += pacer_span(pacer, bytes);
	if (pacer->free_at > now) {
		uint64_t batch = pacer_span(pacer, PACER_BATCH);

		pacer->nap_end = pacer->free_at + (batch < PACER_NAP_NS ? batch : PACER_NAP_NS);
	}
}

#endif
