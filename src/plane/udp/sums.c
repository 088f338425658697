/* SPDX-License-Identifier: Apache-2.0 */
/* Sums leave for the parent as results do for children: from their cells, in runs. */
#include "plane/stream/parent_lane.h"
#include "plane/stream/stream_packets.h"
#include "plane/udp/udp_carrier.h"

struct run {
	struct stream_packet first;
	uint32_t bytes, segments;
};

static bool run_takes(const struct run *run, const struct agg_lane *lane,
                      const struct stream_packet *packet)
{
	return run->segments && packet->position == run->first.position + run->segments &&
	       packet->data == run->first.data + (size_t)run->segments * run->first.apart &&
	       run->bytes == run->segments * lane->stride && run->segments < UDP_GSO_SEGMENTS &&
	       run->bytes + packet->bytes <= UDP_GSO_BYTES;
}

static void run_send(struct thread *thread, struct agg_lane *lane, struct run *run)
{
	if (run->segments)
		udp_tx_add_apart(thread->tx, run->first.data, run->bytes,
		                 run->segments > 1 ? lane->stride : run->bytes, run->first.apart,
		                 &lane->parent);
	thread->counters.raised += run->segments;
	run->segments = run->bytes = 0;
}

bool sums_send_udp(struct thread *thread, struct agg_lane *lane)
{
	struct stream_packet packet;
	struct run run = { 0 };
	bool room;

	if (lane->kernel)
		lane->kernel->ops->count_sums(lane);
	/* Room for one run and one report. */
	while ((room = udp_tx_room(thread->tx) > 2) && !flight_is_full(&lane->flight) &&
	       stream_next_sum(thread, lane, &packet)) {
		if (!run_takes(&run, lane, &packet)) {
			run_send(thread, lane, &run);
			run.first = packet;
		}
		run.bytes += packet.bytes;
		run.segments++;
	}
	run_send(thread, lane, &run);
	if (flight_wants_report(&lane->flight, WIRE_GROUP))
		parent_lane_report_sums(thread, lane);
	if (lane->kernel)
		lane->kernel->ops->allow_sums(lane);
	return room;
}
