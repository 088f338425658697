/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot_timer: how long to wait for an answer, and how many packets may be on their way. Pure.
 *
 * The timeout follows from measured round trips. It doubles with each repeat only if nothing else
 * was answered meanwhile. The window halves when a packet was lost, once for all that was sent
 * before that, and grows with answers.
 */
#ifndef TRIB_SPARSE_HOT_HOT_TIMER_H
#define TRIB_SPARSE_HOT_HOT_TIMER_H

#include <stdint.h>

#define HOT_TIMEOUT_FIRST 2000000ull /* 2 ms while the round-trip time is unknown */
#define HOT_TIMEOUT_MIN 500000ull    /* 0.5 ms */
#define HOT_TIMEOUT_MAX 100000000ull /* 0.1 s */
#define HOT_LEAST_MAX 16000000ull    /* 16 ms: the most that the least timeout becomes */
#define HOT_WINDOW_FIRST 32u
#define HOT_WINDOW_MIN 4u

struct hot_timer {
	uint64_t rtt, spread; /* ns, smoothed; 0: unknown */
	uint64_t heard_at;    /* ns: when an answer last came */
	uint64_t least;       /* ns: the least timeout */
	uint64_t shrunk_at; /* ns: losses of what was sent before do not shrink the window again */
	uint32_t window, window_max;
	uint32_t grown;     /* answers since the window last grew */
	uint32_t threshold; /* below it the window grows with each answer */
};

static inline void hot_timer_init(struct hot_timer *timer, uint32_t window_max)
{
	*timer = (struct hot_timer){ .least = HOT_TIMEOUT_MIN,
		                     .window_max = window_max,
		                     .window = HOT_WINDOW_FIRST < window_max ? HOT_WINDOW_FIRST
		                                                             : window_max,
		                     .threshold = window_max };
}

/* When a packet that was sent `tries` times has to be repeated. */
static inline uint64_t hot_timer_due(const struct hot_timer *timer, uint64_t sent_at,
                                     unsigned tries)
{
	uint64_t timeout = timer->rtt ? timer->rtt + 4 * timer->spread : HOT_TIMEOUT_FIRST;
	unsigned doubled = tries > 1 && timer->heard_at <= sent_at ? tries - 1 : 0;

	if (timeout < timer->least)
		timeout = timer->least;
	timeout <<= doubled < 10 ? doubled : 10;
	return sent_at + (timeout < HOT_TIMEOUT_MAX ? timeout : HOT_TIMEOUT_MAX);
}

/*
 * An answer that comes sooner after a repeat than the way takes is to an earlier copy: the timeout
 * was too short. On a busy machine that happens again and again, so the least timeout grows. It
 * shrinks slowly.
 */
static inline void hot_timer_judge(struct hot_timer *timer, uint64_t took, unsigned tries)
{
	if (tries > 1 && took < timer->rtt / 2)
		timer->least = 2 * timer->least < HOT_LEAST_MAX ? 2 * timer->least : HOT_LEAST_MAX;
	else if (tries == 1 && timer->least > HOT_TIMEOUT_MIN)
		timer->least -= timer->least / 512;
}

/* An answer has come to a packet that was sent `tries` times. */
static inline void hot_timer_answered(struct hot_timer *timer, uint64_t sent_at, unsigned tries,
                                      uint64_t now)
{
	uint64_t took = now > sent_at ? now - sent_at : 0;
	uint64_t off = took > timer->rtt ? took - timer->rtt : timer->rtt - took;

	timer->heard_at = now;
	hot_timer_judge(timer, took, tries);
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

/* A packet that was sent at this time is lost, and is repeated now. */
static inline void hot_timer_lost(struct hot_timer *timer, uint64_t sent_at, uint64_t now)
{
	if (sent_at < timer->shrunk_at)
		return;
	timer->shrunk_at = now;
	timer->window = timer->window / 2 > HOT_WINDOW_MIN ? timer->window / 2 : HOT_WINDOW_MIN;
	if (timer->window > timer->window_max)
		timer->window = timer->window_max;
	timer->threshold = timer->window;
	timer->grown = 0;
}

#endif
