/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot_timer: how long to wait for an answer, and how many packets may be on their way. Pure.
 *
 * A packet counts as lost when an answer came to one that was sent clearly later. If no answer
 * comes at all, a timer runs, which follows from measured round trips. Then one packet is repeated,
 * and not all that are on their way: their answers may be late together. It doubles until an answer
 * comes.
 *
 * The window halves when a packet was lost, once for all that was sent before that, and grows with
 * answers.
 */
#ifndef TRIB_SPARSE_HOT_HOT_TIMER_H
#define TRIB_SPARSE_HOT_HOT_TIMER_H

#include <stdint.h>

#define HOT_TIMEOUT_FIRST 2000000ull /* 2 ms while the round-trip time is unknown */
#define HOT_TIMEOUT_MIN 500000ull    /* 0.5 ms */
#define HOT_TIMEOUT_MAX 100000000ull /* 0.1 s */
#define HOT_SPREAD_STEP 20000ull     /* 20 us */
#define HOT_SPREAD_MAX 10000000ull   /* 10 ms */
#define HOT_WINDOW_FIRST 32u
#define HOT_WINDOW_MIN 4u

struct hot_timer {
	uint64_t rtt, spread; /* ns, smoothed; 0: unknown */
	uint64_t heard_at;    /* ns: when an answer last came */
	uint64_t repeated_at; /* ns: when a packet was last repeated because no answer came */
	uint64_t newest;      /* ns: when the last packet of those that were answered was sent */
	unsigned silent;      /* such repeats since the last answer */
	uint64_t shrunk_at; /* ns: losses of what was sent before do not shrink the window again */
	uint32_t window, window_max;
	uint32_t grown;     /* answers since the window last grew */
	uint32_t threshold; /* below it the window grows with each answer */
};

static inline void hot_timer_init(struct hot_timer *timer, uint32_t window_max)
{
	*timer = (struct hot_timer){ .window_max = window_max,
		                     .window = HOT_WINDOW_FIRST < window_max ? HOT_WINDOW_FIRST
		                                                             : window_max,
		                     .threshold = window_max };
}

/* Is a packet that was sent at this time lost? */
static inline int hot_timer_is_lost(const struct hot_timer *timer, uint64_t sent_at)
{
	return sent_at + timer->rtt / 4 + timer->spread < timer->newest;
}

/* When a packet that was sent at this time has to be repeated; 0: now. */
static inline uint64_t hot_timer_due(const struct hot_timer *timer, uint64_t sent_at)
{
	uint64_t timeout = timer->rtt ? timer->rtt + 4 * timer->spread : HOT_TIMEOUT_FIRST;

	if (hot_timer_is_lost(timer, sent_at))
		return 0;
	if (sent_at < timer->heard_at)
		sent_at = timer->heard_at;
	if (sent_at < timer->repeated_at)
		sent_at = timer->repeated_at;
	if (timeout < HOT_TIMEOUT_MIN)
		timeout = HOT_TIMEOUT_MIN;
	timeout <<= timer->silent < 10 ? timer->silent : 10;
	return sent_at + (timeout < HOT_TIMEOUT_MAX ? timeout : HOT_TIMEOUT_MAX);
}

/* An answer has come to a packet that was sent `tries` times. */
static inline void hot_timer_answered(struct hot_timer *timer, uint64_t sent_at, unsigned tries,
                                      uint64_t now)
{
	uint64_t took = now > sent_at ? now - sent_at : 0;
	uint64_t off = took > timer->rtt ? took - timer->rtt : timer->rtt - took;

	timer->heard_at = now;
	timer->silent = 0;
	/* An answer that comes too soon after a repeat is to the packet before. */
	if (sent_at > timer->newest && (tries == 1 || took > timer->rtt / 2))
		timer->newest = sent_at;
	if (tries == 1 && !timer->rtt) {
		timer->rtt = took ? took : 1;
		timer->spread = took / 2;
	} else if (tries == 1) { /* that of a repeat tells nothing */
		timer->spread += off / 4 - timer->spread / 4;
		timer->rtt += took / 8 - timer->rtt / 8;
	}
	if (timer->window >= timer->window_max)
		return;
	if (timer->window < timer->threshold) {
		timer->window++;
	} else if (++timer->grown >= timer->window) {
		timer->window++;
		timer->grown = 0;
	}
}

/* A packet that was sent at this time is repeated now. */
static inline void hot_timer_repeats(struct hot_timer *timer, uint64_t sent_at, uint64_t now)
{
	if (!hot_timer_is_lost(timer, sent_at)) {
		timer->repeated_at = now;
		timer->silent++;
	}
	if (sent_at < timer->shrunk_at)
		return;
	timer->shrunk_at = now;
	/* Answers to repeats measure nothing, so the timeout would stay too short for ever. */
	if (timer->spread < HOT_SPREAD_MAX)
		timer->spread += timer->spread / 2 + HOT_SPREAD_STEP;
	timer->window = timer->window / 2 > HOT_WINDOW_MIN ? timer->window / 2 : HOT_WINDOW_MIN;
	if (timer->window > timer->window_max)
		timer->window = timer->window_max;
	timer->threshold = timer->window;
	timer->grown = 0;
}

#endif
