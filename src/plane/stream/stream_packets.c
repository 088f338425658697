/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/stream/stream_packets.h"

#include "plane/stream/packet_heads.h"
#include "plane/stream/parent_lane.h"
#include "wire/frame.h"

static struct dense_cell *cell_at(const struct agg_lane *lane, uint64_t position)
{
	return dense_cell(&lane->pool, dense_index(lane->dense, position));
}

static struct stream_packet packet_at(const struct agg_lane *lane, uint64_t position,
                                      uint32_t payload)
{
	return (struct stream_packet){
		.data = dense_packet(&lane->pool, dense_index(lane->dense, position)),
		.bytes = WIRE_HEADER + payload,
		.apart = (uint32_t)lane->pool.packet_step,
		.position = position,
	};
}

static struct result_entry *entry_at(const struct agg_lane *lane, uint64_t at)
{
	return &lane->queue[at % (2 * (uint64_t)lane->dense->cells)];
}

/* ---- results, to children ---- */

/*
 * Puts the header in front of a result that is still in its cell. The kernel part
 * may be about to reuse the cell, so without the lock `complete` of the next
 * fragment could be read. A repeat does not set sent_at: if all children have lost
 * a result, each is to get it when it asks.
 */
static bool take_result(const struct thread *thread, struct agg_lane *lane,
                        const struct result_entry *entry, struct stream_packet *out)
{
	const struct wire_unsent unsent = agg_lane_unsent(lane, entry->position);
	struct dense_cell *cell = cell_at(lane, entry->position);
	bool is_there;

	stream_lane_lock(lane, cell);
	is_there = cell->position == entry->position && cell->complete;
	if (is_there) {
		*out = packet_at(lane, entry->position, cell->bytes);
		out->again = entry->child != WIRE_ALL;
		out->to = out->again ? child_bit(entry->child)
		                     : dense_expected(lane->dense, cell->to);
		result_head(lane, cell, out->data, out->again);
		wire_seal_fragment(out->data, out->bytes, &unsent);
		if (!out->again)
			cell->sent_at = (uint32_t)(thread->now / 1000);
	}
	stream_lane_unlock(lane, cell);
	return is_there;
}

bool stream_next_result(struct thread *thread, struct agg_lane *lane, struct stream_packet *out)
{
	for (; lane->head != lane->tail; lane->head++) /* a repeat may be needed no more */
		if (take_result(thread, lane, entry_at(lane, lane->head), out))
			return true;
	lane->told_low = lane->dense->low;
	return false;
}

void stream_result_left(struct thread *thread, struct agg_lane *lane,
                        const struct stream_packet *packet)
{
	if (packet->again)
		thread->counters.repeats++;
	else
		thread->counters.results++;
	lane->head++;
}

/*
 * Puts headers in front of the sums, once: what leaves in parts must not change.
 * All results before lane->head are sealed and may leave.
 *
 * The ring never overflows. A child that lacks the result of position q has not
 * acknowledged it, so only positions in (q - cells, q + cells) can have been
 * completed since. Nothing is repeated: on a reliable carrier no child asks for
 * that.
 */
void stream_seal_results(struct thread *thread, struct agg_lane *lane)
{
	uint64_t kept = lane->head;

	for (uint64_t at = lane->head; at != lane->tail; at++) {
		struct result_entry entry = *entry_at(lane, at);
		struct dense_cell *cell = cell_at(lane, entry.position);
		struct stream_packet packet = packet_at(lane, entry.position, cell->bytes);

		if (entry.child != WIRE_ALL || cell->position != entry.position || !cell->complete)
			continue;
		entry.to = cell->to;
		entry.bytes = (uint16_t)packet.bytes;
		result_head(lane, cell, packet.data, false);
		wire_seal_frame(packet.data, entry.bytes);
		cell->sent_at = (uint32_t)(thread->now / 1000);
		*entry_at(lane, kept++) = entry;
		thread->counters.results++;
	}
	lane->head = lane->tail = kept;
	lane->told_low = lane->dense->low;
}

bool stream_result_at(const struct agg_lane *lane, uint64_t at, unsigned child,
                      struct stream_packet *out)
{
	const struct result_entry *entry = entry_at(lane, at);

	*out = packet_at(lane, entry->position, entry->bytes - WIRE_HEADER);
	out->to = dense_expected(lane->dense, entry->to);
	return out->to & child_bit(child);
}

/* ---- sums, to the parent ---- */

/*
 * Puts the header in front of a sum that has not left yet. With the lock: the
 * kernel part may be about to empty the cell for a higher scale, and a mixture of
 * both must not be sealed. If it empties the cell later, the checksum no longer
 * matches.
 */
static bool take_sum(const struct thread *thread, struct agg_lane *lane, uint64_t position,
                     struct stream_packet *out)
{
	const struct wire_unsent unsent = parent_lane_unsent(lane, position);
	struct dense_cell *cell = cell_at(lane, position);
	bool is_there;

	stream_lane_lock(lane, cell);
	is_there = uplink_claim(cell, position);
	if (is_there) {
		*out = packet_at(lane, position, cell->bytes);
		sum_head(lane, cell, out->data);
		wire_seal_fragment(out->data, out->bytes, &unsent);
		uplink_raise(&lane->up, lane->dense, cell, (uint32_t)(thread->now / 1000));
		lane->flight.launched++;
	}
	stream_lane_unlock(lane, cell);
	return is_there;
}

bool stream_next_sum(struct thread *thread, struct agg_lane *lane, struct stream_packet *out)
{
	uint64_t position;

	while (uplink_next(&lane->up, lane->dense, &position))
		if (take_sum(thread, lane, position, out))
			return true;
	return false;
}

bool stream_pop_sum(struct thread *thread, struct agg_lane *lane, struct stream_packet *out)
{
	struct dense_cell *cell = uplink_pop(&lane->up, lane->dense, &lane->pool);

	if (!cell)
		return false;
	*out = packet_at(lane, cell->position, cell->bytes);
	sum_head(lane, cell, out->data);
	uplink_raise(&lane->up, lane->dense, cell, (uint32_t)(thread->now / 1000));
	return true;
}

/* ---- for the kernel part ---- */

uint32_t stream_cell_of(const struct agg_lane *lane, uint64_t position)
{
	return dense_index(lane->dense, position);
}

bool stream_was_repeated(const struct agg_lane *lane, uint64_t position)
{
	const struct wire_header *header = (const void *)packet_at(lane, position, 0).data;

	return header->pos == (uint32_t)position && header->flags & WIRE_RESENT;
}

bool stream_has_result(const struct agg_lane *lane, uint64_t position, unsigned child)
{
	const struct dense_cell *cell = cell_at(lane, position);

	return cell->position == position && cell->complete &&
	       dense_expected(lane->dense, cell->to) & child_bit(child);
}
