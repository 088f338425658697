/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/stream/parent_lane.h"

#include "base/clock.h"
#include "base/log.h"
#include "plane/lane/child_calls.h"
#include "plane/lane/link_share.h"
#include "plane/stream/stream_window.h"
#include "wire/checksum.h"

#include <stdlib.h>
#include <unistd.h>

#define HEARTBEAT_MAX (NSEC_PER_SEC / 2)
#define RTT_START_US 500u

static uint32_t now_us(const struct thread *thread)
{
	return (uint32_t)(thread->now / 1000);
}

static void open_group(struct aggregator *aggregator, struct agg_lane *lane)
{
	const struct parent *parent = &lane->comm->parent;
	struct udp_address local;
	char interface[64];

	/* The kernel part takes unicast only: a multicast result may be for others as well. */
	if (!parent->group.length || !aggregator->options.multicast || lane->kernel)
		return;
	if (udp_route(&parent->address, &local, interface, sizeof(interface)) ||
	    udp_open_group(((const struct sockaddr_in *)&parent->group.storage)->sin_addr,
	                   (uint16_t)(udp_port(&parent->group) + lane->index),
	                   ((struct sockaddr_in *)&local.storage)->sin_addr,
	                   &aggregator->options.socket, &lane->group_fd))
		log_info("no multicast from the parent: %s", trib_last_error());
	else
		group_probe_start(&lane->group_probe, clock_now());
}

bool parent_lane_open(struct aggregator *aggregator, struct agg_lane *lane)
{
	const struct parent *parent = &lane->comm->parent;

	lane->up.ring = calloc(lane->comm->cells, sizeof(*lane->up.ring));
	lane->up.rtt_us = RTT_START_US;
	lane->up.reliable = aggregator->carrier->reliable;
	flight_init(&lane->flight);
	lane->dense->has_parent = 1;
	lane->parent = parent->address;
	udp_set_port(&lane->parent, (uint16_t)(udp_port(&parent->address) + lane->index));
	if (lane->index)
		lane->parent.link = 0; /* its thread opens its own connection */
	open_group(aggregator, lane);
	if (lane->kernel)
		lane->kernel->ops->parent_open(lane);
	return lane->up.ring != NULL;
}

void parent_lane_close(struct agg_lane *lane)
{
	if (lane->group_fd >= 0)
		close(lane->group_fd);
	free(lane->up.ring);
}

static uint8_t report_flags(const struct agg_lane *lane)
{
	return (uint8_t)((lane->group_probe.is_heard ? WIRE_HEARS_MULTICAST : 0) |
	                 (lane->rates.works ? 0 : WIRE_AT_REST));
}

struct wire_control parent_lane_header(const struct agg_lane *lane, uint8_t type)
{
	const struct parent *parent = &lane->comm->parent;

	return (struct wire_control){ .magic = WIRE_MAGIC,
		                      .type = type,
		                      .flags = type == WIRE_REPORT ? report_flags(lane) : 0,
		                      .cookie = parent->cookie,
		                      .job = lane->comm->job,
		                      .comm = parent->comm,
		                      .epoch = parent->epoch,
		                      .child = parent->child,
		                      .token = lane->parent_token ? lane->parent_token
		                                                  : parent->token,
		                      .pos = wire_pos(lane->index, 0),
		                      .ack = (uint32_t)lane->dense->settled };
}

struct wire_unsent parent_lane_unsent(const struct agg_lane *lane, uint64_t position)
{
	const struct parent *parent = &lane->comm->parent;

	return (struct wire_unsent){ .proof = wire_proof(parent->cookie, lane->comm->job,
		                                         parent->epoch),
		                     .pos = wire_pos(lane->index, position) };
}

/* The report describes this moment: what is in the sockets' queues left before it. */
static void report(struct thread *thread, struct agg_lane *lane, uint64_t base, uint32_t bits,
                   const uint64_t *asked, const uint64_t *lost)
{
	struct {
		struct wire_control header;
		struct wire_report report;
	} packet;

	if (lane->kernel)
		lane->kernel->ops->count_sums(lane);
	uplink_report(&lane->up, lane->dense, &lane->pool, base, bits, asked, lost, now_us(thread),
	              &packet.report);
	packet.report.waiting =
		agg_lane_late(lane, dense_waiting(lane->dense, &lane->pool, lane->dense->settled));
	packet.report.want = link_share_want(thread, lane);
	packet.report.call = child_calls_above(lane);
	packet.report.judged = (uint32_t)lane->up.judged;
	packet.report.lost = (uint32_t)lane->up.lost;
	packet.report.again = (uint16_t)lane->up.again;
	packet.report.serial = thread->now;
	packet.header = parent_lane_header(lane, WIRE_REPORT);
	packet.header.pos = wire_pos(lane->index, lane->dense->settled & WIRE_POSITION_MASK);
	flight_mark(&lane->flight, packet.report.stamp);
	thread_send(thread, &packet, wire_cut(&packet), &lane->parent);
}

