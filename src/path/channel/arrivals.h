/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrivals: which packets of a path have come, and when an acknowledgement is due. Pure.
 *
 * A lost packet is never sent again under its number. So an acknowledgement tells about the last
 * PATH_ACK_BITS numbers, and older ones are forgotten.
 */
#ifndef TRIB_PATH_CHANNEL_ARRIVALS_H
#define TRIB_PATH_CHANNEL_ARRIVALS_H

#include "base/bitmap.h"
#include "wire/path_packet.h"

#include <string.h>

#define ARRIVALS_MANY 64u             /* packets that are acknowledged at once */
#define ARRIVALS_WAIT_NS 500000u      /* 0.5 ms: the longest wait of fewer packets */
#define ARRIVALS_MOST 256u            /* as ARRIVALS_MANY, if the receiver is patient */
#define ARRIVALS_PATIENCE_NS 4000000u /* 4 ms: as ARRIVALS_WAIT_NS, if the receiver is patient */

struct arrivals {
	bool any;
	uint64_t newest;                   /* sequence number */
	uint64_t came_at;                  /* when the newest came */
	uint64_t came[PATH_ACK_BITS / 64]; /* ring: bit `sequence % PATH_ACK_BITS` */
	unsigned waiting;                  /* packets and messages since the last acknowledgement */
	unsigned carried;                  /* messages among them, which came by a carrier */
	uint64_t since;                    /* when the first of them came */
	bool urgent;                       /* an acknowledgement is due now */
};

/* The numbers after `newest` up to `sequence` have not come. */
static inline void arrivals_forget(struct arrivals *arrivals, uint64_t sequence)
{
	if (!arrivals->any || sequence - arrivals->newest >= PATH_ACK_BITS) {
		memset(arrivals->came, 0, sizeof(arrivals->came));
		return;
	}
	for (uint64_t i = arrivals->newest + 1; i <= sequence; i++)
		bitmap_clear(arrivals->came, i % PATH_ACK_BITS);
}

/* Are packets before this one missing? */
static inline bool arrivals_skips(const struct arrivals *arrivals, uint32_t sequence)
{
	return arrivals->any && (int32_t)(sequence - (uint32_t)arrivals->newest) > 1;
}

static inline void arrivals_take(struct arrivals *arrivals, uint32_t sequence, uint64_t now)
{
	int32_t ahead = (int32_t)(sequence - (uint32_t)arrivals->newest);
	uint64_t full = arrivals->any ? arrivals->newest + (uint64_t)(int64_t)ahead : sequence;

	if (!arrivals->waiting++)
		arrivals->since = now;
	if (!arrivals->any || ahead > 0) {
		arrivals_forget(arrivals, full);
		arrivals->any = true;
		arrivals->newest = full;
		arrivals->came_at = now;
	} else if (ahead <= -(int32_t)PATH_ACK_BITS) {
		return;
	}
	bitmap_set(arrivals->came, full % PATH_ACK_BITS);
}

/* When an acknowledgement needs a packet of its own. */
static inline uint64_t arrivals_due(const struct arrivals *arrivals, bool patient)
{
	if (arrivals->urgent || arrivals->waiting >= (patient ? ARRIVALS_MOST : ARRIVALS_MANY))
		return 0;
	if (!arrivals->waiting)
		return UINT64_MAX;
	return arrivals->since + (patient ? ARRIVALS_PATIENCE_NS : ARRIVALS_WAIT_NS);
}

/* Should data that leaves take an acknowledgement along? The peer then wakes up only once. But each
 * acknowledgement costs a packet, so one is for several messages. */
static inline bool arrivals_ride(const struct arrivals *arrivals, uint64_t now)
{
	return arrivals->waiting >= ARRIVALS_MANY ||
	       (arrivals->waiting && now >= arrivals->since + ARRIVALS_PATIENCE_NS * 3 / 4);
}

/* An acknowledgement has left. */
static inline void arrivals_told(struct arrivals *arrivals)
{
	arrivals->waiting = arrivals->carried = 0;
	arrivals->urgent = false;
}

/* Bit i: newest - i has come. */
static inline void arrivals_tell(struct arrivals *arrivals, uint64_t bits[PATH_ACK_BITS / 64])
{
	for (unsigned i = 0; i < PATH_ACK_BITS / 64; i++)
		bits[i] = bitmap_back(arrivals->came, PATH_ACK_BITS / 64,
		                      arrivals->newest - 64ull * i);
	arrivals_told(arrivals);
}

#endif
