/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_window: how many packets a path may have in flight. Pure.
 *
 * The window follows the delay in queues: it is the round trip less the least one. While the delay
 * is below WINDOW_TARGET_NS, the window grows, at first by doubling. Above the target it shrinks in
 * proportion to the excess. So the path stays busy, its queue stays short, and traffic that does
 * not yield keeps its share. Loss shrinks the window only if it is heavy: a little loss is the
 * link's.
 *
 * The window changes once in a round. A round ends when a packet that was sent after its start is
 * acknowledged. The least round trip of a round counts, so that a late wake-up of a process is not
 * taken for a queue.
 */
#ifndef TRIB_PATH_CHANNEL_PATH_WINDOW_H
#define TRIB_PATH_CHANNEL_PATH_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define WINDOW_START 32.0           /* packets: the first window */
#define WINDOW_LEAST 4.0            /* packets: the smallest window */
#define WINDOW_MOST 4096.0          /* packets: the largest window */
#define WINDOW_TARGET_NS 4000000u   /* 4 ms in queues: the target */
#define WINDOW_SAMPLES 4u           /* round trips without which a window does not shrink */
#define WINDOW_HEAVY_LOSS 0.15      /* loss ratio that shrinks the window */
#define WINDOW_JUDGED 32u           /* packets that give a loss ratio */
#define WINDOW_PROBE_NS 2000000u    /* 2 ms: least time beyond a round trip until a probe */
#define WINDOW_UNKNOWN_NS 50000000u /* 50 ms: the round trip of a path that has not answered */

struct path_window {
	double packets;
	bool starting;                    /* the window doubles */
	uint64_t least, smooth, variance; /* round trips, ns; 0: unknown */
	uint64_t last;                    /* the last round trip */
	uint64_t round;                   /* sequence number whose acknowledgement ends the round */
	uint64_t round_trip;              /* least round trip of this round; 0: none */
	unsigned samples;                 /* round trips in this round */
	bool full;                        /* the window has held back packets in this round */
	uint32_t acked, lost;             /* packets since the loss was last judged */
};

static inline void path_window_init(struct path_window *window, uint64_t next)
{
	*window = (struct path_window){ .packets = WINDOW_START, .starting = true, .round = next };
}

static inline void path_window_sample(struct path_window *window, uint64_t rtt)
{
	uint64_t off = rtt > window->smooth ? rtt - window->smooth : window->smooth - rtt;

	window->last = rtt;
	window->samples++;
	if (!window->least || rtt < window->least)
		window->least = rtt;
	if (!window->round_trip || rtt < window->round_trip)
		window->round_trip = rtt;
	window->variance = window->smooth ? (3 * window->variance + off) / 4 : rtt / 2;
	window->smooth = window->smooth ? (7 * window->smooth + rtt) / 8 : rtt;
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

/* The round is over. Half of the correction is applied: its effect shows a round later. */
static inline void path_window_adapt(struct path_window *window)
{
	double trip = (double)window->round_trip;
	double target = (double)(window->least + WINDOW_TARGET_NS);

	if (path_window_loses(window) || !window->round_trip)
		return;
	if (trip > target) {
		double less = 0.5 * (trip - target) / trip;

		window->packets *= 1 - less;
		window->starting = false;
	} else if (window->full) {
		double more = 0.5 * (target / trip - 1);

		window->starting &= window->last < window->least + WINDOW_TARGET_NS / 4;
		if (window->starting)
			window->packets *= 2;
		else
			window->packets = window->packets * (1 + (more < 0.25 ? more : 0.25)) + 1;
	}
}

/*
 * `acked` packets were acknowledged and `lost` were lost; `newest` is the highest sequence number
 * acknowledged so far, `next` that of the next packet. rtt 0: unknown.
 */
static inline void path_window_ack(struct path_window *window, uint32_t acked, uint32_t lost,
                                   uint64_t rtt, uint64_t newest, uint64_t next)
{
	window->acked += acked;
	window->lost += lost;
	if (rtt)
		path_window_sample(window, rtt);
	if (newest < window->round)
		return;
	/* Few round trips may all be late by chance. */
	if (window->samples < WINDOW_SAMPLES &&
	    window->round_trip > window->least + WINDOW_TARGET_NS) {
		window->round = next;
		return;
	}
	path_window_adapt(window);
	if (window->packets < WINDOW_LEAST)
		window->packets = WINDOW_LEAST;
	if (window->packets > WINDOW_MOST)
		window->packets = WINDOW_MOST;
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
