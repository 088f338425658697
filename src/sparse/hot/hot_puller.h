/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot_puller: a worker's questions for values of hot rows, to the cache of one aggregator. Pure.
 * A question has up to as many rows as fit an answer. Each ends in exactly one call: `values` with
 * the rows that the cache has, which may be none. For all others the caller asks the server.
 */
#ifndef TRIB_SPARSE_HOT_HOT_PULLER_H
#define TRIB_SPARSE_HOT_HOT_PULLER_H

#include "sparse/hot/hot_sender.h"

#define HOT_PULLS 64u /* questions that run at once */

struct hot_pull {
	uint64_t tag;
	uint64_t sent_at; /* ns */
	uint32_t number;
	uint32_t bytes; /* of the payload; 0: the place is free */
	uint16_t generation;
	uint8_t tries;
};

struct hot_puller {
	uint32_t width, payload, per_packet;
	uint32_t number; /* of the next question */
	uint32_t used;
	struct hot_timer timer;
	struct hot_pull pulls[HOT_PULLS]; /* question q is at q mod HOT_PULLS */
	uint8_t *payloads;
	void *context;
	/* The question of this tag has ended. */
	void (*values)(void *context, uint64_t tag, const struct hot_rows *rows);
};

/* False: no memory, or a row does not fit. `values` and `context` are set by the caller. */
bool hot_puller_open(struct hot_puller *puller, uint32_t width, uint32_t payload);
void hot_puller_close(struct hot_puller *puller);

/* Asks for up to `per_packet` rows, in ascending order. False: too many questions run. */
bool hot_puller_ask(struct hot_puller *puller, uint64_t tag, uint16_t generation,
                    const uint16_t *numbers, uint32_t n);
/* As hot_sender_next(); the position is `pos`. */
uint32_t hot_puller_next(struct hot_puller *puller, uint64_t now, void *packet);
uint64_t hot_puller_wake(const struct hot_puller *puller);
/* Takes a RESULT, PULL, that was found intact; `bytes` counts the header. */
void hot_puller_take(struct hot_puller *puller, const struct wire_header *header, uint32_t bytes,
                     uint64_t now);
/* The aggregator is lost: all questions end without rows. */
void hot_puller_lost(struct hot_puller *puller);

#endif
