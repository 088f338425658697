/* SPDX-License-Identifier: Apache-2.0 */
/* Received packets: is a packet this lane's, and which function of the stream takes it? */
#include "worker/transport/lane_internal.h"

#include "wire/brief.h"
#include "wire/parse.h"

/* A connection proves the sender; a datagram has to pass the checksum. */
static bool is_our_result(const struct lane *lane, const struct wire_header *header, uint32_t bytes)
{
	const struct wire_unsent unsent = lane_unsent(lane, header);

	return header->type == WIRE_RESULT && header->comm == lane->trunk->welcome.comm &&
	       (header->child == lane->comm->config.rank || header->child == WIRE_ALL) &&
	       (lane->stream.reliable || wire_is_intact(header, bytes, &unsent));
}

bool lane_owns(const struct lane *lane, const struct wire_control *header)
{
	const struct trib_comm *comm = lane->comm;
	const struct wire_welcome *welcome = &lane->trunk->welcome;

	return header->cookie == welcome->cookie && header->job == comm->config.job &&
	       header->comm == welcome->comm && header->epoch == welcome->epoch &&
	       wire_lane(header) == lane->index &&
	       (header->child == comm->config.rank || header->child == WIRE_ALL);
}

static void take_status(struct lane *lane, const struct wire_control *header, uint64_t now)
{
	const struct wire_status *status = wire_payload(header);
	uint64_t rate = lane->pacer.rate;

	if (header->child == WIRE_ALL) { /* by multicast */
		stream_on_news(&lane->stream, header, now);
		return;
	}
	if (status->stamp)
		atomic_store_explicit(&lane->asks, status->asks, memory_order_relaxed);
	pacer_given(&lane->pacer, (uint64_t)status->rate * LANE_RATE_UNIT, status->serial, now);
	if (lane->pacer.rate && (!rate || lane->pacer.rate < rate))
		stream_rate_fell(&lane->stream, now);
	stream_on_status(&lane->stream, header, now);
	meter_confirmed(&lane->meter, now, lane->stream.flight.confirmed,
	                WIRE_HEADER + lane->comm->payload);
}

static void take_packet(struct lane *lane, const struct wire_header *header, uint32_t bytes,
                        bool by_group, uint64_t now)
{
	const struct wire_control *control = wire_control(header);
	struct wire_whole whole;

	if (control ? !lane_owns(lane, control) : !is_our_result(lane, header, bytes)) {
		lane->dropped++;
		return;
	}
	lane->heard_at = now;
	if (by_group ? group_probe_by_group(&lane->group_probe)
	             : !control && header->flags & WIRE_RESENT &&
	                       group_probe_alone(&lane->group_probe))
		lane->spoke_at = 0; /* tell the aggregator at once */
	if (!control) {
		if (!stream_on_result(&lane->stream, header, bytes - WIRE_HEADER, now))
			comm_fail(lane->comm, TRIB_ERR_NO_MEMORY, LANE_NO_MEMORY);
	} else if (control->type == WIRE_STATUS) {
		take_status(lane, wire_make_whole(control, bytes, &whole), now);
	} else if (control->type == WIRE_ABORT) {
		lane_on_abort(lane, wire_payload(control));
	} else if (control->type == WIRE_BYE && control->child == WIRE_ALL) {
		if (control->token)
			atomic_store_explicit(&lane->token, control->token, memory_order_relaxed);
		lane->spoke_at = 0; /* the aggregator asks whether this rank is there */
	}
}

bool lane_receive(struct lane *lane, uint64_t now)
{
	const struct lane_batch *batch = &lane->batch;
	bool came = false;
	int error = 0;

	do {
		int n = lane->carrier->receive(lane);

		for (unsigned i = 0; i < batch->n; i++)
			take_packet(lane, batch->packets[i].header, batch->packets[i].bytes,
			            batch->packets[i].by_group, now);
		if (n < 0)
			error = n;
		came |= n > 0;
	} while (batch->more);
	if (error)
		lane_note_error(lane, error);
	return came && !error;
}
