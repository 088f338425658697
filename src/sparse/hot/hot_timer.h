/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot_timer: how long to wait for an answer, and how many packets may be on their way. Pure.
 *
 * A packet counts as lost when an answer came to one that was sent clearly later. If no answer
 * comes at all, a timer runs, which follows from measured round trips (as RFC 6298 does). Then one
 * packet is repeated, and not all that are on their way: their answers may be late together. It
 * doubles until an answer comes. If that answers the first copy, the packet was only late: the
 * window is as before, and answers may be out of order by more from then on.
 *
 * The window halves when a packet was lost, once for all that was sent before that, and grows with
 * answers. One that stands for several flows behaves as these do together: it loses less for a
 * packet, and grows faster. Silence halves it all the same. With a limit on the delay, the window
 * does not fill the queues of slow links: round trips are compared with the shortest one, which had
 * no queue. A window whose packets all wait longer than the limit shrinks, and grows only while
 * packets wait for less than half of it.
 */
#ifndef TRIB_SPARSE_HOT_HOT_TIMER_H
#define TRIB_SPARSE_HOT_HOT_TIMER_H

#include <stdint.h>

#define HOT_TIMEOUT_FIRST 2000000ull /* 2 ms while the round-trip time is unknown */
#define HOT_TIMEOUT_MIN 500000ull    /* 0.5 ms */
#define HOT_TIMEOUT_MAX 400000000ull /* 0.4 s */
#define HOT_SPREAD_STEP 20000ull     /* 20 us */
#define HOT_SPREAD_MAX 10000000ull   /* 10 ms */
#define HOT_DELAY_MAX 8000000ull     /* 8 ms: less than the queue of a shallow switch holds */
#define HOT_SPAN 5000000000ull       /* 5 s: the shortest round trip of one to two spans counts */
#define HOT_WINDOW_FIRST 32u
#define HOT_WINDOW_MIN 4u
#define HOT_WINDOW_SLOW 8u /* a queue alone makes no window smaller: it may be that of others */

struct hot_timer {
	uint64_t rtt, spread; /* ns, smoothed; 0: unknown */
	uint64_t slack;       /* ns: answers come out of order by as much */
	uint64_t heard_at;    /* ns: when an answer last came */
	uint64_t repeated_at; /* ns: when a packet was last repeated because no answer came */
	uint64_t newest;      /* ns: when the last packet of those that were answered was sent */
	unsigned silent;      /* such repeats since the last answer */
	uint64_t shrunk_at; /* ns: losses of what was sent before do not shrink the window again */
	uint64_t delay_max; /* ns that packets may wait in queues; 0: no limit */
	uint64_t shortest;  /* ns: round trip of the last span and the present one */
	uint64_t shortest_now; /* ns: of the present span */
	uint64_t span_end;     /* ns */
	uint64_t round_at;     /* ns: when the present round of the window began */
	uint64_t round_least;  /* ns: its shortest round trip */
	uint32_t window, window_max;
	uint32_t window_before; /* the last repeat */
	uint32_t grown;         /* answers since the window last grew */
	uint32_t threshold;     /* below it the window grows with each answer */
	uint32_t flows;         /* that it stands for */
};

static inline void hot_timer_init(struct hot_timer *timer, uint32_t window_max, uint64_t delay_max)
{
	*timer = (struct hot_timer){ .window_max = window_max,
		                     .window = HOT_WINDOW_FIRST < window_max ? HOT_WINDOW_FIRST
		                                                             : window_max,
		                     .threshold = window_max,
		                     .flows = 1,
		                     .delay_max = delay_max,
		                     .shortest = UINT64_MAX,
		                     .shortest_now = UINT64_MAX,
		                     .round_least = UINT64_MAX };
}

/* Is a packet that was sent at this time lost? */
static inline int hot_timer_is_lost(const struct hot_timer *timer, uint64_t sent_at)
{
	return sent_at + timer->rtt / 4 + timer->spread + timer->slack < timer->newest;
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
	/* Another connection may fill the queue at any moment. */
	if (timeout < HOT_TIMEOUT_MIN + timer->delay_max)
		timeout = HOT_TIMEOUT_MIN + timer->delay_max;
	timeout <<= timer->silent < 10 ? timer->silent : 10;
	return sent_at + (timeout < HOT_TIMEOUT_MAX ? timeout : HOT_TIMEOUT_MAX);
}

