/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of an engine, each to several children. Packets of one length that follow each other
 * leave as one message for each child (GSO); the last may be shorter. So neighbouring slots cost
 * one send.
 */
#include "plane/udp/udp_carrier.h"

#include <string.h>

#define POLL_NS 100000ull /* 0.1 ms after a result: the next vectors may come at once */

void copies_flush(struct thread *thread)
{
	struct copies *copies = &thread->copies;
	uint32_t bytes = copies->bytes;

	if (!bytes)
		return;
	copies->bytes = 0;
	thread->polls_until = thread->now + POLL_NS;
	for (uint64_t to = copies->to; to; to &= to - 1) {
		if (!udp_tx_room(thread->tx) && udp_send(thread->tx, thread->fd))
			udp_tx_clear(thread->tx); /* they count as lost: the children ask again */
		udp_tx_add(thread->tx, copies->data, bytes, copies->segment,
		           &copies->lane->addresses[__builtin_ctzll(to)]);
	}
	/* The next packets overwrite the data. */
	if (udp_send(thread->tx, thread->fd))
		udp_tx_clear(thread->tx);
}

void copies_add(struct thread *thread, const struct agg_lane *lane, const void *packet,
                uint32_t bytes, uint64_t to)
{
	struct copies *copies = &thread->copies;

	to &= lane->known;
	if (copies->lane != lane || copies->to != to || copies->segment < bytes ||
	    copies->bytes % copies->segment || copies->bytes + bytes > sizeof(copies->data) ||
	    copies->bytes / copies->segment == UDP_GSO_SEGMENTS)
		copies_flush(thread);
	if (!copies->bytes) {
		copies->lane = lane;
		copies->to = to;
		copies->segment = bytes;
	}
	memcpy(copies->data + copies->bytes, packet, bytes);
	copies->bytes += bytes;
	thread->counters.sends += (unsigned)__builtin_popcountll(to);
}
