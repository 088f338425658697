/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of children of a stream: what they have, what they lack, and the answers. */
#include "plane/stream/child_rates.h"
#include "plane/lane/link_share.h"
#include "plane/stream/stream_lane.h"
#include "plane/stream/stream_window.h"

#include <string.h>

#define YOUNG_US 200u /* us: a result that the kernel part sent may wait in a queue this long */

static void note_hearing(struct thread *thread, struct agg_lane *lane,
                         const struct wire_control *header)
{
	if (header->flags & WIRE_HEARS_MULTICAST) {
		lane->hears |= child_bit(header->child);
		return;
	}
	lane->hears &= ~child_bit(header->child);
	if (lane->comm->grouped & child_bit(header->child))
		stream_lane_probe_group(thread, lane);
}

/*
 * Only the child knows what its link loses. A fragment that is missing here may
 * not have left the child yet, and a result that it asks for again may only be
 * late.
 */
static void note_losses(struct agg_lane *lane, unsigned child, const struct wire_report *report)
{
	uint32_t judged = report->judged - lane->told_judged[child];
	uint32_t lost = report->lost - lane->told_lost[child];
	uint16_t again = (uint16_t)(report->again - lane->told_again[child]);

	lane->told_again[child] = report->again;
	lane->repeated[child] += again <= INT16_MAX ? again : 0;
	lane->told_judged[child] = report->judged;
	lane->told_lost[child] = report->lost;
	if (lost > INT32_MAX || judged > INT32_MAX)
		return; /* a counter went backwards: not believed */
	lane->judged[child] += judged;
	lane->missed[child] += lost;
}

void stream_lane_note_report(struct thread *thread, struct agg_lane *lane,
                             const struct wire_control *header)
{
	note_hearing(thread, lane, header);
	if (lane->kernel)
		lane->kernel->ops->group_probe_seen(lane);
	child_rates_take_report(thread, lane, header);
	note_losses(lane, header->child, wire_payload(header));
	dense_ack(lane->dense, header->child, header->ack);
	if (lane->dense->has_parent)
		uplink_settle(&lane->up, lane->dense, &lane->pool);
}

uint64_t stream_lane_owed(const struct agg_lane *lane, unsigned child,
                          const struct wire_report *report)
{
	uint64_t done = lane->dense->ack[child];

	/* A report that ends where the child is done asks about nothing that it waits for. */
	if (done >= report->base + report->bits)
		return 0;
	return dense_waiting(lane->dense, &lane->pool, done);
}

/* Queues the results that the child asks for. */
static void queue_repeats(struct agg_lane *lane, unsigned child, const struct wire_report *report,
                          const uint64_t *repeat)
{
	for (uint32_t i = 0; i < WIRE_GROUP / 64; i++) {
		if (!report->young) /* the child is sure that they are lost */
			lane->recent_losses[child] += (uint32_t)__builtin_popcountll(repeat[i]);
		for (uint64_t word = repeat[i]; word; word &= word - 1)
			stream_lane_queue(lane,
			                  report->base + 64 * i + (uint64_t)__builtin_ctzll(word),
			                  child);
	}
}

/* Fills what dense_answer() leaves out of the answer to a report. */
static void fill_status(struct thread *thread, struct agg_lane *lane, unsigned child,
                        struct status_packet *packet)
{
	uint64_t ack = lane->dense->ack[child];

	packet->header.pos = wire_pos(lane->index, ack);
	packet->header.ack = (uint32_t)lane->dense->low;
	packet->status.waiting = agg_lane_late(lane, dense_waiting(lane->dense, &lane->pool, ack));
	if (lane->dense->has_parent &&
	    (!packet->status.waiting || !uplink_cell(lane->dense, &lane->pool, ack)))
		packet->status.waiting |= lane->up.waiting;
	/* No child may end a call by what is here: it has to wait until the dispute is over. */
	if (lane->disputed_at)
		packet->status.bits = 0;
	link_share_fill(thread, lane, child, &packet->status);
}

void stream_lane_answer(struct thread *thread, struct agg_lane *lane, unsigned child,
                        const struct wire_report *report, struct status_packet *packet)
{
	uint64_t repeat[WIRE_GROUP / 64];

	dense_answer(lane->dense, &lane->pool, child, report, (uint32_t)(thread->now / 1000),
	             lane->kernel ? YOUNG_US : 0, &packet->status, repeat);
	if (lane->kernel)
		lane->kernel->ops->report_answered(lane, child, report, repeat);
	queue_repeats(lane, child, report, repeat);
	stream_lane_announce_low(thread, lane);
	/* A result that the answer calls complete must leave before the answer. */
	if (!thread->aggregator->carrier->send_results(thread, lane))
		memset(packet->status.complete, 0, sizeof(packet->status.complete));
	fill_status(thread, lane, child, packet);
}
