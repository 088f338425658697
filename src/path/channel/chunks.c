/* SPDX-License-Identifier: Apache-2.0 */
/* From messages to packets: the next chunk, its path, its packets. */
#include "path/channel/channel_state.h"

#include "wire/checksum.h"

#include <string.h>

static struct chunk take_lost(struct channel *channel)
{
	struct chunk chunk = { 0 };

	for (uint32_t i = channel->sent; i != channel->queued; i++) {
		struct outgoing *out = channel_outgoing(channel, i);

		if (!out->n_lost)
			continue;
		chunk = outgoing_take_lost(out, channel->chunk_units);
		chunk.message = i;
		break;
	}
	channel->lost -= chunk.n;
	channel->counters.repeated += chunk.n;
	return chunk;
}

/* Is there a message that may be sent as packets, and was not yet? */
static bool chunks_are_fresh(const struct channel *channel)
{
	return channel_has_fresh(channel) && !channel_carries_next(channel);
}

static struct chunk take_fresh(struct channel *channel)
{
	struct outgoing *out = channel_outgoing(channel, channel->fresh);
	struct chunk chunk = { .message = channel->fresh, .first = out->next };
	uint32_t left = out->units - out->next;

	chunk.n = left < channel->chunk_units ? left : channel->chunk_units;
	out->next += chunk.n;
	if (out->next == out->units)
		channel->fresh++;
	return chunk;
}

struct chunk chunks_take(struct channel *channel)
{
	return channel->lost ? take_lost(channel) : take_fresh(channel);
}

/* The length of the chunk that would be taken next, at least 1, and of its message. */
static uint32_t next_bytes(const struct channel *channel, uint32_t *message)
{
	const struct outgoing *out = &channel->out[channel->fresh % CHANNEL_MESSAGES];
	uint32_t chunk = channel->chunk_units * channel->unit;

	if (!channel->lost && chunks_are_fresh(channel)) {
		uint64_t left = out->bytes - (uint64_t)out->next * channel->unit;

		*message = out->bytes;
		if (!left)
			return 1;
		return left < chunk ? (uint32_t)left : chunk;
	}
	*message = UINT32_MAX;
	for (uint32_t i = channel->sent; i != channel->queued; i++) {
		out = &channel->out[i % CHANNEL_MESSAGES];
		if (out->n_lost) {
			*message = out->bytes;
			break;
		}
	}
	return channel->lost < channel->chunk_units ? (uint32_t)channel->lost * channel->unit
	                                            : chunk;
}

/* A path takes a chunk when half of its window is free, or the whole chunk fits. */
static uint32_t path_room(const struct channel *channel, unsigned path, uint32_t bytes)
{
	const struct channel_path *p = &channel->paths[path];
	uint32_t free_packets;

	if (p->phase != PHASE_OPEN || p->blocked || p->pending.n || !sent_has_room(p->sent))
		return 0;
	free_packets = path_window_room(&p->window, p->sent->in_flight);
	if (free_packets * channel->unit >= bytes)
		return free_packets * channel->unit;
	return free_packets >= (uint32_t)(p->window.packets / 2) ? bytes : 0;
}

/* False: the balancer would find no path. It takes unknown ones only if no other has answered. */
static bool find_rooms(const struct channel *channel, uint32_t bytes, uint32_t room[PATHS_MAX])
{
	bool known = false, any = false, any_unknown = false;

	for (unsigned i = 0; i < channel->n_paths; i++) {
		enum path_state state = channel->monitor.paths[i].state;

		room[i] = path_room(channel, i, bytes);
		known |= state == PATH_GOOD || state == PATH_CONGESTED;
		any |= room[i] && (state == PATH_GOOD || state == PATH_CONGESTED);
		any_unknown |= room[i] && state == PATH_UNKNOWN;
	}
	return known ? any : any_unknown;
}

/* Windows hold back what could be sent. */
static void note_full(struct channel *channel)
{
	for (unsigned i = 0; i < channel->n_paths; i++)
		channel->paths[i].window.full = true;
}

bool chunks_wait_for_path(const struct channel *channel)
{
	uint32_t room[PATHS_MAX], message;

	return channel->state == CHANNEL_OPEN && !channel_needs_carrier(channel) &&
	       (channel->lost || chunks_are_fresh(channel)) &&
	       find_rooms(channel, next_bytes(channel, &message), room);
}

void chunks_assign(struct channel *channel, uint64_t now)
{
	uint32_t room[PATHS_MAX] = { 0 };

	while (channel->lost || chunks_are_fresh(channel)) {
		uint32_t message, bytes = next_bytes(channel, &message);
		int path;

		if (!find_rooms(channel, bytes, room)) {
			note_full(channel);
			return;
		}
		path = balancer_choose(&channel->balancer, &channel->monitor, room, bytes, message,
		                       now);
		if (path < 0)
			return;
		channel->paths[path].pending = chunks_take(channel);
	}
}

