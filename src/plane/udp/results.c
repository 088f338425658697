/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results leave straight from the pool. Its cells are laid out as packets, at equal
 * distances, so a run of neighbouring fragments is one message that the kernel
 * segments.
 */
#include "plane/common/packet_heads.h"
#include "plane/udp/udp_carrier.h"

#include <string.h>

#define RECENT 512u /* results between two looks at losses */
#define SINGLE_NS 10000000000ull

struct run {
	uint8_t *data;
	uint32_t bytes, segments;
	uint32_t segment, last; /* bytes of the first packet, and of the last one */
	uint64_t next;          /* the position that would continue the run */
	uint8_t child, to;
};

/* May this packet join the run? Packets of a run are equally long; only the last may be shorter. */
static bool run_takes(const struct run *run, const struct agg_lane *lane,
                      const struct result_entry *entry, const struct dense_cell *cell,
                      const uint8_t *packet)
{
	uint32_t bytes = WIRE_HEADER + cell->bytes;

	return run->segments && entry->position == run->next && entry->child == run->child &&
	       cell->to == run->to &&
	       packet == run->data + run->segments * lane->pool.packet_step &&
	       run->last == run->segment && bytes <= run->segment &&
	       run->segments < UDP_GSO_SEGMENTS && run->bytes + bytes <= UDP_GSO_BYTES;
}

/* Children that the run is for. */
static uint64_t targets(const struct agg_lane *lane, const struct run *run)
{
	uint64_t wanted = run->child != WIRE_ALL ? dense_bit(run->child)
	                                         : dense_expected(lane->dense, run->to);

	return wanted & lane->known & ~lane->dense->left;
}

static void message_send(struct thread *thread, const struct agg_lane *lane, const struct run *run,
                         const struct udp_address *to)
{
	udp_tx_add_apart(thread->tx, run->data, run->bytes, run->segment,
	                 (uint32_t)lane->pool.packet_step, to);
	thread->counters.sends += run->segments;
	thread->counters.messages++;
}

static void run_send(struct thread *thread, struct agg_lane *lane, const struct run *run)
{
	uint64_t to = targets(lane, run);

	/* One multicast, if two or more children hear it. */
	if (run->child == WIRE_ALL && thread->now >= lane->single_until &&
	    __builtin_popcountll(to & lane->hears) > 1) {
		message_send(thread, lane, run, &lane->group);
		to &= ~lane->hears;
	}
	for (; to; to &= to - 1)
		message_send(thread, lane, run, &lane->addresses[__builtin_ctzll(to)]);
}

/*
 * The kernel slows a sender whose packets queue before a link. It does not for
 * copies of a multicast: they overflow the queue. If one child loses many results
 * and the others do not, its link is too slow for multicast, and results leave by
 * unicast for SINGLE_NS.
 */
static void watch_losses(struct thread *thread, struct agg_lane *lane)
{
	uint32_t most = 0, all = 0;

	if (++lane->recent_results < RECENT)
		return;
	for (unsigned child = 0; child < lane->comm->size; child++) {
		all += lane->recent_losses[child];
		if (lane->recent_losses[child] > most)
			most = lane->recent_losses[child];
	}
	if (most > RECENT / 4 && all - most < most / 2)
		lane->single_until = thread->now + SINGLE_NS;
	memset(lane->recent_losses, 0, sizeof(lane->recent_losses));
	lane->recent_results = 0;
}

/*
 * Puts the header in front of a result that is still in its cell. The kernel part
 * may be about to reuse the cell, so without the lock `complete` of the next
 * fragment could be read. A repeat does not set sent_at: if all children have lost
 * a result, each is to get it when it asks.
 */
static bool take_result(struct thread *thread, struct agg_lane *lane,
                        const struct result_entry *entry, struct dense_cell *cell, uint8_t *packet)
{
	const struct wire_unsent unsent = agg_lane_unsent(lane, entry->position);
	bool is_there;

	agg_lane_lock(lane, cell);
	is_there = cell->position == entry->position && cell->complete;
	if (is_there) {
		result_head(lane, cell, packet, entry->child != WIRE_ALL);
		wire_seal_fragment(packet, WIRE_HEADER + cell->bytes, &unsent);
		if (entry->child == WIRE_ALL)
			cell->sent_at = (uint32_t)(thread->now / 1000);
	}
	agg_lane_unlock(lane, cell);
	return is_there;
}

bool results_send_udp(struct thread *thread, struct agg_lane *lane)
{
	uint64_t ring = 2 * (uint64_t)lane->dense->cells;
	struct run run = { 0 };

	while (lane->head != lane->tail) {
		struct result_entry *entry = &lane->queue[lane->head % ring];
		uint32_t index = dense_index(lane->dense, entry->position);
		struct dense_cell *cell = dense_cell(&lane->pool, index);
		uint8_t *packet = dense_packet(&lane->pool, index);

		if (!take_result(thread, lane, entry, cell, packet)) {
			lane->head++; /* a repeat that no child needs any more */
			continue;
		}
		if (!run_takes(&run, lane, entry, cell, packet)) {
			if (run.segments)
				run_send(thread, lane, &run);
			run.segments = 0;
			if (udp_tx_room(thread->tx) <= lane->comm->size)
				return false;
			run = (struct run){ .data = packet,
				            .segment = WIRE_HEADER + cell->bytes,
				            .child = entry->child,
				            .to = cell->to };
		}
		run.last = WIRE_HEADER + cell->bytes;
		run.bytes += run.last;
		run.segments++;
		run.next = entry->position + 1;
		if (entry->child == WIRE_ALL)
			thread->counters.results++;
		else
			thread->counters.repeats++;
		watch_losses(thread, lane);
		lane->head++;
	}
	if (run.segments)
		run_send(thread, lane, &run);
	lane->told_low = lane->dense->low;
	return true;
}
