/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/loop/packet_dispatch.h"

#include "plane/core/cookies.h"
#include "plane/lane/child_packets.h"
#include "plane/lane/lane_kind.h"
#include "plane/lane/occupancy.h"
#include "plane/membership/join_server.h"
#include "plane/membership/liveness.h"
#include "plane/membership/parent_session.h"
#include "plane/membership/unknown_comm.h"
#include "plane/stats/describe.h"
#include "plane/stream/parent_lane.h"
#include "wire/brief.h"

/* The lane that a packet is for, or NULL; the reason is counted. */
static struct agg_lane *find_lane(struct thread *thread, const struct wire_control *header)
{
	struct agg_lane *lane = header->comm < COMMS_MAX ? thread->lanes[header->comm] : NULL;
	uint64_t *drops = thread->counters.drops;

	if (!lane || lane->comm->job != header->job)
		drops[DROP_UNKNOWN]++;
	else if (lane->comm->cookie != header->cookie)
		drops[DROP_COOKIE]++;
	else if (lane->comm->epoch != header->epoch)
		drops[DROP_EPOCH]++;
	else if (lane->index != wire_lane(header))
		drops[DROP_LANE]++;
	else
		return lane;
	return NULL;
}

static void answer_query(struct thread *thread, const struct wire_control *header, uint32_t room,
                         const struct udp_address *from)
{
	struct {
		struct wire_control header;
		char text[WIRE_QUERY_BYTES - WIRE_CONTROL]; /* in all below 1500 bytes */
	} packet = { .header = { .magic = WIRE_MAGIC,
		                 .type = WIRE_ANSWER,
		                 .cookie = header->cookie,
		                 .job = header->job,
		                 .pos = header->pos } };
	/* A controller's job sees itself; the aggregator's own cookie is the operator's. */
	bool own = header->cookie == thread->aggregator->options.cookie;
	int length =
		describe_page(thread->aggregator, own ? 0 : header->job,
	                      (unsigned)wire_position(header), packet.text, sizeof(packet.text));
	uint32_t bytes = WIRE_CONTROL + (((uint32_t)length + 8) & ~7u);

	if (bytes <= room || from->link) /* a forged sender gets no more than was sent */
		thread_answer(thread, &packet, bytes, from);
}

/* JOIN, QUERY and a controller's fence show the job's cookie: their senders have no other yet. */
static bool take_visitor(struct thread *thread, const struct wire_control *header, uint32_t bytes,
                         const struct udp_address *from)
{
	if (thread->index != 0) {
		thread->counters.drops[DROP_LANE]++;
		return false;
	}
	if (!cookie_is_good(thread->aggregator, header->job, header->cookie)) {
		thread->counters.drops[DROP_COOKIE]++;
		unknown_comm_cookie(thread, header, bytes, from);
		return false;
	}
	if (header->type == WIRE_JOIN)
		join_take(thread->aggregator, header, bytes, from);
	else if (header->type == WIRE_TURN)
		occupancy_fence(thread, header, from);
	else
		answer_query(thread, header, bytes, from);
	return true;
}

/* A parent's packets go to the lane that they name, or to thread 0 while it asks the parent. */
static bool take_from_parent(struct thread *thread, const struct wire_control *header,
                             uint32_t bytes)
{
	struct agg_lane *lane;

	if (header->type == WIRE_WELCOME && thread->index == 0)
		return parent_take_welcome(thread->aggregator, header, bytes);
	if (header->type == WIRE_ABORT && thread->index == 0 &&
	    parent_take_abort(thread->aggregator, header))
		return true;
	lane = header->type == WIRE_WELCOME ? NULL : parent_lane_find(thread, header);
	if (lane)
		parent_lane_take(thread, lane, header);
	return lane != NULL;
}

/*
 * A parent that has let us join may ask whether we are here, before we know that
 * we have joined or have made lanes.
 */
