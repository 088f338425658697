/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/membership/liveness.h"

#include "base/clock.h"
#include "plane/core/failure.h"
#include "plane/lane/link_share.h"
#include "plane/lane/lane_kind.h"
#include "plane/membership/comm_table.h"
#include "plane/membership/parent_session.h"
#include "plane/stream/parent_lane.h"

#include <stdio.h>
#include <stdlib.h>

#define ABANDONED_NS (10 * NSEC_PER_SEC) /* 10 s without a JOIN: nobody waits to begin it */
#define PING_AFTER \
	(6 * NSEC_PER_SEC / 10) /* 600 ms of silence of a worker; heartbeats are more frequent */
#define PING_AGGREGATOR_AFTER (NSEC_PER_SEC / 5) /* 200 ms of silence of an aggregator below */
#define CLOSED "its port is closed, so its process has ended"
#define ABORT_FOR NSEC_PER_SEC /* 1 s: how long ABORTs are repeated */

void liveness_take_bye(struct aggregator *aggregator, struct agg_lane *lane,
                       const struct wire_control *header, const struct udp_address *from)
{
	struct comm *comm = lane->comm;
	struct wire_control echo = wire_answer(comm, lane, WIRE_BYE, header->child);

	if (header->child >= WIRE_CHILDREN_MAX || !(comm->present & child_bit(header->child))) {
		aggregator->threads[0].counters.drops[DROP_STRANGER]++;
		return;
	}
	echo.flags = WIRE_ECHO;
	thread_send(&aggregator->threads[0], &echo, sizeof(echo), from);
	comm->gone |= child_bit(header->child);
	/* Thread 0 owns lane 0 only. The other threads read `gone` at their tick. */
	lane->left |= child_bit(header->child);
	link_share_leave(aggregator, comm, header->child);
	lane->does->leave(lane);
}

/* Heavy loss on the link may be the cause. */
static const char *losses_text(const struct agg_lane *lane, unsigned child, char *out, size_t size)
{
	double share =
		lane->judged[child] ? (double)lane->missed[child] / (double)lane->judged[child] : 0;

	*out = '\0';
	if (share >= LOSSES_MAX)
		snprintf(out, size, "; its link lost %.1f %% of %llu packets before", share * 100,
		         (unsigned long long)lane->judged[child]);
	return out;
}

void liveness_fail_child(struct agg_lane *lane, unsigned child, const char *why, uint64_t silent_ns)
{
	struct comm *comm = lane->comm;
	bool is_aggregator = comm->children[child].join.height;
	char text[200], losses[80];

	/* If an aggregator is lost, another tree may help. */
	comm_set_failed(comm, is_aggregator ? TRIB_ERR_AGGREGATOR : TRIB_ERR_PEER, child,
	                "%s is lost: %s, last heard of %.1f s ago%s; restart the job, or look at "
	                "that host's log for why the process ended",
	                comm_describe_child(comm, child, text, sizeof(text)), why,
	                (double)silent_ns / 1e9, losses_text(lane, child, losses, sizeof(losses)));
}

static void check_children(struct thread *thread, struct agg_lane *lane, uint64_t gap)
{
	struct comm *comm = lane->comm;
	uint64_t dead_after = (uint64_t)comm->dead_after_ms * 1000000;
	unsigned probes = CLOSED_PROBES;

	/* The job's stream knows more about a lost rank, so its error comes first. */
	if (!comm->engine->streams) {
		dead_after += dead_after / 4;
		probes *= 2;
	}
	for (uint64_t left = comm->present & ~comm->gone; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);
		/*
		 * An aggregator's own workers notice its loss soon. Ranks elsewhere in
		 * the tree learn it only from us.
		 */
		uint64_t silent, patience = comm->children[child].join.height
		                                    ? PING_AGGREGATOR_AFTER
		                                    : PING_AFTER;

		lane->heard_at[child] += gap; /* this process stood still, not the child */
		silent = clock_since(thread->now, lane->heard_at[child]);
		closed_port_heard(&lane->closed[child], lane->heard_at[child]);
		if (closed_port_is_proven(&lane->closed[child], thread->now, probes)) {
			liveness_fail_child(lane, child, CLOSED, silent);
		} else if (silent > dead_after) {
			liveness_fail_child(lane, child, "nothing has come from it", silent);
		} else if (closed_port_probes(&lane->closed[child], thread->now) ||
		           silent > patience) {
			/* A living child answers. If it is gone, its host says that the port is
			 * closed. */
			struct wire_control ping = wire_answer(comm, lane, WIRE_BYE, WIRE_ALL);

			thread_send(thread, &ping, sizeof(ping), &lane->addresses[child]);
		}
	}
}

