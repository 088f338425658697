/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse/heat owns the question which rows are hot: counts of updates by key, their ranking, how
 * many rows are worth their memory, and which key has which row number at an aggregator. It is
 * pure: no input or output, no clock. It must not know packets, servers or files.
 *
 *  - heat.h: ranking, and how many of the hottest keys are hot (Libra, Principle 1).
 *  - heat_set.h: counts in bounded memory, which decay.
 *  - heat_map.h: from one map of keys to row numbers to the next.
 *  - heat_watch.h: whether the heat has moved to other rows.
 *  - key_index.h: numbers for keys, in the order in which they first occur.
 */
#ifndef TRIB_SPARSE_HEAT_H
#define TRIB_SPARSE_HEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No row has this key. */
#define HEAT_NO_KEY UINT64_MAX

struct heat_key {
	uint64_t key, count;
};

/* The hottest first. Of keys with the same count, the lower key comes first. */
void heat_rank(struct heat_key *keys, size_t n);

/* The sum of the first n counts; UINT64_MAX if it does not fit. */
uint64_t heat_total(const struct heat_key *keys, size_t n);

/* What a set of hot keys has to fulfil. */
struct heat_limits {
	double share;    /* enough keys for this share of all updates (p of the paper); 1: all */
	size_t rows_max; /* so many rows fit into the memory (c of the paper) */
	size_t step;     /* so many keys are added at a time */
	double growth;   /* steps end when one adds less than this share of all updates; 0: never */
};

#define HEAT_LIMITS_PAPER                                                      \
	(struct heat_limits)                                                   \
	{                                                                      \
		.share = 1, .rows_max = SIZE_MAX, .step = 1000, .growth = 0.01 \
	}

enum heat_reason {
	HEAT_ALL_KEYS,  /* every key is hot */
	HEAT_ENOUGH,    /* `share` is reached */
	HEAT_TRADE_OFF, /* the next step adds too little */
	HEAT_NO_ROOM,   /* the memory is full; `share` may not be reached */
};

struct heat_pick {
	size_t n;     /* the first n keys are hot */
	double share; /* of all updates that they have */
	enum heat_reason reason;
};

/*
 * Picks the hot keys of a ranking. The first step is always taken, as far as `rows_max` and
 * `share` allow. `total` is the count of all updates, also of keys that are not in the list.
 */
struct heat_pick heat_pick(const struct heat_key *ranked, size_t n, uint64_t total,
                           const struct heat_limits *limits);

/*
 * How many of the first n keys of a ranking are surely hot, if the counts are those of a random
 * sample: a count is above that of the last hot key by its own standard deviation. `sample` is the
 * sample's share of all data; with 1 nothing is left to chance, and all n are sure.
 */
size_t heat_sure(const struct heat_key *ranked, size_t n, double sample);

#endif