static bool parent_looks(const struct thread *thread, const struct wire_control *header,
                         const struct udp_address *from)
{
	return header->child == WIRE_ALL &&
	       (thread->index != 0 || parent_is_known(thread->aggregator, header, from));
}

/*
 * Is the sender a child of this communicator? A datagram proves it by its
 * checksum, which covers the cookie that only children know. A connection has
 * proven it by a report.
 */
static bool is_members(const struct thread *thread, const struct agg_lane *lane,
                       const struct wire_header *header, uint32_t bytes,
                       const struct udp_address *from)
{
	const struct wire_unsent unsent = agg_lane_unsent(lane, lane->does->position(lane, header));

	if (thread->aggregator->carrier->reliable)
		return from->link && lane->known & child_bit(header->child) &&
		       lane->addresses[header->child].link == from->link;
	return wire_is_intact(header, bytes, &unsent);
}

static bool take_data(struct thread *thread, const struct wire_header *header, uint32_t bytes,
                      const struct udp_address *from)
{
	struct agg_lane *lane = header->comm < COMMS_MAX ? thread->lanes[header->comm] : NULL;

	if (!lane) {
		thread->counters.drops[DROP_UNKNOWN]++;
		return false;
	}
	if (!is_members(thread, lane, header, bytes, from)) {
		thread->counters.drops[thread->aggregator->carrier->reliable ? DROP_STRANGER
		                                                             : WIRE_FAULT_CHECK]++;
		return false;
	}
	lane->does->take_data(thread, lane, header, bytes - WIRE_HEADER);
	return true;
}

/* Packets that carry a cookie: all but DATA and RESULT. */
static bool take_control(struct thread *thread, const struct wire_control *header, uint32_t bytes,
                         const struct udp_address *from)
{
	struct agg_lane *lane;

	switch (header->type) {
	case WIRE_JOIN:
	case WIRE_QUERY:
		return take_visitor(thread, header, bytes, from);
	case WIRE_TURN:
		if (((const struct wire_turn *)wire_payload(header))->word == WIRE_TURN_FENCE)
			return take_visitor(thread, header, bytes, from);
		thread->counters.drops[DROP_UNEXPECTED]++;
		return false;
	case WIRE_REPORT:
		lane = find_lane(thread, header);
		if (lane)
			child_take_report(thread, lane, header, from);
		else
			unknown_comm_answer(thread, header, from);
		return lane != NULL;
	case WIRE_STATUS:
	case WIRE_WELCOME:
		if (take_from_parent(thread, header, bytes))
			return true;
		thread->counters.drops[DROP_UNEXPECTED]++;
		return false;
	case WIRE_ABORT:
		if (take_from_parent(thread, header, bytes))
			return true;
		lane = find_lane(thread, header);
		if (lane)
			agg_lane_take_abort(lane, header, from);
		return lane != NULL;
	case WIRE_BYE:
		if (take_from_parent(thread, header, bytes))
			return true;
		lane = find_lane(thread, header);
		if (lane && thread->index == 0)
			liveness_take_bye(thread->aggregator, lane, header, from);
		else if (!lane && header->child != WIRE_ALL)
			unknown_comm_echo(thread, header, from);
		else if (!lane && !parent_looks(thread, header, from))
			unknown_comm_answer(thread, header, from);
		return lane != NULL;
	default:
		thread->counters.drops[DROP_UNEXPECTED]++;
		return false;
	}
}

bool packet_take(struct thread *thread, const struct wire_header *header, uint32_t bytes,
                 enum wire_fault fault, const struct udp_address *from)
{
	struct wire_whole whole;

	thread->counters.packets++;
	thread->counters.bytes += bytes;
	if (fault != WIRE_SOUND) {
		thread->counters.drops[fault]++;
		return false;
	}
	if (header->type == WIRE_DATA)
		return take_data(thread, header, bytes, from);
	if (header->type == WIRE_RESULT)
		return parent_lane_take_result(thread, header, bytes, from);
	return take_control(thread, wire_make_whole(wire_control(header), bytes, &whole), bytes,
	                    from);
}