/* Many packets are measured in a round trip, so the spread forgets slowly. */
static inline void hot_timer_measure(struct hot_timer *timer, uint64_t took)
{
	uint64_t off = took > timer->rtt ? took - timer->rtt : timer->rtt - took;

	if (!timer->rtt) {
		timer->rtt = took ? took : 1;
		timer->spread = took / 2;
		return;
	}
	if (off > timer->spread)
		timer->spread += (off - timer->spread) / 4;
	else
		timer->spread -= (timer->spread - off) / 8;
	timer->rtt += took / 8 - timer->rtt / 8;
}

static inline void hot_timer_grow(struct hot_timer *timer)
{
	if (timer->window >= timer->window_max)
		return;
	if (timer->window < timer->threshold) {
		timer->window++;
	} else if ((timer->grown += timer->flows) >= timer->window) {
		timer->window++;
		timer->grown = 0;
	}
}

/* A round ends with the answer to a packet that was sent after it began. */
static inline void hot_timer_round(struct hot_timer *timer, uint64_t sent_at, uint64_t now)
{
	if (sent_at < timer->round_at)
		return;
	if (timer->round_least > timer->shortest + timer->delay_max &&
	    timer->window > HOT_WINDOW_SLOW) {
		timer->window -= timer->window / 4;
		timer->threshold = timer->window;
		timer->grown = 0;
	}
	timer->round_at = now;
	timer->round_least = UINT64_MAX;
}

/* Keeps the window so small that its packets do not wait longer than the limit. */
static inline void hot_timer_follow(struct hot_timer *timer, uint64_t sent_at, uint64_t took,
                                    uint64_t now)
{
	if (now >= timer->span_end) {
		timer->shortest = timer->shortest_now;
		timer->shortest_now = UINT64_MAX;
		timer->span_end = now + HOT_SPAN;
		timer->slack /= 2;
	}
	if (took < timer->shortest_now)
		timer->shortest_now = took;
	if (took < timer->shortest)
		timer->shortest = took;
	if (took < timer->round_least)
		timer->round_least = took;
	if (!timer->delay_max || took - timer->shortest < timer->delay_max / 2)
		hot_timer_grow(timer);
	if (timer->delay_max)
		hot_timer_round(timer, sent_at, now);
}

/* A packet was repeated, and nothing was lost. */
static inline void hot_timer_was_late(struct hot_timer *timer)
{
	if (timer->slack < HOT_SPREAD_MAX)
		timer->slack += timer->slack + HOT_SPREAD_STEP;
	if (timer->window < timer->window_before)
		timer->window = timer->threshold = timer->window_before;
}

/*
 * An answer has come to a packet that was sent `tries` times, for the last time at `sent_at`. The
 * answer says whether it `is_to_repeat`; if not, it is to the first copy.
 */
static inline void hot_timer_answered(struct hot_timer *timer, uint64_t sent_at, unsigned tries,
                                      int is_to_repeat, uint64_t now)
{
	uint64_t took = now > sent_at ? now - sent_at : 0;

	timer->heard_at = now;
	timer->silent = 0;
	if (tries > 1 && !is_to_repeat) {
		hot_timer_was_late(timer);
		return;
	}
	if (sent_at > timer->newest)
		timer->newest = sent_at;
	if (tries > 1) { /* which repeat it is to, is unknown, so it measures nothing */
		hot_timer_grow(timer);
		return;
	}
	hot_timer_measure(timer, took);
	hot_timer_follow(timer, sent_at, took, now);
}

/* A packet that was sent at this time is repeated now. */
static inline void hot_timer_repeats(struct hot_timer *timer, uint64_t sent_at, uint64_t now)
{
	uint32_t flows = timer->flows;

	if (!hot_timer_is_lost(timer, sent_at)) {
		timer->repeated_at = now;
		timer->silent++;
		flows = 1;
	}
	if (sent_at < timer->shrunk_at)
		return;
	timer->shrunk_at = now;
	/* Answers to repeats measure nothing, so the timeout would stay too short for ever. */
	if (timer->spread < HOT_SPREAD_MAX)
		timer->spread += timer->spread / 2 + HOT_SPREAD_STEP;
	timer->window_before = timer->window;
	timer->window -= (timer->window + flows) / (2 * flows);
	if (timer->window < HOT_WINDOW_MIN)
		timer->window = HOT_WINDOW_MIN;
	if (timer->window > timer->window_max)
		timer->window = timer->window_max;
	timer->threshold = timer->window;
	timer->grown = 0;
}

#endif
