/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_window: how many packets a path may have in flight. Pure.
 *
 * The window follows the delay in queues: it is the round trip less the least one. While the delay
 * is below a target, the window grows, at first by doubling. Above the target it shrinks in
 * proportion to the excess. So the path stays busy, its queue stays short, and traffic that does
 * not yield keeps its share. Loss shrinks the window only if it is heavy: a little loss is the
 * link's.
 *
 * The owner chooses the target: WINDOW_SHORT_NS for data that streams, WINDOW_LONG_NS for bursts
 * that fill a queue by themselves, or if answers are late. The target of small windows is up to
 * twice as long. So flows that share a link become equal.
 *
 * If acknowledgements wait for a thread on a busy machine, the queue would run empty meanwhile. So
 * this time is added to a short target, up to WINDOW_LONG_NS.
 *
 * If the least round trip was not seen again for WINDOW_FRESH_NS, it may have changed, or this flow
 * has never seen the link without a queue. Then the window is small for a few rounds, to see it.
 *
 * The window changes once in a round. A round ends when a packet that was sent after its start is
 * acknowledged. The least round trip of a round counts, so that a late wake-up of a process is not
 * taken for a queue.
 */
#ifndef TRIB_PATH_PATH_WINDOW_H
#define TRIB_PATH_PATH_WINDOW_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define WINDOW_START 32.0           /* packets: the first window */
#define WINDOW_BURSTS 128.0         /* packets: the first window of messages in bursts */
#define WINDOW_LEAST 4.0            /* packets: the smallest window */
#define WINDOW_MOST 4096.0          /* packets: the largest window */
#define WINDOW_SHORT_NS 1500000u    /* 1.5 ms in queues: a target */
#define WINDOW_LONG_NS 4000000u     /* 4 ms in queues: a target */
#define WINDOW_LATE_SHARE 32u       /* 1/32: how fast the time that threads are late is forgotten */
#define WINDOW_SMALL 8.0            /* packets: up to here the target is twice as long */
#define WINDOW_LARGE 256.0          /* packets: from here on the target is as it is */
#define WINDOW_FRESH_NS 2000000000u /* 2 s */
#define WINDOW_LOOKS 4u             /* rounds with a small window, to see the least round trip */
#define WINDOW_MORE 2.0             /* packets by which a window grows near its target */
#define WINDOW_SAMPLES 4u           /* round trips without which a window does not shrink */
#define WINDOW_HEAVY_LOSS 0.15      /* loss ratio that shrinks the window */
#define WINDOW_JUDGED 32u           /* packets that give a loss ratio */
#define WINDOW_PROBE_NS 2000000u    /* 2 ms: least time beyond a round trip until a probe */
#define WINDOW_UNKNOWN_NS 50000000u /* 50 ms: the round trip of a path that has not answered */

struct path_window {
	uint32_t target; /* ns in queues */
	uint32_t late;   /* ns that acknowledgements wait for threads: the longest one fades */
	double packets;
	bool starting;                    /* the window doubles */
	uint64_t least, smooth, variance; /* round trips, ns; 0: unknown */
	uint64_t last;                    /* the last round trip */
	uint64_t least_at;                /* when one near the least was last seen */
	double kept;                      /* the window to return to; 0: the window is in use */
	unsigned looks;                   /* rounds since it is small */
	uint64_t round;                   /* sequence number whose acknowledgement ends the round */
	uint64_t round_trip;              /* least round trip of this round; 0: none */
	unsigned samples;                 /* round trips in this round */
	bool full;                        /* the window has held back packets in this round */
	uint32_t acked, lost;             /* packets since the loss was last judged */
};

/* `next`: the sequence number of the next packet; `target`: ns in queues. */
static inline void path_window_init(struct path_window *window, uint64_t next, uint32_t target)
{
	*window = (struct path_window){
		.target = target, .packets = WINDOW_START, .starting = true, .round = next
	};
}

static inline void path_window_sample(struct path_window *window, uint64_t rtt, uint64_t now)
{
	uint64_t off = rtt > window->smooth ? rtt - window->smooth : window->smooth - rtt;

	window->last = rtt;
	window->samples++;
	if (!window->least || rtt < window->least)
		window->least = rtt;
	if (rtt <= window->least + window->target / 8)
		window->least_at = now;
	if (!window->round_trip || rtt < window->round_trip)
		window->round_trip = rtt;
	window->variance = window->smooth ? (3 * window->variance + off) / 4 : rtt / 2;
	window->smooth = window->smooth ? (7 * window->smooth + rtt) / 8 : rtt;
}

