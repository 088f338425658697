/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/lane/child_packets.h"

#include "path/address_proof.h"
#include "plane/core/failure.h"
#include "plane/lane/child_calls.h"
#include "plane/lane/child_rates.h"
#include "plane/lane/engine_packets.h"
#include "plane/lane/link_share.h"
#include "plane/lane/occupancy.h"
#include "plane/lane/parent_lane.h"

#include <stdio.h>
#include <string.h>

#define YOUNG_US 200u /* us: a result that the kernel part sent may wait in a queue this long */

static const char *op_name(uint8_t op)
{
	if (op <= WIRE_ADD64)
		return "a sum";
	if (op <= WIRE_MIN_U64)
		return "a minimum";
	if (op == WIRE_MAX_U8)
		return "a float sum, or a maximum";
	if (op <= WIRE_MAX_U64)
		return "a maximum";
	return op == WIRE_MAX_U16 ? "a float sum" : "a copy";
}

void child_dispute(struct agg_lane *lane, const struct wire_header *header, uint32_t bytes,
                   const struct engine_view *there, uint64_t now)
{
	unsigned other = there->arrived ? (unsigned)__builtin_ctzll(there->arrived) : header->child;
	char one[200], two[200];

	comm_describe_child(lane->comm, other, two, sizeof(two));
	if (!there->arrived && there->from != WIRE_ALL)
		snprintf(two, sizeof(two), "rank %u, elsewhere in the tree,", there->from);
	child_calls_dispute(
		lane, header->child, now,
		"ranks called different collectives: %s sent %u bytes of %s (op %u) where %s "
		"sent %u bytes of %s (op %u), at fragment %llu of lane %u",
		comm_describe_child(lane->comm, header->child, one, sizeof(one)), bytes,
		op_name(header->op), header->op, two, there->bytes, op_name(there->op), there->op,
		(unsigned long long)there->position, lane->index);
}

/* The dense cell that a packet does not fit. */
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

