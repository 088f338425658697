/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/lane/agg_lane.h"

#include "plane/core/failure.h"
#include "plane/core/join_check.h"

#define GROUP_PROBE_NS 20000000ull /* 20 ms between two probes of the multicast group */
#define PROBE_SOON_NS 1000000ull   /* 1 ms between the first ones: children join one by one */
#define PROBES_SOON 64u            /* probes at the shorter distance */

bool agg_lane_queue_result(struct agg_lane *lane, uint64_t position, uint8_t child)
{
	uint64_t used = lane->tail - lane->head;

	/* Half of the ring is for first results, of which there is at most one per cell. */
	if (child != WIRE_ALL && used >= lane->dense->cells)
		return false;
	lane->queue[lane->tail++ % (2 * (uint64_t)lane->dense->cells)] =
		(struct result_entry){ .position = position, .child = child };
	return true;
}

struct wire_unsent agg_lane_unsent(const struct agg_lane *lane, uint64_t position)
{
	const struct comm *comm = lane->comm;

	return (struct wire_unsent){ .proof = wire_proof(comm->cookie, comm->job, comm->epoch),
		                     .pos = wire_pos(lane->index, position) };
}

/* A STATUS for all children: the window, and what is complete from `base` on. */
static void tell_low(struct thread *thread, struct agg_lane *lane, const struct udp_address *to,
                     uint64_t base, uint32_t bits)
{
	struct status_packet packet = { .header = wire_answer(lane->comm, lane, WIRE_STATUS,
		                                              WIRE_ALL) };

	packet.status.low = lane->dense->low;
	dense_complete(lane->dense, &lane->pool, base, bits, &packet.status);
	thread_send(thread, &packet, wire_cut(&packet), to);
}

void agg_lane_probe_group(struct thread *thread, struct agg_lane *lane)
{
	uint64_t every = lane->probes < PROBES_SOON ? PROBE_SOON_NS : GROUP_PROBE_NS;

	if (!lane->group.length || thread->now < lane->probe_at + every)
		return;
	lane->probes++;
	lane->probe_at = thread->now;
	tell_low(thread, lane, &lane->group, 0, 0);
}

void agg_lane_tell(struct thread *thread, struct agg_lane *lane, uint64_t base, uint32_t bits)
{
	uint64_t to = lane->known & ~lane->dense->left;

	lane->told_low = lane->dense->low;
	if (to & lane->hears)
		tell_low(thread, lane, &lane->group, base, bits);
	for (to &= ~lane->hears; to; to &= to - 1)
		tell_low(thread, lane, &lane->addresses[__builtin_ctzll(to)], base, bits);
}

void agg_lane_announce_low(struct thread *thread, struct agg_lane *lane)
{
	if (lane->head == lane->tail && lane->dense->low >= lane->told_low + lane->dense->cells / 8)
		agg_lane_tell(thread, lane, 0, 0);
}

uint64_t agg_lane_waiting(const struct agg_lane *lane, uint64_t position)
{
	uint64_t children = lane->engine.lane ? lane->comm->engine->waiting(&lane->engine)
	                                      : dense_waiting(lane->dense, &lane->pool, position);
	uint64_t ranks = dense_ranks(lane->dense, children);

	for (; children; children &= children - 1) {
		unsigned child = (unsigned)__builtin_ctzll(children);
		uint64_t covers = join_covers(&lane->comm->children[child].join);

		/* A child that is an aggregator knows best which of its ranks are late. */
		if (lane->awaits[child] & covers)
			ranks = (ranks & ~covers) | (lane->awaits[child] & covers);
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

	if (lane->known & dense_bit(child))
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
