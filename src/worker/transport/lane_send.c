/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets to send: reports and heartbeats that are due, and fragments of the stream. They are
 * built in lane->buffer, gathered to messages, and handed to the carrier as one batch.
 */
#include "worker/transport/lane_internal.h"

#include "base/clock.h"
#include "wire/brief.h"
#include "wire/frame.h"

#include <errno.h>

/* Time between two reports if nothing else makes one due: */
#define HEARTBEAT_MAX (NSEC_PER_SEC / 2) /* 0.5 s: the most that heartbeats are apart */
#define DRAIN_EVERY (NSEC_PER_SEC / 500) /* 2 ms while this rank waits to leave */
#define HOLD_EVERY (NSEC_PER_SEC / 4000) /* 0.25 ms while a round is held for other ranks */

/* bit/s of all lanes together, in LANE_RATE_UNIT; 0: not known for every lane. */
static uint32_t carried_by_all(const struct trib_comm *comm)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < comm->n_lanes; i++) {
		if (i >= comm->small.first && comm_has_slots(comm))
			continue; /* small vectors tell nothing of the link */
		uint64_t bps = atomic_load_explicit(&comm->carried[i], memory_order_relaxed);

		if (!bps)
			return 0;
		sum += bps;
	}
	return sum / LANE_RATE_UNIT > UINT32_MAX ? UINT32_MAX : (uint32_t)(sum / LANE_RATE_UNIT);
}

/* Mostly what the lane waits for is what the aggregator would ask for. */
static struct wire_call call_of(struct lane *lane)
{
	uint32_t asks = atomic_load_explicit(&lane->asks, memory_order_relaxed);
	struct wire_call call = { 0 };

	if (lane->stream.first)
		call = lane->stream.first->call;
	call.open = call.kind != WIRE_CALL_NONE;
	return !call.open || (asks && call.number != asks - 1) ? comm_call(lane->comm, asks) : call;
}

/* Fills the fields that the stream does not know. Gives the bytes to send. */
static uint32_t seal_report(struct lane *lane, void *packet)
{
	struct wire_control *header = packet;
	struct wire_report *report = (void *)(header + 1);
	const struct wire_welcome *welcome = &lane->trunk->welcome;
	uint32_t bytes;

	header->cookie = welcome->cookie;
	header->job = lane->comm->config.job;
	header->comm = welcome->comm;
	header->epoch = welcome->epoch;
	header->token = lane_token(lane);
	if (lane->group_probe.is_heard)
		header->flags |= WIRE_HEARS_MULTICAST;
	report->carried = carried_by_all(lane->comm);
	report->call = call_of(lane);
	report->away = atomic_load_explicit(&lane->comm->away, memory_order_relaxed);
	report->waited = atomic_load_explicit(&lane->comm->waited, memory_order_relaxed);
	bytes = wire_cut(packet);
	if (lane->stream.reliable)
		wire_seal_frame(packet, bytes);
	else
		wire_seal(packet, bytes);
	return bytes;
}

static void seal_data(struct lane *lane, void *packet, uint32_t bytes)
{
	struct wire_header *header = packet;

	header->comm = lane->trunk->welcome.comm;
	if (lane->stream.reliable) { /* the connection proves the sender */
		wire_seal_frame(packet, bytes);
	} else {
		const struct wire_unsent unsent = lane_unsent(lane, header);

		wire_seal_fragment(packet, bytes, &unsent);
	}
}

uint64_t lane_heartbeat_every(const struct lane *lane)
{
	uint64_t every = (uint64_t)lane->trunk->welcome.dead_after_ms * 1000000 / 10;

	if (lane->closed.since)
		return CLOSED_PROBE_EVERY;
	if (lane->finishing)
		return HOLD_EVERY;
	if (lane->kept && atomic_load_explicit(&lane->comm->draining, memory_order_relaxed))
		return DRAIN_EVERY;
	if (group_probe_waits(&lane->group_probe, lane->spoke_at))
		return GROUP_PROBE_EVERY;
	return every < HEARTBEAT_MAX ? every : HEARTBEAT_MAX;
}

