/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places: which path a flow takes, if each flow takes one path at a time. Pure.
 *
 * A flow whose packets must stay in order cannot be spread over paths like chunks. It moves as a
 * whole, if another path would carry clearly more of it. What a path carries is known from its
 * flows: the sum of their rates while the path holds them back. Flows on one path get equal parts.
 *
 * What was measured long ago counts as unknown, and an unknown path as an average one. So a path
 * that was left is tried again, each time after twice as long. If a move brings nothing, the flow
 * waits longer before the next one. If it makes things worse, the flow moves on at once.
 */
#ifndef TRIB_PATH_BALANCE_PLACES_H
#define TRIB_PATH_BALANCE_PLACES_H

#include "path/balance/monitor.h"

#define PLACES_FLOWS 64u
#define PLACES_GAIN 1.7                /* a flow moves if its rate grows by this factor */
#define PLACES_WORTH 1.1               /* a move has helped if the rate has grown by this factor */
#define PLACES_RATES 24u               /* rates before a flow moves; also the length of averages */
#define PLACES_WAIT_MIN 1000000000ull  /* 1 s: the shortest stay on a path */
#define PLACES_WAIT_MAX 8000000000ull  /* 8 s: the longest stay after moves that brought nothing */
#define PLACES_LOOK 12u                /* rates by which a bad move shows */
#define PLACES_FRESH_MIN 2000000000ull /* 2 s: an older rate of a path counts as unknown */
#define PLACES_FRESH_MAX 8000000000ull /* 8 s: the same for a path that was left often */

struct places_flow {
	unsigned path;   /* PATHS_MAX: unknown */
	bool busy;       /* it has something to send */
	uint64_t bps;    /* its average rate on this path; 0: unknown */
	unsigned rates;  /* measured on this path */
	uint64_t before; /* its rate on the path that it has left; 0: unknown */
	uint64_t since;  /* when it came to this path */
	uint64_t wait;   /* it stays here so long at least */
};

struct places {
	unsigned n_paths, n_flows;
	struct {
		uint64_t bps;   /* of all flows together; 0: unknown */
		uint64_t at;    /* when it was measured */
		uint64_t fresh; /* it counts as known for so long */
	} paths[PATHS_MAX];
	struct places_flow flows[PLACES_FLOWS];
};

void places_init(struct places *places, unsigned n_paths);
/* The flow has come to a path; PATHS_MAX: it is not known which. */
void places_put(struct places *places, unsigned flow, unsigned path, uint64_t now);
/* The path has held the flow back, and has carried so much of it. Rates come every 20 ms or so. */
void places_measured(struct places *places, unsigned flow, uint64_t bps, uint64_t now);
/* The flow has nothing to send. */
void places_rest(struct places *places, unsigned flow);
/* The path carries nothing. */
void places_dead(struct places *places, unsigned path, uint64_t now);

/* The path that the flow should take: mostly the one that it has. */
unsigned places_choose(const struct places *places, unsigned flow, uint64_t now);
/* The best path beside `but`, for a flow whose rate does not matter; PATHS_MAX: there is none. */
unsigned places_best(const struct places *places, unsigned but, uint64_t now);

#endif