/* Data may stay in the message if it is words: others are padded. */
static bool put_body(struct channel_bodies *bodies, const uint8_t *data, uint32_t bytes)
{
	if (!bodies || !bytes || bytes % 8 || (uintptr_t)data % 8)
		return false;
	if (!bodies->packets++)
		bodies->data = data;
	return true;
}

static uint32_t put_unit(struct channel *channel, unsigned path, uint64_t now, uint8_t *packet,
                         struct sent_unit what, struct channel_bodies *bodies)
{
	const struct outgoing *out = channel_outgoing(channel, what.message);
	const uint8_t *data = out->data + (size_t)what.unit * channel->unit;
	struct path_data *head = (struct path_data *)packet;
	uint32_t bytes = message_unit_bytes(out->bytes, channel->unit, what.unit);
	uint32_t padded = (bytes + 7) & ~7u;

	*head = (struct path_data){
		.magic = PATH_MAGIC,
		.kind = (uint8_t)(PATH_DATA | channel_side(channel)),
		.path = (uint8_t)path,
		.sequence = sent_add(channel->paths[path].sent, now, what),
		.message = what.message,
		.unit = what.unit,
		.bytes = out->bytes,
	};
	if (!put_body(bodies, data, bytes)) {
		if (bytes)
			memcpy(packet + CHANNEL_HEADER, data, bytes);
		memset(packet + CHANNEL_HEADER + bytes, 0, padded - bytes);
	}
	channel->counters.packets++;
	channel->counters.bytes += bytes;
	return CHANNEL_HEADER + padded;
}

/* An acknowledgement is wanted at once if packets wait for it, or will soon. */
static bool wants_ack(const struct channel *channel, const struct channel_path *p)
{
	return !channel->config.patient || p->pending.n ||
	       4 * path_window_room(&p->window, p->sent->in_flight) < (uint32_t)p->window.packets;
}

static void seal(const struct channel *channel, bool wants, uint8_t *packets, uint32_t bytes,
                 const struct channel_bodies *bodies)
{
	const uint32_t segment = CHANNEL_HEADER + channel->unit;
	struct wire_unsent unsent = { channel->id, channel_side(channel) };
	unsigned split = bodies ? bodies->packets : 0, k = 0;

	for (uint32_t at = 0; at < bytes; at += segment, k++) {
		uint32_t length = bytes - at < segment ? bytes - at : segment;
		struct path_data *head = (struct path_data *)(packets + at);

		if (wants && at + length == bytes)
			head->kind |= PATH_WANTS_ACK;
		head->check =
			k < split ? wire_check_split(head, bodies->data + (size_t)k * channel->unit,
		                                     length, &unsent)
				  : wire_check_fragment(head, length, &unsent);
	}
}

/* A part of a chunk is sent if a quarter of the window is free: single packets cost too much. */
bool chunks_are_due(const struct channel *channel, unsigned path)
{
	const struct channel_path *p = &channel->paths[path];
	uint32_t least = (uint32_t)(p->window.packets / 4);

	if (p->pending.n < least)
		least = p->pending.n;
	return p->pending.n && sent_has_room(p->sent) &&
	       path_window_room(&p->window, p->sent->in_flight) >= least;
}

uint32_t chunks_output(struct channel *channel, unsigned path, uint64_t now, uint8_t *buffer,
                       uint32_t room, uint32_t *segment, struct channel_bodies *bodies)
{
	struct channel_path *p = &channel->paths[path];
	const uint32_t full = CHANNEL_HEADER + channel->unit;
	uint32_t bytes = 0, before = p->sent->in_flight, last = full, most;

	*segment = full;
	/* The message may have arrived while the chunk waited. */
	if (p->pending.n && p->pending.message - channel->sent >= channel->queued - channel->sent)
		p->pending.n = 0;
	if (!chunks_are_due(channel, path)) {
		p->window.full |= p->pending.n != 0;
		return 0;
	}
	most = path_window_room(&p->window, before);
	if (most > CHANNEL_BURST)
		most = CHANNEL_BURST;
	while (p->pending.n && sent_has_room(p->sent) && bytes + full <= room && last == full &&
	       p->sent->in_flight - before < most) {
		struct sent_unit what = { p->pending.message, p->pending.first };
		bool acked = bitmap_get(channel_outgoing(channel, what.message)->acked, what.unit);

		if (acked && bytes)
			break; /* what follows does not lie side by side with what is there */
		p->pending.first++;
		p->pending.n--;
		if (acked)
			continue;
		last = put_unit(channel, path, now, buffer + bytes, what, bodies);
		bytes += last;
	}
	if (!bytes)
		return 0;
	if (!before)
		p->quiet_since = now;
	monitor_sent(&channel->monitor, path, now, (p->sent->in_flight - before) * channel->unit);
	seal(channel, wants_ack(channel, p), buffer, bytes, bodies);
	return bytes;
}
