/* SPDX-License-Identifier: Apache-2.0 */
/* Sums leave for the parent as results do for children: from the pool, in runs. */
#include "plane/common/packet_heads.h"
#include "plane/lane/parent_lane.h"
#include "plane/udp/udp_carrier.h"

struct run {
	uint8_t *data;
	uint32_t bytes, segments;
	uint64_t next; /* the position that would continue the run */
};

static bool run_takes(const struct run *run, const struct agg_lane *lane,
                      const struct dense_cell *cell, const uint8_t *packet)
{
	return run->segments && cell->position == run->next &&
	       packet == run->data + run->segments * lane->pool.packet_step &&
	       run->bytes == run->segments * lane->stride && run->segments < UDP_GSO_SEGMENTS &&
	       run->bytes + WIRE_HEADER + cell->bytes <= UDP_GSO_BYTES;
}

static void run_send(struct thread *thread, struct agg_lane *lane, struct run *run)
{
	if (run->segments)
		udp_tx_add_apart(thread->tx, run->data, run->bytes,
		                 run->segments > 1 ? lane->stride : run->bytes,
		                 (uint32_t)lane->pool.packet_step, &lane->parent);
	thread->counters.raised += run->segments;
	run->segments = run->bytes = 0;
}

/*
 * Puts the header in front of a sum that has not left yet. With the lock: the
 * kernel part may be about to empty the cell for a higher scale, and a mixture of
 * both must not be sealed. If it empties the cell later, the checksum no longer
 * matches.
 */
static bool take_sum(struct thread *thread, struct agg_lane *lane, struct dense_cell *cell,
                     uint64_t position, uint8_t *packet)
{
	const struct wire_unsent unsent = parent_lane_unsent(lane, position);
	bool is_there;

	agg_lane_lock(lane, cell);
	is_there = uplink_claim(cell, position);
	if (is_there) {
		sum_head(lane, cell, packet);
		wire_seal_fragment(packet, WIRE_HEADER + cell->bytes, &unsent);
		uplink_raise(&lane->up, lane->dense, cell, (uint32_t)(thread->now / 1000));
		lane->flight.launched++;
	}
	agg_lane_unlock(lane, cell);
	return is_there;
}

bool sums_send_udp(struct thread *thread, struct agg_lane *lane)
{
	struct run run = { 0 };
	bool room;

	if (lane->kernel)
		lane->kernel->ops->count_sums(lane);
	/* Room for one run and one report. */
	while ((room = udp_tx_room(thread->tx) > 2) && !flight_is_full(&lane->flight)) {
		struct dense_cell *cell;
		uint64_t position;
		uint8_t *packet;

		if (!uplink_next(&lane->up, lane->dense, &position))
			break;
		cell = dense_cell(&lane->pool, dense_index(lane->dense, position));
		packet = dense_packet(&lane->pool, dense_index(lane->dense, position));
		if (!take_sum(thread, lane, cell, position, packet))
			continue;
		if (!run_takes(&run, lane, cell, packet)) {
			run_send(thread, lane, &run);
			run.data = packet;
		}
		run.bytes += WIRE_HEADER + cell->bytes;
		run.segments++;
		run.next = cell->position + 1;
	}
	run_send(thread, lane, &run);
	if (flight_wants_report(&lane->flight, WIRE_GROUP))
		parent_lane_report_sums(thread, lane);
	if (lane->kernel)
		lane->kernel->ops->allow_sums(lane);
	return room;
}
