/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/lane/child_packets.h"

#include "path/address_proof.h"
#include "plane/core/failure.h"
#include "plane/lane/child_calls.h"
#include "plane/lane/lane_kind.h"

#include <stdio.h>

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

/* If these children are waited for, and one has left, the fragment will never be complete. */
static void check_left(struct agg_lane *lane, uint64_t owing)
{
	uint64_t left = owing & lane->left;
	unsigned child;
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

	if ((lane->known & child_bit(header->child) &&
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
	uint64_t bit = child_bit(header->child);

	if (header->child >= WIRE_CHILDREN_MAX || !(lane->comm->present & bit)) {
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

/* Notes all that the report says about the child itself. */
static void note_report(struct thread *thread, struct agg_lane *lane,
                        const struct wire_control *header)
{
	const struct wire_report *report = wire_payload(header);
	unsigned child = header->child;

	child_calls_take(lane, child, &report->call, thread->now);
	lane->awaits[child] = report->waiting;
	lane->carried[child] = report->carried;
	lane->waited[child] = report->waited;
	lane->away[child] = report->away;
	lane->does->note_report(thread, lane, header);
}

void child_take_report(struct thread *thread, struct agg_lane *lane,
                       const struct wire_control *header, const struct udp_address *from)
{
	const struct wire_report *report = wire_payload(header);
	unsigned child = header->child;
	struct status_packet packet = { .header = wire_answer(lane->comm, lane, WIRE_STATUS,
		                                              header->child) };

	if (!note_reporter(thread, lane, header, from))
		return;
	note_report(thread, lane, header);
	check_left(lane, lane->does->owed(lane, child, report));
	if (atomic_load_explicit(&lane->comm->failed, memory_order_acquire)) {
		agg_lane_send_abort(thread, lane, child);
		return;
	}
	packet.status.stamp = report->stamp;
	packet.status.asks = child_calls_asked(lane);
	lane->does->answer(thread, lane, child, report, &packet);
	if (report->stamp)
		thread_send(thread, &packet, wire_cut(&packet), &lane->addresses[child]);
	lane->does->follow(thread, lane, report);
}
