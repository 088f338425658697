/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many communicators have sums under way at once. An aggregator that jobs
 * share does not decide whose turn it is; it counts, so that nobody has to
 * believe those who do.
 *
 * A lane counts the cells that have somebody's part and not everybody's; only
 * when that becomes one, or none, do threads meet here.
 */
#include "plane/core/internal.h"

#include <stdio.h>

static void leave(struct aggregator *aggregator, struct comm *comm)
{
	bool counted = true;

	if (atomic_compare_exchange_strong(&comm->counted, &counted, false))
		atomic_fetch_sub(&aggregator->crowd.now, 1);
}

void crowd_enter(struct aggregator *aggregator, struct comm *comm)
{
	struct crowd *crowd = &aggregator->crowd;
	unsigned most = atomic_load(&crowd->most), now;
	bool counted = false;

	if (atomic_fetch_add(&comm->busy_lanes, 1) || atomic_load(&comm->failed) ||
	    !atomic_compare_exchange_strong(&comm->counted, &counted, true))
		return;
	now = atomic_fetch_add(&crowd->now, 1) + 1;
	while (most < now && !atomic_compare_exchange_weak(&crowd->most, &most, now))
		;
	atomic_fetch_add(&crowd->times, 1);
	if (now > aggregator->options.capacity)
		atomic_fetch_add(&crowd->over, 1);
	if (atomic_load(&comm->failed)) /* meanwhile */
		leave(aggregator, comm);
}

void crowd_leave(struct aggregator *aggregator, struct comm *comm)
{
	if (atomic_fetch_sub(&comm->busy_lanes, 1) == 1)
		leave(aggregator, comm);
}

void crowd_drop(struct aggregator *aggregator, struct lane *lane)
{
	if (!lane->open)
		return;
	lane->open = 0;
	crowd_leave(aggregator, lane->comm);
}

/* What has failed takes no part any more; see lane_take_data. */
static void end_comm(struct aggregator *aggregator, struct comm *comm)
{
	registry_fail(comm, TRIB_ERR_AGGREGATOR, 0,
	              "the controller has taken back this job's turn at a shared aggregator: a "
	              "rank was silent for too long, or has failed");
	leave(aggregator, comm);
}

void crowd_fence(struct thread *thread, const struct wire_control *header,
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
		if (comm->retired) /* a newer plan has taken its place, and it may still be counted
		                    */
			leave(aggregator, comm);
		else
			end_comm(aggregator, comm);
	}
	packet.turn.word = WIRE_TURN_FENCED;
	packet.turn.ops = 0;
	thread_answer(thread, &packet, sizeof(packet), from);
}
