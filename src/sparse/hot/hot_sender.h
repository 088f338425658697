/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot owns what worker and server say to the sparse engine of an aggregator, and what its answers
 * mean: hot_sender (a worker's gradients), hot_puller (a worker's questions), hot_flusher (the
 * server's rounds). All are pure: no socket, and the clock is an argument. It must not touch keys,
 * maps, TCP or the log. docs/wire/sparse.md has the packets.
 *
 * hot_sender: the gradients of a worker for one shard, in one incarnation. Rows are packed into
 * packets. A packet goes through these states:
 *
 *   UNSENT -> SENT -> ADDED (the aggregator has it) -> durable: its tag is told by `done`
 *        \--<--/ REFUSED: sent again after a while
 *        \--<--/ MAPLESS: refused for its map; it waits for the next one
 *
 * Until a packet is durable it is kept. If the aggregator has a newer map, packets that no sum has
 * and never will have get the row numbers of that map: those that were never sent, and those that
 * were refused for their map. Rows that the map lacks are handed back. A packet without rows takes
 * the place of one that has none left: sequence numbers have no gaps. If the incarnation is lost,
 * all rows that the server's record does not have are handed back. So each row ends in exactly one
 * call: `done` of its packet, or `back`.
 */
#ifndef TRIB_SPARSE_HOT_HOT_SENDER_H
#define TRIB_SPARSE_HOT_HOT_SENDER_H

#include "wire/sparse_packet.h"
#include "sparse/hot/hot_map.h"
#include "sparse/hot/hot_timer.h"

#include <stdbool.h>
#include <stddef.h>

/* Rows of a packet. */
struct hot_rows {
	uint32_t n;
	const uint16_t *numbers;
	const uint32_t *values; /* n times the width */
};

/* Rows that are handed back. */
struct hot_back {
	uint64_t tag;
	uint64_t sequence; /* of their packet */
	uint16_t generation;
	bool is_lost; /* the incarnation is over; else the aggregator has another map */
	bool goes_on; /* other rows of the packet do not end with this call */
	struct hot_rows rows;
};

struct hot_calls {
	void *context;
	/* A packet of this tag is durable. */
	void (*done)(void *context, uint64_t tag);
	/* These rows were not added, and never will be by this sender. */
	void (*back)(void *context, const struct hot_back *back);
	/* What number does the map of the last hot_sender_remap() give to a row of this generation?
	   HOT_NO_ROW: none. */
	uint32_t (*renumber)(void *context, uint16_t generation, uint32_t number);
};

struct hot_packet {
	uint64_t tag;
	uint64_t sent_at; /* ns; REFUSED: when it is sent again */
	uint32_t bytes;   /* of the payload */
	uint16_t generation;
	uint8_t state;
	uint8_t tries;
	bool is_void;
};

struct hot_sender_options {
	unsigned child;
	uint32_t width;   /* values in a row */
	uint32_t payload; /* bytes of a packet */
	uint32_t kept;    /* packets that are kept until they are durable; a power of two */
	struct hot_calls calls;
};

struct hot_sender_stats {
	uint64_t packets, resent, rows;
	uint64_t handed_back; /* rows */
};

struct hot_sender {
	struct hot_sender_options options;
	struct hot_packet *packets; /* packet s is at s mod kept */
	uint8_t *payloads;          /* one payload a packet, and two spare ones for renumbering */
	uint32_t *order;            /* order of the rows of the packet that gets other numbers */
	uint32_t per_packet;        /* rows */
	uint64_t durable;           /* packets below are durable */
	uint64_t low;               /* packets below were added */
	uint64_t unsent;            /* packets from here on have never been sent */
	uint64_t next;              /* the next sequence number */
	uint64_t hurried;           /* the caller waits for packets below */
	uint64_t urged;             /* packets below were urged, or are durable */
	uint32_t in_flight;         /* packets that are SENT */
	uint64_t look_at;           /* ns: no timer of a packet runs out before */
	uint64_t probe_at;          /* ns: when to ask what is durable; UINT64_MAX: never */
	uint64_t probe_gap;         /* ns */
	uint64_t hold_until;        /* ns: the aggregator is not set up yet, or is_held */
	bool is_held;               /* its only bank is frozen: one packet asks from time to time */
	uint16_t generation;        /* the aggregator's, as last heard */
	uint16_t mapped;            /* of the last hot_sender_remap() */
	struct hot_timer timer;
	struct hot_sender_stats stats;
};

/* False: no memory, or a row does not fit a packet. */
bool hot_sender_open(struct hot_sender *sender, const struct hot_sender_options *options);
void hot_sender_close(struct hot_sender *sender);

/* Rows that may be posted now. */
uint32_t hot_sender_room(const struct hot_sender *sender);
/*
 * Posts rows of one map, in ascending order, if there is room. Gives the number of packets: as many
 * calls of `done`, or of `back` without `goes_on`, follow.
 */
uint32_t hot_sender_post(struct hot_sender *sender, uint64_t tag, uint16_t generation,
                         const struct hot_rows *rows);
/* The caller waits for all that was posted. */
void hot_sender_hurry(struct hot_sender *sender);
/* There is a newer map: `renumber` knows it. */
void hot_sender_remap(struct hot_sender *sender, uint16_t generation);
/* Is nothing on its way? */
static inline bool hot_sender_is_idle(const struct hot_sender *sender)
{
	return sender->durable == sender->next;
}

/*
 * Writes the next packet that is due: WIRE_HEADER bytes and the payload, without what the socket's
 * owner fills in. Gives its bytes and its position; 0: none is due.
 */
uint32_t hot_sender_next(struct hot_sender *sender, uint64_t now, void *packet, uint64_t *position);
/* When hot_sender_next() has something, if nothing comes before; UINT64_MAX: never. */
uint64_t hot_sender_wake(const struct hot_sender *sender);

/* The position of an answer. */
uint64_t hot_sender_position(const struct hot_sender *sender, const struct wire_header *header);
/* Takes a RESULT, PUSH or NEWS, that was found intact; `bytes` counts the header. */
void hot_sender_take(struct hot_sender *sender, const struct wire_header *header, uint32_t bytes,
                     uint64_t now);

/* The incarnation is over. The record is that of the server's log; NULL: nothing was logged. */
void hot_sender_lost(struct hot_sender *sender, const struct sparse_record *record);

#endif
