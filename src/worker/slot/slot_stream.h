/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of a slot lane. A round is a small vector; each of its data fragments is an
 * operation of the slot engine, and has the position of the fragment. This file encodes vectors,
 * and decodes sums; slot_flow.h decides what is sent when. Pure but for memory, as worker/dense.
 *
 * A sum of floats carries its class in the packet's scale, and needs no round trip to agree on it.
 * If a rank has NaN or infinities in a fragment, it sets SLOT_SPECIAL in the scale, and two counts
 * for each element follow the sums: of +inf or NaN, and of -inf or NaN. All ranks then send theirs,
 * since the highest scale wins.
 */
#ifndef TRIB_WORKER_SLOT_SLOT_STREAM_H
#define TRIB_WORKER_SLOT_SLOT_STREAM_H

#include "worker/dense/stream.h"
#include "worker/slot/slot_flow.h"

#define SLOT_SPECIAL 0x8000u

struct slot_stream {
	struct stream *stream; /* rounds, and how far they are; the lane's */
	struct slot_flow flow;
	struct slot_entry *entries;
	uint8_t *payloads; /* of each slot */
	uint32_t payload;
};

/* False: no memory. The stream has been initialized. */
bool slot_stream_init(struct slot_stream *slots, struct stream *stream, uint32_t n,
                      uint32_t payload);
void slot_stream_free(struct slot_stream *slots);

/* The round's operations are posted as slots become free. Any number may wait. */
void slot_stream_post(struct slot_stream *slots, struct round *round, uint64_t now);
/* May slot_stream_next() have a packet? */
static inline bool slot_stream_may_have(const struct slot_stream *slots, uint64_t now)
{
	return slots->flow.next < slots->stream->next_base || slot_flow_may_have(&slots->flow, now);
}

/* Writes the next packet that is due, without comm and checksum. Gives its bytes; 0: none. */
uint32_t slot_stream_next(struct slot_stream *slots, uint64_t now, void *packet);
/* Takes a RESULT that was found intact. False: ranks have called different collectives. */
bool slot_stream_take(struct slot_stream *slots, const struct wire_header *header, uint32_t bytes,
                      uint64_t now);

/* The position of a RESULT, from the header's 32 bits. */
static inline uint64_t slot_stream_position(const struct slot_stream *slots,
                                            const struct wire_header *header)
{
	return wire_widen(header->pos, slots->flow.next);
}

#endif