/* An acknowledgement has waited for threads of both sides. */
static inline void path_window_late(struct path_window *window, uint64_t late)
{
	uint32_t most = late < WINDOW_LONG_NS ? (uint32_t)late : WINDOW_LONG_NS;

	if (most > window->late)
		window->late = most;
	else
		window->late -= (window->late - most) / WINDOW_LATE_SHARE;
}

static inline bool path_window_loses(struct path_window *window)
{
	uint32_t judged = window->acked + window->lost;
	double loss;

	if (judged < WINDOW_JUDGED)
		return false;
	loss = (double)window->lost / judged;
	window->acked = window->lost = 0;
	if (loss <= WINDOW_HEAVY_LOSS)
		return false;
	window->packets *= loss < 0.5 ? 1 - loss : 0.5;
	window->starting = false;
	return true;
}

/* The round trip to aim at. The more packets are in the window, the less each may wait. */
static inline double path_window_target(const struct path_window *window)
{
	const double few = 1 / sqrt(WINDOW_SMALL), many = 1 / sqrt(WINDOW_LARGE);
	double extra = (1 / sqrt(window->packets) - many) / (few - many);
	double queue =
		fmin(window->target + (double)window->late, fmax(window->target, WINDOW_LONG_NS));

	extra = extra < 0 ? 0 : extra > 1 ? 1 : extra;
	return (double)window->least + (1 + extra) * queue;
}

/* The round is over. Half of the correction is applied: its effect shows a round later. */
static inline void path_window_adapt(struct path_window *window)
{
	double trip = (double)window->round_trip;
	double target = path_window_target(window);

	if (path_window_loses(window) || !window->round_trip)
		return;
	if (trip > target) {
		double less = 0.5 * (trip - target) / trip;

		window->packets *= 1 - less;
		window->starting = false;
	} else if (window->full && trip < target / 2) {
		window->starting &= window->last < window->least + window->target / 4;
		window->packets *= window->starting ? 2 : 1.25;
	} else if (window->full) {
		window->starting = false;
		window->packets += WINDOW_MORE;
	}
}

/* A round with a small window is over. */
static inline void path_window_look(struct path_window *window, uint64_t now)
{
	if (++window->looks == 1)
		window->least = window->last;
	if (window->looks < WINDOW_LOOKS)
		return;
	window->packets = window->kept;
	window->kept = 0;
	window->least_at = now;
}

/* A round is over. */
static inline void path_window_turn(struct path_window *window, uint64_t now)
{
	if (window->kept > 0) {
		path_window_look(window, now);
		return;
	}
	path_window_adapt(window);
	if (window->packets < WINDOW_LEAST)
		window->packets = WINDOW_LEAST;
	if (window->packets > WINDOW_MOST)
		window->packets = WINDOW_MOST;
	if (window->full && now > window->least_at + WINDOW_FRESH_NS) {
		window->kept = window->packets;
		window->packets = WINDOW_LEAST;
		window->looks = 0;
	}
}

/*
 * `acked` packets were acknowledged and `lost` were lost; `newest` is the highest sequence number
 * acknowledged so far, `next` that of the next packet. rtt 0: unknown.
 */
static inline void path_window_ack(struct path_window *window, uint32_t acked, uint32_t lost,
                                   uint64_t rtt, uint64_t newest, uint64_t next, uint64_t now)
{
	window->acked += acked;
	window->lost += lost;
	if (rtt)
		path_window_sample(window, rtt, now);
	if (newest < window->round)
		return;
	/* Few round trips may all be late by chance. */
	if (window->kept <= 0 && window->samples < WINDOW_SAMPLES &&
	    (double)window->round_trip > path_window_target(window)) {
		window->round = next;
		return;
	}
	path_window_turn(window, now);
	window->round = next;
	window->round_trip = 0;
	window->samples = 0;
	window->full = false;
}

/* Packets that may be sent when `in_flight` are. */
static inline uint32_t path_window_room(const struct path_window *window, uint32_t in_flight)
{
	uint32_t most = (uint32_t)window->packets;

	return in_flight < most ? most - in_flight : 0;
}

/* After this time without an acknowledgement the path is asked. */
static inline uint64_t path_window_patience(const struct path_window *window)
{
	if (!window->smooth)
		return WINDOW_UNKNOWN_NS;
	return window->smooth + 4 * window->variance + WINDOW_PROBE_NS;
}

/* A packet that was sent before an acknowledged one is lost after this time. */
static inline uint64_t path_window_reorder(const struct path_window *window)
{
	return window->smooth + window->smooth / 4 + WINDOW_PROBE_NS / 2;
}

#endif
