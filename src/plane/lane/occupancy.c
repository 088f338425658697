/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/lane/occupancy.h"

#include "plane/core/failure.h"

static void leave(struct aggregator *aggregator, struct comm *comm)
{
	bool counted = true;

	if (atomic_compare_exchange_strong(&comm->counted, &counted, false))
		atomic_fetch_sub(&aggregator->occupancy.now, 1);
}

void occupancy_enter(struct aggregator *aggregator, struct comm *comm)
{
	struct occupancy *occupancy = &aggregator->occupancy;
	unsigned most = atomic_load(&occupancy->most), now;
	bool counted = false;

	if (atomic_fetch_add(&comm->busy_lanes, 1) || atomic_load(&comm->failed) ||
	    !atomic_compare_exchange_strong(&comm->counted, &counted, true))
		return;
	now = atomic_fetch_add(&occupancy->now, 1) + 1;
	while (most < now && !atomic_compare_exchange_weak(&occupancy->most, &most, now))
		;
	atomic_fetch_add(&occupancy->times, 1);
	if (now > aggregator->options.capacity)
		atomic_fetch_add(&occupancy->over, 1);
	if (atomic_load(&comm->failed)) /* it failed meanwhile */
		leave(aggregator, comm);
}

void occupancy_leave(struct aggregator *aggregator, struct comm *comm)
{
	if (atomic_fetch_sub(&comm->busy_lanes, 1) == 1)
		leave(aggregator, comm);
}

void occupancy_drop(struct aggregator *aggregator, struct agg_lane *lane)
{
	if (!lane->open)
		return;
	lane->open = 0;
	occupancy_leave(aggregator, lane->comm);
}

/* child_take_data() ignores the packets of a failed communicator. */
static void end_comm(struct aggregator *aggregator, struct comm *comm)
{
	comm_set_failed(comm, TRIB_ERR_AGGREGATOR, 0,
	                "the controller has taken back this job's turn at a shared aggregator: a "
	                "rank was silent for too long, or has failed");
	leave(aggregator, comm);
}

void occupancy_fence(struct thread *thread, const struct wire_control *header,
                     const struct udp_address *from)
{
	struct aggregator *aggregator = thread->aggregator;
	const struct wire_turn *fence = wire_payload(header);
	struct {
		struct wire_control header;
		struct wire_turn turn;
	} packet = { *header, *fence };

	for (unsigned id = 1; id < COMMS_MAX; id++) {
		struct comm *comm = aggregator->comms[id];

		if (!comm || comm->job != header->job || comm->key != fence->peer_key ||
		    comm->generation > fence->generation)
			continue;
		if (comm->retired) /* replaced by a newer plan, but perhaps still counted */
			leave(aggregator, comm);
		else
			end_comm(aggregator, comm);
	}
	packet.turn.word = WIRE_TURN_FENCED;
	packet.turn.ops = 0;
	thread_answer(thread, &packet, sizeof(packet), from);
}
