/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sent_packets: the packets that a path has sent, and what became of them. Pure.
 *
 * A packet is open until it is acknowledged or counts as lost. It is lost if SENT_LATER packets
 * that left later were acknowledged, or one was and a round trip has passed. A packet that counts
 * as lost may still be acknowledged.
 */
#ifndef TRIB_PATH_CHANNEL_SENT_PACKETS_H
#define TRIB_PATH_CHANNEL_SENT_PACKETS_H

#include "base/bitmap.h"
#include "wire/path_packet.h"

#define SENT_RING 8192u /* packets that are remembered */
#define SENT_NO_UNIT UINT32_MAX
#define SENT_LATER 16u /* later packets whose acknowledgement means loss */

/* What a packet carried. unit SENT_NO_UNIT: a probe. */
struct sent_unit {
	uint32_t message, unit;
};

struct sent_packets {
	uint64_t first;     /* no packet before this one is open */
	uint64_t next;      /* sequence number of the next packet */
	uint64_t newest;    /* the highest number acknowledged, plus 1; 0: none */
	uint64_t lost_at;   /* when the next open packet counts as lost; UINT64_MAX: unknown */
	uint32_t in_flight; /* open packets */
	uint64_t open[SENT_RING / 64];
	uint64_t acked[SENT_RING / 64];
	struct {
		uint64_t at;
		struct sent_unit what;
	} ring[SENT_RING];
};

/* Is there room for another packet? */
static inline bool sent_has_room(const struct sent_packets *sent)
{
	return sent->next - sent->first < SENT_RING;
}

/* Enters a packet; returns its number. There must be room. */
uint32_t sent_add(struct sent_packets *sent, uint64_t now, struct sent_unit what);

struct sent_ack {
	unsigned n;       /* units in `units` */
	unsigned in_time; /* packets that were open */
	uint64_t sent_at; /* when the newest was sent, if this is its first acknowledgement; or 0 */
	struct sent_unit units[PATH_ACK_BITS];
};

/* An acknowledgement: `came` as in struct path_ack. False: it is about packets never sent. */
bool sent_acked(struct sent_packets *sent, uint32_t newest, const uint64_t *came,
                struct sent_ack *ack);

/* Finds lost packets, up to `most`. `wait`: path_window_reorder. */
unsigned sent_lost(struct sent_packets *sent, uint64_t now, uint64_t wait, struct sent_unit *units,
                   unsigned most);
/* All open packets count as lost. Gives up to `most`; 0: no more. */
unsigned sent_give_up(struct sent_packets *sent, struct sent_unit *units, unsigned most);

#endif
