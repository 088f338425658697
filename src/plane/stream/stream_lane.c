/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a stream's lane, its window, and what its children send. */
#include "plane/stream/stream_lane.h"

#include "plane/core/join_check.h"
#include "plane/lane/child_packets.h"
#include "plane/lane/occupancy.h"
#include "plane/stream/child_rates.h"
#include "plane/stream/parent_lane.h"
#include "plane/stream/stream_window.h"

#include <stdlib.h>
#include <sys/mman.h>

/* ---- life ---- */

/* Cells and sums lie apart, so that packets lie side by side. */
static bool open_cells(struct agg_lane *lane)
{
	struct dense_pool *pool = &lane->pool;
	uint32_t cells = lane->comm->cells;

	lane->stride = WIRE_HEADER + lane->comm->payload;
	lane->queue = calloc(2 * (size_t)cells, sizeof(*lane->queue));
	if (lane->kernel)
		return lane->queue;
	lane->dense = calloc(1, sizeof(*lane->dense));
	pool->cell_step = sizeof(struct dense_cell);
	pool->cells = calloc(cells, pool->cell_step);
	pool->packet_step = lane->stride;
	/* The kernel commits memory only to pages that fragments use. */
	pool->packets = mmap(NULL, cells * pool->packet_step, PROT_READ | PROT_WRITE,
	                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pool->packets == MAP_FAILED)
		pool->packets = NULL;
	return lane->queue && lane->dense && pool->cells && pool->packets;
}

static void begin_cells(struct agg_lane *lane)
{
	const struct comm *comm = lane->comm;

	for (uint32_t i = 0; i < comm->cells; i++)
		dense_cell(&lane->pool, i)->position = DENSE_EMPTY;
	lane->dense->cells = comm->cells;
	lane->dense->payload = comm->payload;
	for (uint64_t left = comm->present; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);

		dense_add_child(lane->dense, child, join_covers(&comm->children[child].join));
	}
}

static bool open_lane(struct aggregator *aggregator, struct agg_lane *lane)
{
	if (!open_cells(lane))
		return false;
	begin_cells(lane);
	return !lane->comm->has_parent || parent_lane_open(aggregator, lane);
}

static void close_lane(struct agg_lane *lane)
{
	parent_lane_close(lane);
	free(lane->queue);
	if (lane->kernel)
		return;
	free(lane->dense);
	free(lane->pool.cells);
	if (lane->pool.packets)
		munmap(lane->pool.packets, lane->comm->cells * lane->pool.packet_step);
}

static void begin(struct thread *thread, struct agg_lane *lane)
{
	if (lane->comm->has_parent)
		parent_lane_begin(thread, lane);
}

static void end(struct thread *thread, struct agg_lane *lane)
{
	if (lane->comm->has_parent)
		parent_lane_end(thread, lane);
}

static void tick(struct thread *thread, struct agg_lane *lane)
{
	if (lane->comm->has_parent)
		parent_lane_tick(thread, lane);
}

static void leave(struct agg_lane *lane)
{
	lane->dense->left = lane->left;
	dense_update_low(lane->dense);
}

static void follow(struct thread *thread, struct agg_lane *lane, const struct wire_report *report)
{
	if (lane->comm->has_parent)
		parent_lane_follow(thread, lane, report);
}

/* ---- the window ---- */

static uint64_t low(const struct agg_lane *lane)
{
	return lane->dense->low;
}

static uint64_t done(const struct agg_lane *lane, unsigned child)
{
	return lane->dense->ack[child];
}

/* ---- DATA ---- */

static uint64_t position_of(const struct agg_lane *lane, const struct wire_header *header)
{
	return dense_position(lane->dense, header);
}

/* The packet does not fit the cell. */
static void dispute(struct agg_lane *lane, const struct dense_cell *cell,
                    const struct wire_header *header, uint32_t bytes, uint64_t now)
{
	uint64_t position = dense_position(lane->dense, header);
	const struct engine_view there = { .position = position,
		                           .arrived = cell->arrived,
		                           .bytes = cell->bytes,
		                           .op = cell->op,
		                           .from = cell->position == position ? cell->from
		                                                              : WIRE_ALL };

	child_dispute(lane, header, bytes, &there, now);
}

static void count_open(struct aggregator *aggregator, struct agg_lane *lane, bool fresh,
                       enum dense_verdict verdict)
{
	if (fresh && (verdict == DENSE_ADDED || verdict == DENSE_COMPLETE) && !lane->open++)
		occupancy_enter(aggregator, lane->comm);
	if (verdict == DENSE_COMPLETE && !--lane->open)
		occupancy_leave(aggregator, lane->comm);
}

static void take_data(struct thread *thread, struct agg_lane *lane,
                      const struct wire_header *header, uint32_t bytes)
{
	uint64_t position = dense_position(lane->dense, header);
	uint32_t index = dense_index(lane->dense, position);
	struct dense_cell *cell = dense_cell(&lane->pool, index);
	bool counts = thread->aggregator->options.capacity && !lane->dense->has_parent;
	bool fresh = cell->position != position;
	enum dense_verdict verdict;

	if (counts && atomic_load_explicit(&lane->comm->failed, memory_order_acquire))
		return; /* another job may have its turn by now */
	stream_lane_lock(lane, cell);
	verdict = dense_take(lane->dense, cell, dense_packet(&lane->pool, index) + WIRE_HEADER,
	                     header, header + 1, bytes);
	if (verdict == DENSE_AHEAD && lane->dense->has_parent) {
		uplink_settle(&lane->up, lane->dense, &lane->pool);
		verdict = dense_take(lane->dense, cell,
		                     dense_packet(&lane->pool, index) + WIRE_HEADER, header,
		                     header + 1, bytes);
	}
	/* The kernel part has added the last packet, and leaves sending and counting to us. */
	if (verdict == DENSE_DUPLICATE && uplink_is_left(cell))
		verdict = DENSE_SUMMED;
	if (verdict == DENSE_SUMMED)
		uplink_push(&lane->up, lane->dense, cell);
	stream_lane_unlock(lane, cell);
	if (counts)
		count_open(thread->aggregator, lane, fresh, verdict);
	thread->counters.verdicts[verdict]++;
	lane->heard_at[header->child & 63] = thread->now;
	child_rates_note(thread, lane);
	switch (verdict) {
	case DENSE_COMPLETE:
	case DENSE_SUMMED:
		if (verdict == DENSE_COMPLETE)
			stream_lane_queue(lane, position, WIRE_ALL);
		lane->last[header->child]++;
		thread->counters.payload += bytes;
		break;
	case DENSE_ADDED:
		thread->counters.payload += bytes;
		break;
	case DENSE_MISMATCH:
		dispute(lane, cell, header, bytes, thread->now);
		break;
	default:
		break;
	}
}

const struct lane_kind lane_of_stream = {
	.open = open_lane,
	.close = close_lane,
	.begin = begin,
	.end = end,
	.tick = tick,
	.leave = leave,
	.position = position_of,
	.take_data = take_data,
	.note_report = stream_lane_note_report,
	.owed = stream_lane_owed,
	.answer = stream_lane_answer,
	.follow = follow,
	.low = low,
	.done = done,
};
