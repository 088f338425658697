/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages: which units of a message were acknowledged, are lost, or have come. Pure, except that
 * the bitmaps of a place grow with the longest message that it has held.
 */
#ifndef TRIB_PATH_CHANNEL_MESSAGES_H
#define TRIB_PATH_CHANNEL_MESSAGES_H

#include "base/bitmap.h"

/* A run of units of one message. n 0: none. */
struct chunk {
	uint32_t message, first, n;
};

struct outgoing {
	const uint8_t *data;
	uint32_t bytes, units;
	uint32_t next; /* units before this one were given to a path at least once */
	uint32_t n_acked, n_lost;
	uint32_t lost_from; /* no unit before this one is lost */
	size_t words;       /* of each bitmap */
	uint64_t *acked, *lost;
};

enum incoming_state { INCOMING_NONE, INCOMING_OPEN, INCOMING_WHOLE };

struct incoming {
	enum incoming_state state;
	uint8_t *memory;
	uint32_t bytes, units, n_came;
	size_t words;
	uint64_t *came;
};

/* An empty message has one unit, without data. */
static inline uint32_t message_units(uint32_t bytes, uint32_t unit)
{
	return bytes ? (uint32_t)(((uint64_t)bytes + unit - 1) / unit) : 1;
}

/* Bytes of one unit of a message. */
static inline uint32_t message_unit_bytes(uint32_t bytes, uint32_t unit, uint32_t index)
{
	uint64_t left = bytes - (uint64_t)index * unit;

	return left < unit ? (uint32_t)left : unit;
}

/* False: no memory. The bitmaps are empty afterwards. */
bool outgoing_start(struct outgoing *out, const void *data, uint32_t bytes, uint32_t unit);
void outgoing_free(struct outgoing *out);
/* The unit has arrived. True: it was lost until now. */
bool outgoing_acked(struct outgoing *out, uint32_t unit);
/* The unit is lost. True: it must be sent again. */
bool outgoing_lost(struct outgoing *out, uint32_t unit);
/* The first run of at most `most` lost units; n 0: none. The units are not lost afterwards. */
struct chunk outgoing_take_lost(struct outgoing *out, uint32_t most);
/* Forgets what is lost: the message has arrived. Returns how many units. */
uint32_t outgoing_finish(struct outgoing *out);

bool incoming_start(struct incoming *in, void *memory, uint32_t bytes, uint32_t unit);
void incoming_free(struct incoming *in);
/* False: the unit has come before. */
bool incoming_take(struct incoming *in, uint32_t unit);

#endif
