/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/lane/agg_lane.h"

#include "plane/core/failure.h"
#include "plane/core/join_check.h"

struct wire_unsent agg_lane_unsent(const struct agg_lane *lane, uint64_t position)
{
	const struct comm *comm = lane->comm;

	return (struct wire_unsent){ .proof = wire_proof(comm->cookie, comm->job, comm->epoch),
		                     .pos = wire_pos(lane->index, position) };
}

uint64_t agg_lane_late(const struct agg_lane *lane, uint64_t children)
{
	uint64_t ranks = 0;

	for (; children; children &= children - 1) {
		unsigned child = (unsigned)__builtin_ctzll(children);
		uint64_t covers = join_covers(&lane->comm->children[child].join);

		/* A child that is an aggregator knows best which of its ranks are late. */
		ranks |= lane->awaits[child] & covers ? lane->awaits[child] & covers : covers;
	}
	return ranks;
}

void agg_lane_send_abort(struct thread *thread, struct agg_lane *lane, unsigned child)
{
	struct {
		struct wire_control header;
		struct wire_abort abort;
	} packet = { .header = wire_answer(lane->comm, lane, WIRE_ABORT, (uint8_t)child),
		     .abort = lane->comm->abort };

	if (lane->known & child_bit(child))
		thread_send(thread, &packet, sizeof(packet), &lane->addresses[child]);
}

/* A child that was asked whether it is still here does not know us: it was restarted. */
static void fail_forgotten(struct agg_lane *lane, const struct udp_address *from)
{
	struct comm *comm = lane->comm;
	char text[200];

	for (uint64_t left = comm->present & ~comm->gone; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);

		if (udp_same(&lane->addresses[child], from))
			comm_set_failed(comm, TRIB_ERR_AGGREGATOR, child,
			                "%s was restarted, and does not know the job",
			                comm_describe_child(comm, child, text, sizeof(text)));
	}
}

void agg_lane_take_abort(struct agg_lane *lane, const struct wire_control *header,
                         const struct udp_address *from)
{
	const struct wire_abort *abort = wire_payload(header);

	if (header->child == WIRE_ALL) {
		fail_forgotten(lane, from);
		return;
	}

	if (abort->status < 0 && abort->status >= TRIB_ERR_CLOSED)
		comm_set_failed(lane->comm, (trib_status)abort->status, abort->rank, "%s",
		                abort->text);
}

uint64_t agg_lane_came_last(const struct agg_lane *lane, unsigned child)
{
	return lane->last[child] + (lane->kernel ? lane->kernel->ops->came_last(lane, child) : 0);
}
