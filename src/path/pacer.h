/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pacer: sends at a given rate without burning a core. Pure.
 *
 * The sender asks when it may go on, and sleeps until then. A sleep lasts as long as a
 * batch of packets takes (PACER_BATCH bytes), so there are some thousand sleeps a
 * second and not one a packet. If the sender wakes late, the overdue packets leave at
 * once, so the rate holds.
 *
 * If the kernel can hold packets until their departure time (SO_TXTIME and the qdisc
 * fq), the sender works ahead: it hands packets over up to PACER_AHEAD_NS early, each
 * with its time. Packets are then evenly spaced however late the sender wakes. It does
 * not work further ahead, so that a new rate takes effect soon, and the rate holds even
 * if fq is removed. SO_MAX_PACING_RATE does not serve: for UDP the kernel only ever
 * lowers it.
 */
#ifndef TRIB_PATH_PACER_H
#define TRIB_PATH_PACER_H

#include <stdbool.h>
#include <stdint.h>

/* 5 ms: the longest backlog that is sent at once. On a shared core a thread may lose several
   milliseconds; without a backlog these would be lost to the rate. */
#define PACER_BURST_NS 5000000ull
#define PACER_NAP_NS 500000ull       /* 0.5 ms: the longest sleep between two batches */
#define PACER_BATCH 65536u           /* bytes of a batch */
#define PACER_STALE_NS 2000000000ull /* 2 s: a received rate expires if not repeated this long */
#define PACER_AHEAD_NS 4000000ull    /* 4 ms: how early packets are handed to the kernel at most */
#define PACER_MESSAGE_NS 80000       /* 80 us: packets within this time may form one message */
#define PACER_HELD 64u               /* messages the kernel holds at most; fq drops the 101st */
#define PACER_HELD_MIN 8u            /* working ahead does not pay with fewer messages */

struct pacer {
	uint64_t rate;    /* bits a second; 0: no limit */
	uint64_t free_at; /* when the rate allows the next packet */
	uint64_t nap_end; /* when the sender may wake to send the next batch */
	uint64_t own;     /* the user's limit; 0: none */
	uint64_t given;   /* the receiver's limit; 0: none */
	uint64_t told_at; /* when the receiver last confirmed its limit */
	uint32_t serial;  /* serial number of the receiver's limit */

	/* Used only if the kernel holds packets until their departure time: */
	uint32_t held_bytes;        /* bytes that the kernel may hold; 0: it holds none */
	uint32_t held;              /* messages that the kernel may hold */
	uint64_t leaves_at;         /* departure time of the last packet */
	uint64_t next_at;           /* departure time of the next packet */
	uint64_t times[PACER_HELD]; /* ring of the departure times of the last messages */
	uint32_t n_times;           /* messages ever entered into the ring */

	uint64_t naps;     /* times that the sender slept for the rate */
	uint64_t messages; /* messages handed over with a departure time */
};

static inline void pacer_choose(struct pacer *pacer, uint64_t given)
{
	pacer->rate = !given || (pacer->own && pacer->own < given) ? pacer->own : given;
}

/* Starts with the receiver's first limit, from its WELCOME. */
static inline void pacer_start(struct pacer *pacer, uint64_t own, uint64_t given, uint64_t now)
{
	*pacer = (struct pacer){ .own = own, .given = given, .told_at = now };
	pacer_choose(pacer, given);
}

/*
 * The rate that the sender asks for in its reports, in units of `unit` bits a second. `share` is
 * the part of each vector that it sends to this receiver. A sender without a limit of its own asks
 * for that share of UINT32_MAX, which tells the receiver the share. 0: no limit, whole vectors.
 */
static inline uint32_t pacer_want(const struct pacer *pacer, double share, uint32_t unit)
{
	uint64_t units = pacer->own / unit;

	if (!pacer->own)
		units = share < 1 ? (uint64_t)(share * (double)UINT32_MAX) : 0;
	return units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
}

/*
 * The kernel holds packets until their time: up to `bytes` in the socket buffer and up to
 * `messages` of one flow in the queue. False: that is too few to work ahead.
 */
static inline bool pacer_go_ahead(struct pacer *pacer, uint32_t bytes, uint32_t messages)
{
	messages = messages * 2 / 3; /* reports use the same queue */
	if (!bytes || messages < PACER_HELD_MIN)
		return false;
	pacer->held_bytes = bytes;
	pacer->held = messages < PACER_HELD ? messages : PACER_HELD;
	return true;
}

/* The receiver sets a limit (0: none). A limit with an older serial number is ignored. */
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

/* If the receiver's limit has expired, only the user's limit and path/in_flight.h apply. */
static inline void pacer_forget(struct pacer *pacer, uint64_t now)
{
	if (pacer->given && now > pacer->told_at + PACER_STALE_NS)
		pacer_choose(pacer, 0);
}

static inline uint64_t pacer_span(const struct pacer *pacer, uint32_t bytes)
{
	return bytes * 8000000000ull / pacer->rate;
}

/* When the next packet may be sent. The sender sleeps until then. */
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

/* A late sender catches up at twice the rate, not with one burst. */
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

/* Departure time for a packet that must not overtake earlier ones; 0: at once. */
static inline uint64_t pacer_time(const struct pacer *pacer, uint64_t now)
{
	return pacer->leaves_at > now ? pacer->leaves_at : 0;
}

/* One message was handed over that leaves at `time` (0: at once). */
static inline void pacer_message(struct pacer *pacer, uint64_t now, uint64_t time)
{
	uint64_t half;

	if (!pacer->held_bytes)
		return;
	pacer->times[pacer->n_times++ % PACER_HELD] = time;
	pacer->messages += time != 0;
	/* If the kernel's queue is full, sleep until half of it has left. */
	half = pacer->times[(pacer->n_times - pacer->held / 2) % PACER_HELD];
	if (pacer->times[(pacer->n_times - pacer->held) % PACER_HELD] > now &&
	    half > pacer->nap_end)
		pacer->nap_end = half;
}

/*
 * Bytes that may leave as one message. 0: a single packet, because the kernel does not join
 * packets (`joins` is false). UINT32_MAX: no limit.
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