static void tick_failed(struct thread *thread, struct agg_lane *lane)
{
	struct comm *comm = lane->comm;

	if (!comm->failed_at)
		comm->failed_at = thread->now;
	if (thread->now > comm->failed_at + ABORT_FOR)
		return;
	for (uint64_t left = comm->present & ~comm->gone; left; left &= left - 1)
		agg_lane_send_abort(thread, lane, (unsigned)__builtin_ctzll(left));
	if (comm->has_parent)
		parent_lane_send_abort(thread, lane);
}

/* Have all children left, and does the parent know? */
static bool is_over(struct thread *thread, struct agg_lane *lane)
{
	struct comm *comm = lane->comm;

	if (comm->gone != comm->present)
		return false;
	return !comm->has_parent || atomic_load(&comm->failed) || parent_leave(thread, lane);
}

/* When a child last asked to join a communicator that does not run yet. */
static uint64_t last_asked(const struct comm *comm)
{
	uint64_t last = comm->created_at;

	for (uint64_t left = comm->present | comm->forming; left; left &= left - 1) {
		uint64_t at = comm->children[__builtin_ctzll(left)].asked_at;

		last = at > last ? at : last;
	}
	return last;
}

void liveness_tick(struct aggregator *aggregator, uint64_t gap)
{
	struct thread *thread = &aggregator->threads[0];

	for (unsigned id = 1; id < COMMS_MAX; id++) {
		struct comm *comm = aggregator->comms[id];
		struct agg_lane *lane = thread->lanes[id];
		uint64_t linger;

		if (!comm)
			continue;
		if (comm->retired) {
			if (atomic_load(&comm->users) == 0) {
				free(comm);
				aggregator->comms[id] = NULL;
			}
			continue;
		}
		if (!comm->running) {
			if (thread->now > last_asked(comm) + ABANDONED_NS)
				comm->retired = true;
			else if (comm->has_parent)
				parent_tick_forming(aggregator, comm);
			continue;
		}
		if (!lane || lane->comm != comm)
			continue;
		linger = (uint64_t)comm->dead_after_ms * 1000000 + ABORT_FOR;
		if (atomic_load(&comm->failed))
			tick_failed(thread, lane);
		else
			check_children(thread, lane, gap);
		if (comm->has_parent && !atomic_load(&comm->failed))
			parent_check(thread, lane, gap);
		if (is_over(thread, lane) ||
		    (comm->failed_at && thread->now > comm->failed_at + linger))
			comm_table_retire(aggregator, comm);
	}
}

void liveness_port_closed(struct aggregator *aggregator, const struct udp_address *address)
{
	struct thread *thread = &aggregator->threads[0];

	for (unsigned id = 1; id < COMMS_MAX; id++) {
		struct agg_lane *lane = thread->lanes[id];

		if (!lane || atomic_load(&lane->comm->failed))
			continue;
		for (uint64_t left = lane->comm->present & ~lane->comm->gone; left;
		     left &= left - 1) {
			unsigned child = (unsigned)__builtin_ctzll(left);

			if (udp_same(&lane->addresses[child], address))
				closed_port_hint(&lane->closed[child], thread->now);
		}
	}
	parent_port_closed(aggregator, address);
}
