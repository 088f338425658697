/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/lane/lane_handover.h"

#include "plane/core/join_check.h"
#include "plane/lane/engine_packets.h"
#include "plane/lane/link_share.h"
#include "plane/lane/occupancy.h"
#include "plane/lane/parent_lane.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Cells and sums lie apart, so that packets lie side by side. */
static bool pool_new(struct agg_lane *lane)
{
	struct dense_pool *pool = &lane->pool;
	uint32_t cells = lane->comm->cells;

	lane->dense = calloc(1, sizeof(*lane->dense));
	pool->cell_step = sizeof(struct dense_cell);
	pool->cells = calloc(cells, pool->cell_step);
	pool->packet_step = lane->stride;
	/* The kernel commits memory only to pages that fragments use. */
	pool->packets = mmap(NULL, cells * pool->packet_step, PROT_READ | PROT_WRITE,
	                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pool->packets == MAP_FAILED)
		pool->packets = NULL;
	return lane->dense && pool->cells && pool->packets;
}

/* If the plane has a kernel part, the cells lie in memory that both share. */
static bool pool_share(struct kernel *kernel, struct agg_lane *lane)
{
	if (!kernel)
		return false;
	if (kernel->ops->lane_open(kernel, lane))
		return true;
	comm_leave_kernel(lane->comm, lane->index, "", "%s", trib_last_error());
	return false;
}

static void pool_free(struct agg_lane *lane)
{
	if (lane->kernel) {
		lane->kernel->ops->lane_close(lane);
		return;
	}
	engine_lane_close(lane);
	free(lane->dense);
	free(lane->pool.cells);
	if (lane->pool.packets)
		munmap(lane->pool.packets, lane->comm->cells * lane->pool.packet_step);
}

struct agg_lane *agg_lane_new(struct aggregator *aggregator, struct comm *comm, unsigned index)
{
	struct agg_lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return NULL;
	lane->comm = comm;
	lane->index = index;
	lane->group_fd = -1;
	lane->stride = WIRE_HEADER + comm->payload;
	lane->queue = calloc(2 * (size_t)comm->cells, sizeof(*lane->queue));
	if ((!pool_share(comm->kernel, lane) && !pool_new(lane)) || !lane->queue ||
	    (comm->engine && !lane->engine.lane && !engine_lane_open(lane)) ||
	    (comm->has_parent && !parent_lane_open(aggregator, lane))) {
		agg_lane_free(lane);
		return NULL;
	}
	for (uint32_t i = 0; i < comm->cells; i++)
		dense_cell(&lane->pool, i)->position = DENSE_EMPTY;
	lane->dense->cells = comm->cells;
	lane->dense->payload = comm->payload;
	for (uint64_t left = comm->present; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);

		dense_add_child(lane->dense, child, join_covers(&comm->children[child].join));
		lane->heard_at[child] = comm->created_at;
	}
	lane->group = comm->group;
	if (lane->group.length)
		udp_set_port(&lane->group, (uint16_t)(udp_port(&comm->group) + index));
	if (comm->engine && !engine_lane_start(aggregator, lane)) {
		agg_lane_free(lane);
		return NULL;
	}
	if (lane->kernel) {
		lane->kernel->ops->lane_start(lane);
		comm_enter_kernel(comm, index);
	}
	return lane;
}

void agg_lane_free(struct agg_lane *lane)
{
	if (!lane)
		return;
	parent_lane_close(lane);
	pool_free(lane);
	free(lane->queue);
	free(lane);
}

/* The communicator, and so its id, may be used again only when the whole lane is gone. */
static void let_go(struct thread *thread, struct agg_lane *lane)
{
	struct comm *comm = lane->comm;

	link_share_close(thread->aggregator, lane);
	occupancy_drop(thread->aggregator, lane);
	agg_lane_free(lane);
	atomic_fetch_sub(&comm->users, 1);
}

void lane_handover_post(struct thread *thread, unsigned id, struct agg_lane *lane)
{
	pthread_mutex_lock(&thread->lock);
	if (thread->inbox[id]) { /* its thread has not taken it yet */
		let_go(thread, thread->inbox[id]);
	}
	thread->inbox[id] = lane;
	thread->outbox[id] = lane == NULL;
	atomic_store_explicit(&thread->mail, true, memory_order_release);
	pthread_mutex_unlock(&thread->lock);
}

static void drop_lane(struct thread *thread, unsigned id)
{
	struct agg_lane *lane = thread->lanes[id];

	if (!lane)
		return;
	thread->lanes[id] = NULL;
	if (lane->comm->has_parent)
		parent_lane_end(thread, lane);
	thread->aggregator->carrier->forget(thread, lane);
	let_go(thread, lane);
}

void lane_handover_read(struct thread *thread)
{
	if (!atomic_load_explicit(&thread->mail, memory_order_acquire))
		return;
	pthread_mutex_lock(&thread->lock);
	thread->ids = 0;
	for (unsigned id = 0; id < COMMS_MAX; id++) {
		if (thread->outbox[id] || thread->inbox[id])
			drop_lane(thread, id);
		if (thread->inbox[id]) {
			thread->lanes[id] = thread->inbox[id];
			if (thread->lanes[id]->comm->has_parent)
				parent_lane_begin(thread, thread->lanes[id]);
		}
		if (thread->lanes[id])
			thread->ids = id + 1;
		thread->inbox[id] = NULL;
		thread->outbox[id] = false;
	}
	atomic_store_explicit(&thread->mail, false, memory_order_release);
	pthread_mutex_unlock(&thread->lock);
}

void lane_handover_drop_all(struct thread *thread)
{
	for (unsigned id = 0; id < COMMS_MAX; id++)
		drop_lane(thread, id);
}
