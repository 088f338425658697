/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot: the worker's side of the slot engine (P4SGD, Algorithm 3): what to send for small vectors,
 * when to repeat it, and what the answers mean. Pure: no socket, no clock, no allocation. The
 * caller owns the entries and the vectors. It must not touch rounds, streams or lanes.
 *
 * An operation goes through these states:
 *
 *   UNUSED -> WAITS (the vector was sent, the result has not come) -> HAS (the result has come)
 *          -> ACKED (the acknowledgement was sent) -> UNUSED (the aggregator's slot is clear)
 *
 * One timer runs while operations WAIT, from the last packet or result on. When it runs out, the
 * oldest of them are repeated, but not all, as they may be in a queue. An operation that needs the
 * slot of one before asks for it, by a timer of its own. How many operations are on their way is
 * bounded by a window: it halves when the timer has run out, and grows by one when as many results
 * have come.
 */
#ifndef TRIB_WORKER_SLOT_SLOT_FLOW_H
#define TRIB_WORKER_SLOT_SLOT_FLOW_H

#include "engine/slot.h"

#include <stdbool.h>
#include <stddef.h>

enum slot_state { SLOT_UNUSED, SLOT_WAITS, SLOT_HAS, SLOT_ACKED };

struct slot_entry {
	uint64_t position;
	const void *payload; /* the caller's, while the operation WAITS */
	uint64_t sent_at;    /* ns; 0: not sent yet */
	uint64_t first_at;   /* ns: when it was first sent */
	uint16_t scale;
	uint16_t bytes;
	uint8_t op;
	uint8_t shape;
	uint8_t state; /* enum slot_state */
	uint8_t tries; /* packets sent for it, up to 255 */
	uint8_t kind;  /* the root of a collective that has one, or WIRE_ALL */
};

struct slot_flow {
	struct slot_entry *entries; /* of each slot */
	uint32_t slots;             /* a power of two */
	unsigned child;
	uint64_t next;      /* the number of the next operation */
	uint64_t unsent;    /* operations from here on have never been sent */
	uint64_t unacked;   /* results of operations below are acknowledged */
	uint64_t done;      /* results of operations below have come */
	uint64_t low;       /* slots of operations below are clear */
	uint64_t top;       /* the last operation whose result has come */
	uint32_t window;    /* operations that may be on their way at once */
	uint64_t shrunk_at; /* ns: losses of what was sent before do not shrink it again */
	uint32_t grown;     /* results since the window last grew */
	uint64_t ask_at;    /* ns: when an operation that waits for its slot asks; 0: none waits */
	uint64_t look_at;   /* ns: no timer of an operation runs out before */
	uint64_t rtt, rtt_spread; /* ns, smoothed; 0: unknown */
	uint64_t rtt_least[2]
			  [2];   /* ns: the shortest answer to a short and to a long packet that was
	                            sent once, of the last answers and of those before; 0: unknown */
	unsigned rtt_answers[2]; /* among the last */
	uint64_t timeout;        /* ns: of an operation's first packet, by all these times */
	uint64_t heard_at;       /* ns: when a result last came */
	uint64_t expired_at;     /* ns: when the timer last ran out */
	unsigned silent;         /* times that it ran out since a result came as expected */
	uint32_t credit;         /* operations that may be repeated since then */
	uint64_t gap;            /* ns: between results that queue on a slow link; 0: unknown */
	unsigned asks;           /* in a row without progress */
	bool holds; /* no timer runs out: results may be here that were not looked at yet */
};

enum slot_event_kind {
	SLOT_NOTHING,
	SLOT_RESULT,   /* the sum of an operation; it is the event's payload */
	SLOT_ENCODE,   /* encode the vector anew with the scale, then call slot_flow_encoded() */
	SLOT_DISAGREE, /* the result is not of what was posted: ranks called different collectives
	                */
};

struct slot_event {
	enum slot_event_kind kind;
	uint64_t position;
	uint16_t scale;
};

void slot_flow_init(struct slot_flow *flow, struct slot_entry *entries, uint32_t slots,
                    unsigned child);

static inline struct slot_entry *slot_entry_of(const struct slot_flow *flow, uint64_t position)
{
	return &flow->entries[position & (flow->slots - 1)];
}

/* May an operation be posted? False: its slot is in use; the flow asks for it by itself. */
static inline bool slot_flow_has_room(struct slot_flow *flow, uint64_t now)
{
	if (flow->next < flow->low + flow->slots)
		return true;
	if (!flow->ask_at)
		flow->ask_at = now;
	return false;
}

/* Asks whether all other children have the results that this one has; they tell `low`. */
void slot_flow_ask(struct slot_flow *flow, uint64_t now);

/* Posts an operation, if there is room, and gives its number. */
static inline uint64_t slot_flow_post(struct slot_flow *flow, uint8_t op, uint8_t shape,
                                      uint8_t kind, uint16_t scale, const void *payload,
                                      uint16_t bytes)
{
	*slot_entry_of(flow, flow->next) = (struct slot_entry){ .position = flow->next,
		                                                .payload = payload,
		                                                .scale = scale,
		                                                .bytes = bytes,
		                                                .op = op,
		                                                .shape = shape,
		                                                .kind = kind,
		                                                .state = SLOT_WAITS };
	return flow->next++;
}
/* The vector is encoded with the scale of the event SLOT_ENCODE. */
void slot_flow_encoded(struct slot_flow *flow, uint64_t position, uint16_t scale,
                       const void *payload, uint16_t bytes);

/*
 * The next packet that is due: writes its header without magic, type, comm and checksum, and gives
 * its bytes; *payload: the vector behind it, header excluded. 0: none is due.
 */
uint32_t slot_flow_next(struct slot_flow *flow, uint64_t now, struct wire_header *header,
                        const void **payload);

/* May slot_flow_next() have a packet? It costs less to ask, and mostly there is none. */
static inline bool slot_flow_may_have(const struct slot_flow *flow, uint64_t now)
{
	return flow->unsent < flow->next ||
	       (!flow->holds &&
	        (now >= flow->look_at || flow->unacked < flow->done || flow->ask_at));
}

/* Takes a RESULT packet that was found intact. */
struct slot_event slot_flow_take(struct slot_flow *flow, const struct wire_header *header,
                                 uint32_t bytes, uint64_t now);

/* When slot_flow_next() has something again, if nothing comes before; UINT64_MAX: never. */
uint64_t slot_flow_wake(const struct slot_flow *flow);

#endif
