/* SPDX-License-Identifier: Apache-2.0 */
/* Sums leave for the parent as results do for children: from the pool, neighbours in one message.
 */
#include "plane/core/internal.h"

void sum_head(const struct lane *lane, const struct dense_cell *cell, uint8_t *packet)
{
	struct wire_header *header = (struct wire_header *)(void *)packet;

	*header = (struct wire_header){ .magic = WIRE_MAGIC,
		                        .type = WIRE_DATA,
		                        .flags = cell->shape,
		                        .comm = lane->comm->parent.comm,
		                        .child = lane->comm->parent.child,
		                        .op = cell->op,
		                        .pos = (uint32_t)cell->position,
		                        .ack = (uint32_t)lane->dense->settled,
		                        .scale = cell->scale,
		                        .from = cell->from,
		                        .to = cell->to };
}

struct run {
	uint8_t *data;
	uint32_t bytes, segments;
	uint64_t next; /* the position that would go on with it */
};

static bool run_takes(const struct run *run, const struct lane *lane, const struct dense_cell *cell,
                      const uint8_t *packet)
{
	return run->segments && cell->position == run->next && packet == run->data + run->bytes &&
	       run->bytes % lane->stride == 0 && run->segments < UDP_GSO_SEGMENTS &&
	       run->bytes + WIRE_HEADER + cell->bytes <= UDP_GSO_BYTES;
}

static void run_send(struct thread *thread, struct lane *lane, struct run *run)
{
	if (run->segments)
		udp_tx_add(thread->tx, run->data, run->bytes,
		           run->segments > 1 ? lane->stride : run->bytes, &lane->parent);
	thread->counters.raised += run->segments;
	run->segments = run->bytes = 0;
}

/*
 * Puts the header in front of a sum that is still to go up. With the lock: the
 * kernel may be about to empty the cell for a higher scale, and half of each
 * must not be sealed. What it does afterwards makes the checksum wrong.
 */
static bool take_sum(struct thread *thread, struct lane *lane, struct dense_cell *cell,
                     uint64_t position, uint8_t *packet)
{
	const struct wire_unsent unsent = uplink_unsent(lane, position);
	bool is_there;

	if (lane->xdp)
		xdp_cell_lock(cell);
	is_there = uplink_claim(cell, position);
	if (is_there) {
		sum_head(lane, cell, packet);
		wire_seal_fragment(packet, WIRE_HEADER + cell->bytes, &unsent);
		uplink_raise(&lane->up, lane->dense, cell, (uint32_t)(thread->now / 1000));
		lane->flight.launched++;
	}
	if (lane->xdp)
		xdp_cell_unlock(cell);
	return is_there;
}

bool sums_send_udp(struct thread *thread, struct lane *lane)
{
	struct run run = { 0 };
	bool room;

	uplink_count_kernel(lane);
	/* One place for a run, one for the report. */
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
		uplink_report_raised(thread, lane);
	uplink_allow_kernel(lane);
	return room;
}