void child_take_data(struct thread *thread, struct agg_lane *lane, const struct wire_header *header,
                     uint32_t bytes)
{
	uint64_t position = dense_position(lane->dense, header);
	uint32_t index = dense_index(lane->dense, position);
	struct dense_cell *cell = dense_cell(&lane->pool, index);
	bool counts = thread->aggregator->options.capacity && !lane->dense->has_parent;
	bool fresh = cell->position != position;
	enum dense_verdict verdict;

	if (counts && atomic_load_explicit(&lane->comm->failed, memory_order_acquire))
		return; /* another job may have its turn by now */
	agg_lane_lock(lane, cell);
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
	agg_lane_unlock(lane, cell);
	if (counts)
		count_open(thread->aggregator, lane, fresh, verdict);
	thread->counters.verdicts[verdict]++;
	lane->heard_at[header->child & 63] = thread->now;
	child_rates_note(thread, lane);
	switch (verdict) {
	case DENSE_COMPLETE:
	case DENSE_SUMMED:
		if (verdict == DENSE_COMPLETE)
			agg_lane_queue_result(lane, position, WIRE_ALL);
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

static void note_hearing(struct thread *thread, struct agg_lane *lane,
                         const struct wire_control *header)
{
	if (header->flags & WIRE_HEARS_MULTICAST) {
		lane->hears |= dense_bit(header->child);
		return;
	}
	lane->hears &= ~dense_bit(header->child);
	if (lane->comm->grouped & dense_bit(header->child))
		agg_lane_probe_group(thread, lane);
}

/* If a child waits for a child that has left, the fragment will never be complete. */
static void check_left(struct agg_lane *lane, unsigned child)
{
	uint64_t waiting = lane->engine.lane ? lane->comm->engine->waiting(&lane->engine)
	                                     : dense_waiting(lane->dense, &lane->pool,
	                                                     lane->dense->ack[child]);
	uint64_t left = waiting & lane->dense->left;
	char text[200];

	if (!left)
		return;
	child = (unsigned)__builtin_ctzll(left);
	comm_set_failed(
		lane->comm, TRIB_ERR_PEER, child,
		lane->comm->children[child].join.height
			? "the ranks of %s have called trib_finalize while others still wait "
			  "for them in a collective"
			: "%s has called trib_finalize while others still wait for it in a "
			  "collective",
		comm_describe_child(lane->comm, child, text, sizeof(text)));
}

/*
 * May the child's packets go to this address from now on? If it is new, it is asked to prove that
 * it hears us, by a report that shows the token.
 */
static bool is_reachable(struct thread *thread, struct agg_lane *lane,
                         const struct wire_control *header, const struct udp_address *from)
{
	const struct secret *secret = &thread->aggregator->address_secret;
	struct wire_control ask = wire_answer(lane->comm, lane, WIRE_BYE, WIRE_ALL);

	if ((lane->known & dense_bit(header->child) &&
	     udp_same(&lane->addresses[header->child], from)) ||
	    address_is_proven(secret, from, header->token))
		return true;
	ask.token = address_token(secret, from);
	thread_send(thread, &ask, sizeof(ask), from);
	thread->counters.drops[DROP_UNPROVEN]++;
	return false;
}

/* A child's address is the one of its newest report. A replayed report does not change it. */
static bool note_reporter(struct thread *thread, struct agg_lane *lane,
                          const struct wire_control *header, const struct udp_address *from)
{
	const struct wire_report *report = wire_payload(header);
	uint64_t bit = dense_bit(header->child);

	if (header->child >= WIRE_CHILDREN_MAX || !(lane->dense->members & bit)) {
		thread->counters.drops[DROP_STRANGER]++;
		return false;
	}
	if (report->serial < lane->serials[header->child]) {
		thread->counters.drops[DROP_REPLAYED]++;
		return false;
	}
	if (!is_reachable(thread, lane, header, from))
		return false;
	if (!(lane->known & bit) || report->serial > lane->serials[header->child]) {
		lane->serials[header->child] = report->serial;
		lane->addresses[header->child] = *from;
		lane->known |= bit;
	}
	if (lane->kernel)
		lane->kernel->ops->child_seen(lane, header->child, from);
	lane->heard_at[header->child] = thread->now;
	thread->counters.reports++;
	return true;
}

/*
 * Only the child knows what its link loses. A fragment that is missing here may
 * not have left the child yet, and a result that it asks for again may only be
 * late.
 */
static void note_losses(struct agg_lane *lane, unsigned child, const struct wire_report *report)
{
	uint32_t judged = report->judged - lane->told_judged[child];
	uint32_t lost = report->lost - lane->told_lost[child];
	uint16_t again = (uint16_t)(report->again - lane->told_again[child]);

	lane->told_again[child] = report->again;
	lane->repeated[child] += again <= INT16_MAX ? again : 0;
	lane->told_judged[child] = report->judged;
	lane->told_lost[child] = report->lost;
	if (lost > INT32_MAX || judged > INT32_MAX)
		return; /* a counter went backwards: not believed */
	lane->judged[child] += judged;
	lane->missed[child] += lost;
}

/* Notes all that the report says about the child itself. */
static void note_report(struct thread *thread, struct agg_lane *lane,
                        const struct wire_control *header)
{
	const struct wire_report *report = wire_payload(header);
	unsigned child = header->child;

	note_hearing(thread, lane, header);
	child_calls_take(lane, child, &report->call, thread->now);
	if (lane->kernel)
		lane->kernel->ops->group_probe_seen(lane);
	if (lane->engine.lane) {
		lane->ways[child] = (uint8_t)report->want;
	} else {
		child_rates_take_report(thread, lane, header);
		note_losses(lane, child, report);
	}
	lane->awaits[child] = report->waiting;
	lane->carried[child] = report->carried;
	lane->waited[child] = report->waited;
	lane->away[child] = report->away;
	dense_ack(lane->dense, child, header->ack);
	if (lane->dense->has_parent)
		uplink_settle(&lane->up, lane->dense, &lane->pool);
}

/* Queues the results that the child asks for. */
static void queue_repeats(struct agg_lane *lane, unsigned child, const struct wire_report *report,
                          const uint64_t *repeat)
{
	for (uint32_t i = 0; i < WIRE_GROUP / 64; i++) {
		if (!report->young) /* the child is sure that they are lost */
			lane->recent_losses[child] += (uint32_t)__builtin_popcountll(repeat[i]);
		for (uint64_t word = repeat[i]; word; word &= word - 1)
			agg_lane_queue_result(
				lane, report->base + 64 * i + (uint64_t)__builtin_ctzll(word),
				child);
	}
}

/* Fills what dense_answer() leaves out of the answer to a report. */
static void fill_status(struct thread *thread, struct agg_lane *lane, unsigned child,
                        struct status_packet *packet)
{
	uint64_t ack = lane->dense->ack[child];

	packet->header.pos = wire_pos(lane->index, ack);
	packet->header.ack = (uint32_t)lane->dense->low;
	packet->status.waiting = agg_lane_waiting(lane, ack);
	if (lane->dense->has_parent &&
	    (!packet->status.waiting || !uplink_cell(lane->dense, &lane->pool, ack)))
		packet->status.waiting |= lane->up.waiting;
	packet->status.asks = child_calls_asked(lane);
	/* No child may end a call by what is here: it has to wait until the dispute is over. */
	if (lane->disputed_at)
		packet->status.bits = 0;
	link_share_fill(thread, lane, child, &packet->status);
}

void child_take_report(struct thread *thread, struct agg_lane *lane,
                       const struct wire_control *header, const struct udp_address *from)
{
	const struct wire_report *report = wire_payload(header);
	unsigned child = header->child;
	uint64_t repeat[WIRE_GROUP / 64];
	struct status_packet packet = { .header = wire_answer(lane->comm, lane, WIRE_STATUS,
		                                              header->child) };

	if (!note_reporter(thread, lane, header, from))
		return;
	note_report(thread, lane, header);
	dense_answer(lane->dense, &lane->pool, child, report, (uint32_t)(thread->now / 1000),
	             lane->kernel ? YOUNG_US : 0, &packet.status, repeat);
	if (lane->kernel)
		lane->kernel->ops->report_answered(lane, child, report, repeat);
	/* A report that ends where the child is done asks about nothing that it waits for. */
	if (lane->engine.lane || lane->dense->ack[child] < report->base + report->bits)
		check_left(lane, child);
	if (atomic_load_explicit(&lane->comm->failed, memory_order_acquire)) {
		agg_lane_send_abort(thread, lane, child);
		return;
	}
	queue_repeats(lane, child, report, repeat);
	agg_lane_announce_low(thread, lane);
	/* A result that the answer calls complete must leave before the answer. */
	if (!thread->aggregator->carrier->send_results(thread, lane))
		memset(packet.status.complete, 0, sizeof(packet.status.complete));
	fill_status(thread, lane, child, &packet);
	if (report->stamp)
		thread_send(thread, &packet, wire_cut(&packet), &lane->addresses[child]);
	if (lane->dense->has_parent)
		parent_lane_follow(thread, lane, report);
}