void parent_lane_report_now(struct thread *thread, struct agg_lane *lane)
{
	report(thread, lane, lane->dense->settled, 0, NULL, NULL);
}

void parent_lane_report_soon(struct agg_lane *lane)
{
	lane->up.told_at -= 1000000;
}

void parent_lane_report_sums(struct thread *thread, struct agg_lane *lane)
{
	struct uplink *up = &lane->up;
	uint64_t base = up->reported;

	uplink_settle(&lane->up, lane->dense, &lane->pool);
	if (base < lane->dense->settled)
		base = lane->dense->settled;
	if (base >= lane->dense->settled + WIRE_GROUP / 2)
		report(thread, lane, lane->dense->settled, WIRE_GROUP, NULL, NULL);
	else
		base = lane->dense->settled;
	for (; base < up->sent; base += WIRE_GROUP)
		report(thread, lane, base, WIRE_GROUP, NULL, NULL);
	up->reported = up->sent;
}

void parent_lane_follow(struct thread *thread, struct agg_lane *lane,
                        const struct wire_report *from_child)
{
	/* Sums that the child asks about leave before our question to the parent. */
	thread->aggregator->carrier->send_sums(thread, lane);
	if (uplink_is_due(&lane->up, lane->dense, &lane->pool, from_child, now_us(thread)))
		report(thread, lane, from_child->base, from_child->bits, from_child->missing, NULL);
	else if (uplink_ack_is_due(&lane->up, lane->dense, &lane->pool, now_us(thread)))
		report(thread, lane, lane->dense->settled, WIRE_GROUP, NULL, NULL);
	else if (group_probe_waits(&lane->group_probe, thread->now) &&
	         now_us(thread) - lane->up.told_at >= GROUP_PROBE_EVERY / 1000)
		parent_lane_report_now(thread, lane);
}

/* ---- from the parent ---- */

static void take_result(struct thread *thread, struct agg_lane *lane,
                        const struct wire_header *header, uint32_t bytes)
{
	uint64_t position = dense_position(lane->dense, header);
	uint32_t index = dense_index(lane->dense, position);
	struct dense_cell *cell = dense_cell(&lane->pool, index);
	uint8_t *sum = dense_packet(&lane->pool, index) + WIRE_HEADER;
	enum dense_verdict verdict;
	bool by_kernel;

	stream_lane_lock(lane, cell);
	by_kernel = cell->position == position && cell->queued == UPLINK_RAISED;
	verdict = uplink_take(lane->dense, cell, sum, header, header + 1, bytes);
	if (verdict == DENSE_AHEAD) {
		uplink_settle(&lane->up, lane->dense, &lane->pool);
		verdict = uplink_take(lane->dense, cell, sum, header, header + 1, bytes);
	}
	stream_lane_unlock(lane, cell);
	if (verdict == DENSE_COMPLETE) {
		thread->counters.lowered++;
		lane->kernel_heard += by_kernel;
		if (dense_expected(lane->dense, cell->to))
			stream_lane_queue(lane, cell->position, WIRE_ALL);
	} else if (verdict == DENSE_MISMATCH) {
		thread->counters.drops[DROP_RESULT]++;
	}
}

static void send_again(struct agg_lane *lane, uint64_t position)
{
	struct dense_cell *cell = dense_cell(&lane->pool, dense_index(lane->dense, position));

	stream_lane_lock(lane, cell);
	uplink_push(&lane->up, lane->dense, cell);
	stream_lane_unlock(lane, cell);
}

static void take_status(struct thread *thread, struct agg_lane *lane,
                        const struct wire_control *header)
{
	const struct wire_status *status = wire_payload(header);
	struct uplink_news news;

	if (header->child != WIRE_ALL && status->stamp)
		lane->parent_asks = status->asks;
	if (link_share_from_parent(thread, lane, status))
		uplink_judge_anew(&lane->up, now_us(thread));
	uplink_status(&lane->up, lane->dense, &lane->pool, status, now_us(thread), &news);
	if (status->stamp)
		flight_confirm(&lane->flight, status->stamp, news.n_again);
	for (uint32_t i = 0; news.n_again && i < WIRE_GROUP / 64; i++)
		for (uint64_t word = news.again[i]; word; word &= word - 1) {
			uint64_t position =
				(status->base + 64 * i + (uint64_t)__builtin_ctzll(word)) &
				WIRE_POSITION_MASK;

			send_again(lane, position);
		}
	if (news.n_lost)
		report(thread, lane, status->base, status->bits, NULL, news.lost);
	if (news.n_done)
		stream_lane_tell(thread, lane, status->base, status->bits);
	else
		stream_lane_announce_low(thread, lane);
	/* What waits here goes first, then the kernel part may send more. */
	if (lane->kernel && lane->kernel->ops->parent_answered(lane, news.n_astray))
		thread->aggregator->carrier->send_sums(thread, lane);
}

struct agg_lane *parent_lane_find(const struct thread *thread, const struct wire_control *header)
{
	struct agg_lane *lane = header->comm < COMMS_MAX ? thread->by_parent[header->comm] : NULL;