/* A report or heartbeat that is due, sealed; 0: none. */
static uint32_t next_report(struct lane *lane, uint64_t now, uint8_t *packet)
{
	uint32_t bytes = stream_next_report(&lane->stream, now, packet);

	if (!bytes && now >= lane->spoke_at + lane_heartbeat_every(lane))
		bytes = stream_heartbeat(&lane->stream, now, packet);
	if (!bytes)
		return 0;
	lane->spoke_at = now;
	return seal_report(lane, packet);
}

/* The next fragment that may leave now, sealed; 0: none. */
static uint32_t next_data(struct lane *lane, uint64_t now, uint8_t *packet)
{
	bool free = pacer_free_at(&lane->pacer) <= now &&
	            !group_probe_holds(&lane->group_probe, now, lane->stream.sent);
	uint32_t bytes = free ? stream_next(&lane->stream, now, packet) : 0;

	if (!bytes && !lane->stream.reliable && flight_is_full(&lane->stream.flight))
		meter_pressed(&lane->meter);
	else if (!bytes)
		meter_hindered(&lane->meter);
	if (!bytes)
		return 0;
	seal_data(lane, packet, bytes);
	pacer_sent(&lane->pacer, now, bytes);
	return bytes;
}

/* Each report is a message of its own. Gives the bytes that are used of the buffer. */
static uint32_t fill_reports(struct lane *lane, uint64_t now, const struct lane_room *room,
                             unsigned *n)
{
	/* A report is about fragments that left before, and must not overtake them. */
	uint64_t time = pacer_time(&lane->pacer, now);
	uint32_t used = 0, bytes;

	while (*n < room->reports && (bytes = next_report(lane, now, lane->buffer + used))) {
		lane->messages[(*n)++] =
			(struct lane_message){ lane->buffer + used, bytes, bytes, time };
		used += bytes;
	}
	return used;
}

/* May a packet of this length leave in the message? A shorter packet may only end it. */
static bool fits(const struct lane_message *message, uint32_t bytes, uint32_t together,
                 const struct lane_room *room)
{
	if (room->mixes)
		return true;
	return bytes <= message->segment && message->bytes + bytes <= room->message_bytes &&
	       message->bytes + bytes <= together &&
	       message->bytes / message->segment < room->message_packets &&
	       message->bytes % message->segment == 0;
}

/* Fragments of one length that leave together are one message. Gives their bytes. */
static uint32_t fill_data(struct lane *lane, uint64_t now, const struct lane_room *room,
                          uint32_t used, unsigned *n)
{
	uint32_t together = pacer_message_bytes(&lane->pacer, room->joins), bytes, data = 0;
	struct lane_message *message = NULL;

	while (data < room->bytes && (bytes = next_data(lane, now, lane->buffer + used))) {
		if (message && !fits(message, bytes, together, room)) {
			pacer_message(&lane->pacer, now, message->time);
			message = NULL;
		}
		if (!message) {
			message = &lane->messages[(*n)++];
			*message = (struct lane_message){ lane->buffer + used, 0, bytes,
				                          pacer_time(&lane->pacer, now) };
		}
		message->bytes += bytes;
		used += bytes;
		data += bytes;
		if (*n == room->messages)
			break;
	}
	if (message)
		pacer_message(&lane->pacer, now, message->time);
	return data;
}

static int send_batch(struct lane *lane, uint64_t now, bool *sent)
{
	struct lane_room room;
	int error = lane->carrier->flush(lane, &room);
	unsigned n = 0;
	uint32_t used;

	if (!room.messages)
		return error;
	used = fill_reports(lane, now, &room, &n);
	fill_data(lane, now, &room, used, &n);
	if (!n)
		return error;
	*sent = true;
	return lane->carrier->send(lane, lane->messages, n);
}

bool lane_send(struct lane *lane, uint64_t now, bool *sent)
{
	int error;

	*sent = false;
	error = send_batch(lane, now, sent);
	if (error && error != -EAGAIN)
		lane_note_error(lane, error);
	if (error == -EAGAIN)
		meter_pressed(&lane->meter);
	return error == -EAGAIN;
}
