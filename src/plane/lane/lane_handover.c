/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/lane/lane_handover.h"

#include "plane/lane/lane_kind.h"
#include "plane/lane/link_share.h"
#include "plane/lane/occupancy.h"

#include <stdlib.h>

/* If the plane has a kernel part, the cells lie in memory that both share. */
static void pool_share(struct kernel *kernel, struct agg_lane *lane)
{
	if (kernel && !kernel->ops->lane_open(kernel, lane))
		comm_leave_kernel(lane->comm, lane->index, "", "%s", trib_last_error());
}

/* The kernel part frees the cells that it shares. */
static void pool_free(struct agg_lane *lane)
{
	lane->does->close(lane);
	if (lane->kernel)
		lane->kernel->ops->lane_close(lane);
}

struct agg_lane *agg_lane_new(struct aggregator *aggregator, struct comm *comm, unsigned index)
{
	struct agg_lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return NULL;
	lane->does = comm->does;
	lane->comm = comm;
	lane->index = index;
	lane->group_fd = -1;
	pool_share(comm->kernel, lane);
	for (uint64_t left = comm->present; left; left &= left - 1)
		lane->heard_at[__builtin_ctzll(left)] = comm->created_at;
	lane->group = comm->group;
	if (lane->group.length)
		udp_set_port(&lane->group, (uint16_t)(udp_port(&comm->group) + index));
	if (!lane->does->open(aggregator, lane)) {
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
	pool_free(lane);
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
	lane->does->end(thread, lane);
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
			thread->lanes[id]->does->begin(thread, thread->lanes[id]);
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