	for (; lane; lane = lane->next_up) {
		const struct parent *parent = &lane->comm->parent;

		if (parent->cookie == header->cookie && lane->comm->job == header->job &&
		    parent->epoch == header->epoch && lane->index == wire_lane(header) &&
		    (header->child == WIRE_ALL || header->child == parent->child))
			return lane;
	}
	return NULL;
}

/* With connections, the packet must come by the one that we opened to the parent. */
static bool is_parents(const struct thread *thread, const struct agg_lane *lane,
                       const struct wire_header *header, const struct wire_check *ring,
                       uint32_t bytes, const struct udp_address *from)
{
	const struct wire_unsent unsent =
		parent_lane_unsent(lane, dense_position(lane->dense, header));

	if (thread->aggregator->carrier->reliable)
		return from->link && from->link == lane->parent.link;
	return header->check ==
	       wire_check_end(*ring, (const wire_word *)header, (const wire_word *)&unsent, bytes);
}

bool parent_lane_take_result(struct thread *thread, const struct wire_header *header,
                             uint32_t bytes, const struct udp_address *from)
{
	struct agg_lane *lane = header->comm < COMMS_MAX ? thread->by_parent[header->comm] : NULL;
	struct wire_check ring = { 0 };

	if (!lane) {
		thread->counters.drops[DROP_UNEXPECTED]++;
		return false;
	}
	/* Several parents may have assigned the same id. */
	if (!thread->aggregator->carrier->reliable)
		ring = wire_check_payload(header, bytes);
	while (lane && !is_parents(thread, lane, header, &ring, bytes, from))
		lane = lane->next_up;
	if (!lane) {
		thread->counters.drops[thread->aggregator->carrier->reliable ? DROP_STRANGER
		                                                             : WIRE_FAULT_CHECK]++;
		return false;
	}
	if (header->child != WIRE_ALL && header->child != lane->comm->parent.child) {
		thread->counters.drops[DROP_UNEXPECTED]++;
		return false;
	}
	lane->parent_heard_at = thread->now;
	if (header->flags & WIRE_RESENT && group_probe_alone(&lane->group_probe))
		parent_lane_report_soon(lane);
	take_result(thread, lane, header, bytes - WIRE_HEADER);
	return true;
}

void parent_lane_take(struct thread *thread, struct agg_lane *lane,
                      const struct wire_control *header)
{
	lane->parent_heard_at = thread->now;
	switch (header->type) {
	case WIRE_STATUS:
		take_status(thread, lane, header);
		break;
	case WIRE_ABORT:
		agg_lane_take_abort(lane, header, &lane->parent);
		break;
	case WIRE_BYE: /* the echo of our BYE, or a question whether we are still here */
		if (header->token)
			lane->parent_token = header->token;
		if (header->child == WIRE_ALL)
			parent_lane_report_now(thread, lane);
		else if (lane->index == 0)
			lane->comm->parent.echoed = true;
		break;
	}
}

/* ---- life of the lane in its thread ---- */

void parent_lane_begin(struct thread *thread, struct agg_lane *lane)
{
	struct agg_lane **at = &thread->by_parent[lane->comm->parent.comm];

	lane->next_up = *at;
	*at = lane;
	lane->parent_heard_at = thread->now;
	thread->aggregator->carrier->reach(thread, &lane->parent);
	/* Tells the parent this lane's address. */
	report(thread, lane, 0, 0, NULL, NULL);
}

void parent_lane_end(struct thread *thread, struct agg_lane *lane)
{
	struct agg_lane **at = &thread->by_parent[lane->comm->parent.comm];

	while (*at && *at != lane)
		at = &(*at)->next_up;
	if (*at)
		*at = lane->next_up;
}

void parent_lane_tick(struct thread *thread, struct agg_lane *lane)
{
	uint64_t every = (uint64_t)lane->comm->dead_after_ms * 100; /* a tenth of it, in us */

	if (every > HEARTBEAT_MAX / 1000)
		every = HEARTBEAT_MAX / 1000;
	thread->aggregator->carrier->reach(thread, &lane->parent);
	/* Children that have left report no more, but their sums may still be in flight. */
	if (!uplink_settle(&lane->up, lane->dense, &lane->pool))
		atomic_fetch_or(&lane->comm->idle_lanes, 1u << lane->index);
	if (uplink_ack_is_due(&lane->up, lane->dense, &lane->pool, now_us(thread)) ||
	    now_us(thread) - lane->up.told_at >= every)
		report(thread, lane, lane->dense->settled, WIRE_GROUP, NULL, NULL);
}

void parent_lane_send_abort(struct thread *thread, struct agg_lane *lane)
{
	struct {
		struct wire_control header;
		struct wire_abort abort;
	} packet = { .header = parent_lane_header(lane, WIRE_ABORT), .abort = lane->comm->abort };

	thread_send(thread, &packet, sizeof(packet), &lane->parent);
}
