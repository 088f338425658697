/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pacing to a given rate, without burning a core: the sender asks when it may
 * go on, and sleeps until then. A sleep is as long as a batch of packets takes,
 * so that there are some thousand of them a second and not one a packet, also
 * for who is woken by something else meanwhile; what is late by then leaves at
 * once, so the rate is kept.
 *
 * Where the kernel keeps packets until a time that they carry (SO_TXTIME and the
 * qdisc fq), the sender is ahead: it gives them away some milliseconds early,
 * each with its time. Then packets leave one by one however late the sender
 * wakes, and it wakes seldom. It is not further ahead than that, for another
 * rate is to hold soon; and so the rate is kept even if fq is taken away.
 * (SO_MAX_PACING_RATE is no way: for UDP the kernel only ever lowers it.)
 */
#ifndef TRIB_PATH_PACER_H
#define TRIB_PATH_PACER_H

#include <stdbool.h>
#include <stdint.h>

/* What may be sent at once after a pause. Cores that are shared give a thread back after some ms:
   what it could not send meanwhile would be lost to the rate. */
#define PACER_BURST_NS 5000000ull
#define PACER_NAP_NS 500000ull       /* the longest sleep between two batches */
#define PACER_BATCH 65536u           /* bytes of one */
#define PACER_STALE_NS 2000000000ull /* a rate that nobody has repeated for so long is over */
#define PACER_AHEAD_NS 4000000ull    /* how far ahead of time packets are given to the kernel */
#define PACER_MESSAGE_NS 80000       /* packets of so long may leave together */
#define PACER_HELD 64u               /* messages that it then holds; fq drops a flow's 101st */
#define PACER_HELD_MIN 8u            /* where it would hold fewer, nothing is gained */

struct pacer {
	uint64_t rate;    /* bits a second; 0: no limit */
	uint64_t free_at; /* when the next packet could leave */
	uint64_t nap_end; /* ... and when it may, with others */
	uint64_t own;     /* the user's limit; 0: none */
	uint64_t given;   /* the receiver's; 0: none */
	uint64_t told_at; /* when that was last said */
	uint32_t serial;  /* of the rate that the receiver last gave */

	/* Where the kernel keeps packets until their time: */
	uint32_t held_bytes;        /* it may have so many; 0: it does not keep any */
	uint32_t held;              /* ... in so many messages */
	uint64_t leaves_at;         /* when what was last sent leaves */
	uint64_t next_at;           /* ... and what is sent next */
	uint64_t times[PACER_HELD]; /* when the last messages leave, as a ring */
	uint32_t n_times;

	uint64_t naps;     /* times that the sender had to sleep for the rate */
	uint64_t messages; /* that were given away with a time */
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

/*
 * How fast the sender of this share of each vector could send, in units, as it reports it. The
 * receiver learns the share by it, so one without a limit says that share of the most that can be
 * said; 0: it has no limit, and sends all.
 */
static inline uint32_t pacer_want(const struct pacer *pacer, double share, uint32_t unit)
{
	uint64_t units = pacer->own / unit;

	if (!pacer->own)
		units = share < 1 ? (uint64_t)(share * (double)UINT32_MAX) : 0;
	return units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
}

/*
 * The kernel keeps packets until their time: so many bytes fit its buffer, and
 * so many messages of a flow its queue. False: too few.
 */
static inline bool pacer_go_ahead(struct pacer *pacer, uint32_t bytes, uint32_t messages)
{
	messages = messages * 2 / 3; /* reports go the same way */
	if (!bytes || messages < PACER_HELD_MIN)
		return false;
	pacer->held_bytes = bytes;
	pacer->held = messages < PACER_HELD ? messages : PACER_HELD;
	return true;
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

static inline uint64_t pacer_span(const struct pacer *pacer, uint32_t bytes)
{
	return bytes * 8000000000ull / pacer->rate;
}

/* When may a packet be sent? Not after `now`: at once. Else it is worth waking up then. */
static inline uint64_t pacer_free_at(const struct pacer *pacer)
{
	if (!pacer->rate)
		return 0;
	if (pacer->held_bytes)
		return pacer->nap_end;
	return pacer->free_at > pacer->nap_end ? pacer->free_at : pacer->nap_end;
}

static inline uint64_t pacer_ahead(const struct pacer *pacer)
{
	uint64_t span = pacer_span(pacer, pacer->held_bytes);

	return span < PACER_AHEAD_NS ? span : PACER_AHEAD_NS;
}

/* Who is late makes up for it at twice the rate, not all at once. */
static inline void pacer_sent_ahead(struct pacer *pacer, uint64_t now, uint32_t bytes)
{
	uint64_t span = pacer_span(pacer, bytes), ahead = pacer_ahead(pacer);
	uint64_t next;

	if (pacer->leaves_at < pacer->next_at)
		pacer->leaves_at = pacer->next_at;
	if (pacer->leaves_at < now)
		pacer->leaves_at = now;
	pacer->free_at += span;
	next = pacer->leaves_at + span / 2;
	pacer->next_at = next > pacer->free_at ? next : pacer->free_at;
	if (pacer->next_at > now + ahead)
		pacer->nap_end = pacer->next_at - ahead / 2;
}

static inline void pacer_sent(struct pacer *pacer, uint64_t now, uint32_t bytes)
{
	if (!pacer->rate)
		return;
	if (pacer->free_at + PACER_BURST_NS < now)
		pacer->free_at = now - PACER_BURST_NS;
	if (pacer->held_bytes) {
		pacer_sent_ahead(pacer, now, bytes);
		return;
	}
	pacer->free_at += pacer_span(pacer, bytes);
	if (pacer->free_at > now) {
		uint64_t batch = pacer_span(pacer, PACER_BATCH);

		pacer->nap_end = pacer->free_at + (batch < PACER_NAP_NS ? batch : PACER_NAP_NS);
	}
}

/* When what is sent now leaves if it is not to overtake anything; 0: at once. */
static inline uint64_t pacer_time(const struct pacer *pacer, uint64_t now)
{
	return pacer->leaves_at > now ? pacer->leaves_at : 0;
}

/* Packets that leave at this time (0: at once) are one message. */
static inline void pacer_message(struct pacer *pacer, uint64_t now, uint64_t time)
{
	uint64_t half;

	if (!pacer->held_bytes)
		return;
	pacer->times[pacer->n_times++ % PACER_HELD] = time;
	pacer->messages += time != 0;
	/* Full: until half of them have left. */
	half = pacer->times[(pacer->n_times - pacer->held / 2) % PACER_HELD];
	if (pacer->times[(pacer->n_times - pacer->held) % PACER_HELD] > now &&
	    half > pacer->nap_end)
		pacer->nap_end = half;
}

/*
 * Packets that leave together: so many bytes at most, or one packet, as always where
 * the kernel does not take several in one. UINT32_MAX: it is all one.
 */
static inline uint32_t pacer_message_bytes(const struct pacer *pacer, bool joins)
{
	double bytes;

	if (!pacer->held_bytes || !pacer->rate)
		return UINT32_MAX;
	if (!joins)
		return 0;
	bytes = (double)pacer->rate / 8e9 * PACER_MESSAGE_NS;
	return bytes < (double)UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

#endif
