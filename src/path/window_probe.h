/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window_probe: tells buffer overflow from random loss, and bounds the packets in flight
 * accordingly. Pure.
 *
 * A receiver may have a small ring (a veth has 256 slots) that overflows when too much is
 * in flight. A lossy link drops packets whatever is in flight. To tell them apart, the
 * probe lowers the bound to WINDOW_PROBE_LEAST for a while. If loss stops, the ring was
 * overflowing: the bound then grows until loss returns, and stays about there. If loss
 * goes on, the bound is lifted, and the next probe waits four times as long.
 */
#ifndef TRIB_PATH_WINDOW_PROBE_H
#define TRIB_PATH_WINDOW_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#define WINDOW_PROBE_LEAST 32u       /* packets in flight during a probe */
#define WINDOW_PROBE_WALL 512u       /* the first guess of too much: twice a veth ring */
#define WINDOW_PROBE_STEP 8u         /* packets: the largest step near the wall */
#define WINDOW_PROBE_MOST 8192u      /* packets: path/in_flight.h allows no more anyway */
#define WINDOW_PROBE_NONE UINT32_MAX /* no bound */
#define WINDOW_PROBE_LOOK 512u       /* results between two decisions */
#define WINDOW_PROBE_BEFORE 2048u    /* results that confirm the loss before a probe */
#define WINDOW_PROBE_TRIAL 1024u     /* results during a probe */
#define WINDOW_PROBE_MUCH 0.02       /* loss ratio that starts a probe */
#define WINDOW_PROBE_USELESS 4u      /* decisions in a row with loss at the lowest bound: give up */
/* Results between a useless probe and the next; grows by four each time. */
#define WINDOW_PROBE_REST_MIN (1u << 16)
#define WINDOW_PROBE_REST_MAX (1u << 26)

enum window_probe_state {
	WINDOW_PROBE_OPEN,   /* no bound; the loss is low, or a probe must wait */
	WINDOW_PROBE_SEEING, /* no bound; the loss is measured before a probe */
	WINDOW_PROBE_TRYING, /* the probe: WINDOW_PROBE_LEAST */
	WINDOW_PROBE_KEPT,   /* the probe helped; the bound follows the loss */
};

struct window_probe {
	enum window_probe_state state;
	uint32_t cap;     /* bound on packets in flight; WINDOW_PROBE_NONE: none */
	uint32_t wall;    /* the bound at which loss last returned */
	uint64_t until;   /* fragments below this one left before the present bound */
	uint32_t seen;    /* results since the last decision */
	uint32_t lost;    /* results among `seen` that were lost at first */
	uint32_t useless; /* decisions in a row with loss at the lowest bound */
	uint32_t rest;    /* results until a probe may start */
	uint32_t resting; /* the value that `rest` last started from */
	double share;     /* smoothed loss ratio without a bound */
	double before;    /* loss ratio before the probe */
	double least;     /* loss ratio during the probe: the link's own */
};

static inline void window_probe_init(struct window_probe *window_probe)
{
	*window_probe = (struct window_probe){ .cap = WINDOW_PROBE_NONE,
		                               .resting = WINDOW_PROBE_REST_MIN / 4 };
}

static inline void window_probe_open(struct window_probe *window_probe)
{
	window_probe->state = WINDOW_PROBE_OPEN;
	window_probe->cap = WINDOW_PROBE_NONE;
	window_probe->share = 0;
}

/* The bound does not help, or no longer does. */
static inline void window_probe_give_up(struct window_probe *window_probe)
{
	window_probe_open(window_probe);
	window_probe->resting = window_probe->resting < WINDOW_PROBE_REST_MAX / 4
	                                ? 4 * window_probe->resting
	                                : WINDOW_PROBE_REST_MAX;
	window_probe->rest = window_probe->resting;
}

static inline void window_probe_look_open(struct window_probe *window_probe, double share)
{
	window_probe->rest -=
		window_probe->rest < WINDOW_PROBE_LOOK ? window_probe->rest : WINDOW_PROBE_LOOK;
	/* Losses come in bursts: smooth them. */
	window_probe->share += (share - window_probe->share) / 16;
	if (window_probe->share <= WINDOW_PROBE_MUCH || window_probe->rest)
		return;
	window_probe->state = WINDOW_PROBE_SEEING;
}

static inline void window_probe_look_before(struct window_probe *window_probe, double share)
{
	if (share <= WINDOW_PROBE_MUCH) { /* the loss was a single burst */
		window_probe_open(window_probe);
		return;
	}
	window_probe->state = WINDOW_PROBE_TRYING;
	window_probe->before = share;
	window_probe->cap = WINDOW_PROBE_LEAST;
	window_probe->wall = WINDOW_PROBE_WALL;
}

static inline void window_probe_look_trial(struct window_probe *window_probe, double share)
{
	if (share > window_probe->before / 3) {
		window_probe_give_up(window_probe);
		return;
	}
	window_probe->state = WINDOW_PROBE_KEPT;
	window_probe->least = share;
	window_probe->useless = 0;
}

/* Doubles the bound while it is far from the wall, then grows in small steps. */
static inline void window_probe_widen(struct window_probe *window_probe)
{
	uint32_t step = window_probe->cap / 32;

	window_probe->useless = 0;
	if (window_probe->cap <= window_probe->wall / 4)
		window_probe->cap *= 2;
	else
		window_probe->cap += step < WINDOW_PROBE_STEP ? step : WINDOW_PROBE_STEP;
	if (window_probe->cap <= WINDOW_PROBE_MOST)
		return;
	window_probe_open(window_probe);
	window_probe->resting = WINDOW_PROBE_REST_MIN / 4;
}

static inline void window_probe_look_kept(struct window_probe *window_probe, double share)
{
	if (share <= 1.5 * window_probe->least + WINDOW_PROBE_MUCH) {
		window_probe_widen(window_probe);
		return;
	}
	window_probe->useless +=
		window_probe->cap == WINDOW_PROBE_LEAST && share > window_probe->before / 2;
	if (window_probe->useless == WINDOW_PROBE_USELESS) {
		window_probe_give_up(window_probe);
		return;
	}
	window_probe->wall = window_probe->cap;
	window_probe->cap = window_probe->cap / 2 > WINDOW_PROBE_LEAST ? window_probe->cap / 2
	                                                               : WINDOW_PROBE_LEAST;
}

/* A fragment's result has come. `lost`: it was lost at first. Sent fragments are below `sent`. */
static inline void window_probe_count(struct window_probe *window_probe, bool lost, uint64_t sent)
{
	static const uint32_t enough[] = { WINDOW_PROBE_LOOK, WINDOW_PROBE_BEFORE,
		                           WINDOW_PROBE_TRIAL, WINDOW_PROBE_LOOK };
	uint32_t cap = window_probe->cap;
	double share;

	window_probe->seen++;
	window_probe->lost += lost;
	if (window_probe->seen < enough[window_probe->state])
		return;
	share = (double)window_probe->lost / window_probe->seen;
	window_probe->seen = window_probe->lost = 0;
	if (window_probe->state == WINDOW_PROBE_OPEN)
		window_probe_look_open(window_probe, share);
	else if (window_probe->state == WINDOW_PROBE_SEEING)
		window_probe_look_before(window_probe, share);
	else if (window_probe->state == WINDOW_PROBE_TRYING)
		window_probe_look_trial(window_probe, share);
	else
		window_probe_look_kept(window_probe, share);
	if (window_probe->cap < cap)
		window_probe->until = sent;
}

#endif
