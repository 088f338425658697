/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/stream/stream_window.h"

#define GROUP_PROBE_NS 20000000ull /* 20 ms between two probes of the multicast group */
#define PROBE_SOON_NS 1000000ull   /* 1 ms between the first ones: children join one by one */
#define PROBES_SOON 64u            /* probes at the shorter distance */

bool stream_lane_queue(struct agg_lane *lane, uint64_t position, uint8_t child)
{
	uint64_t used = lane->tail - lane->head;

	/* Half of the ring is for first results, of which there is at most one per cell. */
	if (child != WIRE_ALL && used >= lane->dense->cells)
		return false;
	lane->queue[lane->tail++ % (2 * (uint64_t)lane->dense->cells)] =
		(struct result_entry){ .position = position, .child = child };
	return true;
}

/* A STATUS for all children: the window, and what is complete from `base` on. */
static void tell_low(struct thread *thread, struct agg_lane *lane, const struct udp_address *to,
                     uint64_t base, uint32_t bits)
{
	struct status_packet packet = { .header = wire_answer(lane->comm, lane, WIRE_STATUS,
		                                              WIRE_ALL) };

	packet.header.ack = (uint32_t)lane->dense->low;
	packet.status.low = lane->dense->low;
	dense_complete(lane->dense, &lane->pool, base, bits, &packet.status);
	thread_send(thread, &packet, wire_cut(&packet), to);
}

void stream_lane_probe_group(struct thread *thread, struct agg_lane *lane)
{
	uint64_t every = lane->probes < PROBES_SOON ? PROBE_SOON_NS : GROUP_PROBE_NS;

	if (!lane->group.length || thread->now < lane->probe_at + every)
		return;
	lane->probes++;
	lane->probe_at = thread->now;
	tell_low(thread, lane, &lane->group, 0, 0);
}

void stream_lane_tell(struct thread *thread, struct agg_lane *lane, uint64_t base, uint32_t bits)
{
	uint64_t to = lane->known & ~lane->left;

	lane->told_low = lane->dense->low;
	if (to & lane->hears)
		tell_low(thread, lane, &lane->group, base, bits);
	for (to &= ~lane->hears; to; to &= to - 1)
		tell_low(thread, lane, &lane->addresses[__builtin_ctzll(to)], base, bits);
}

void stream_lane_announce_low(struct thread *thread, struct agg_lane *lane)
{
	if (lane->head == lane->tail && lane->dense->low >= lane->told_low + lane->dense->cells / 8)
		stream_lane_tell(thread, lane, 0, 0);
}
