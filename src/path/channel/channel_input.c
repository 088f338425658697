/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that come. All are hostile until their checksum, with the channel's id in it, is right.
 */
#include "path/channel/channel_state.h"

#include "wire/checksum.h"

#include <stddef.h>
#include <string.h>

/* The kind of a packet of ours; 0: foreign. */
static unsigned packet_kind(const void *packet, size_t bytes)
{
	const struct path_data *head = packet;

	if (bytes < sizeof(*head) || bytes % 8 || bytes > CHANNEL_HEADER + CHANNEL_UNIT_MAX ||
	    head->magic != PATH_MAGIC)
		return 0;
	return head->kind;
}

static bool control_is_sound(const struct path_control *head, size_t bytes)
{
	return bytes >= sizeof(*head) && head->check == wire_check(head, bytes);
}

static bool hello_is_sound(const struct path_hello *hello, size_t bytes)
{
	return bytes >= sizeof(struct path_control) + sizeof(*hello) &&
	       hello->unit >= CHANNEL_UNIT_MIN && hello->unit <= CHANNEL_UNIT_MAX &&
	       hello->unit % 8 == 0 && hello->addresses <= PATH_ADDRESSES;
}

bool channel_hello(const void *packet, size_t bytes, const struct path_control **header,
                   const struct path_hello **hello, unsigned *version)
{
	const struct path_control *head = packet;

	*version = 0;
	if (bytes >= sizeof(*head) && (head->magic & 0xff) == PATH_MAGIC_NAME)
		*version = head->magic >> 8;
	if (packet_kind(packet, bytes) != PATH_HELLO || !control_is_sound(head, bytes) ||
	    !hello_is_sound((const struct path_hello *)(head + 1), bytes) ||
	    head->path >= PATHS_MAX || !head->id)
		return false;
	*header = head;
	*hello = (const struct path_hello *)(head + 1);
	return true;
}

bool channel_take_counts(struct channel *channel, uint32_t delivered, uint32_t credit)
{
	if (credit - delivered > CHANNEL_MESSAGES)
		return false;
	/* Only messages that were sent completely can have arrived. */
	if (delivered - channel->sent <= channel->fresh - channel->sent)
		channel_finish(channel, delivered);
	if ((int32_t)(credit - channel->peer_credit) > 0)
		channel->peer_credit = credit;
	if (delivered - channel->peer_delivered <= channel->fresh - channel->peer_delivered)
		channel->peer_delivered = delivered;
	return true;
}

/*
 * Did the peer pause? A path that owed an answer is heard late, and no other was heard meanwhile.
 * A path that owed none may be silent for any time.
 */
static bool has_paused(const struct channel *channel, unsigned path, uint64_t now)
{
	const struct channel_path *p = &channel->paths[path];
	uint64_t since = p->quiet_since > channel->heard_at ? p->quiet_since : channel->heard_at;

	return p->sent && p->sent->in_flight && now > since + CHANNEL_PAUSE_NS &&
	       now > since + path_window_patience(&p->window);
}

void channel_heard(struct channel *channel, unsigned path, uint64_t now)
{
	bool paused = has_paused(channel, path, now);

	/* After a pause of the peer all its paths get new time to answer. */
	for (unsigned i = 0; paused && i < channel->n_paths; i++)
		if (channel->paths[i].quiet_since < now)
			channel->paths[i].quiet_since = now;
	channel->heard_at = now;
	channel->heard_on = path;
}

/* ---- opening ---- */

static bool hello_is_ours(const struct channel *channel, const struct path_hello *hello)
{
	return hello->key == channel->config.key && hello->from == channel->config.peer &&
	       hello->to == channel->config.self;
}

/* Returns false if the packet is dropped. */
static bool take_hello(struct channel *channel, unsigned path, uint64_t now,
                       const struct path_control *head, const struct path_hello *hello)
{
	struct channel_path *p = &channel->paths[path];

	if (channel->config.connects || !head->id || !hello_is_ours(channel, hello) ||
	    (channel->id && channel->id != head->id))
		return false;
	channel->id = head->id;
	if (p->phase == PHASE_NONE && !path_start(channel, path, PHASE_OPEN, now))
		return false;
	if (!channel->unit)
		channel_agree(channel,
		              hello->unit < channel->config.unit ? hello->unit
		                                                 : channel->config.unit,
		              hello->longest);
	p->owes_welcome = true;
	return true;
}

static bool take_welcome(struct channel *channel, unsigned path, uint64_t now,
                         const struct path_hello *hello)
{
	struct channel_path *p = &channel->paths[path];

	if (!channel->config.connects || !hello_is_ours(channel, hello) ||
	    hello->unit > unit_of(channel) || (channel->unit && hello->unit != channel->unit))
		return false;
	if (p->phase != PHASE_CALLING)
		return true;
	p->phase = PHASE_OPEN;
	channel->n_peer_addresses = hello->addresses;
	memcpy(channel->peer_addresses, hello->own, sizeof(hello->own));
	if (!channel->unit)
		channel_agree(channel, hello->unit, hello->longest);
	/* The time since the last HELLO is a round trip, or shorter than one. */
	monitor_acked(&channel->monitor, path, now, 0, now - p->called_at);
	return true;
}

/* ---- acknowledgements ---- */

static void units_acked(struct channel *channel, const struct sent_ack *ack)
{
	for (unsigned i = 0; i < ack->n; i++) {
		struct sent_unit unit = ack->units[i];

		if (unit.unit != SENT_NO_UNIT &&
		    unit.message - channel->sent < channel->queued - channel->sent)
			channel->lost -=
				outgoing_acked(channel_outgoing(channel, unit.message), unit.unit);
	}
	while (channel->sent != channel->fresh) {
		const struct outgoing *out = channel_outgoing(channel, channel->sent);

		if (out->n_acked < out->units)
			return;
		channel_finish(channel, channel->sent + 1);
	}
}

static uint32_t acked_data(const struct sent_ack *ack)
{
	uint32_t data = 0;

	for (unsigned i = 0; i < ack->n; i++)
		data += ack->units[i].unit != SENT_NO_UNIT;
	/* Packets that counted as lost are not counted again. */
	return data < ack->in_time ? data : ack->in_time;
}

static bool take_ack(struct channel *channel, unsigned path, uint64_t now,
                     const struct path_control *head, const struct path_ack *came)
{
	struct channel_path *p = &channel->paths[path];
	struct sent_ack ack;
	uint64_t rtt = 0;

	if (!(came->came[0] & 1))
		return true; /* only counts */
	if (!sent_acked(p->sent, head->sequence, came->came, &ack))
		return false;
	if (ack.sent_at && ack.sent_at + head->held < now)
		rtt = now - ack.sent_at - head->held;
	if (ack.n) {
		p->quiet_since = now;
		p->asked = p->silences = 0;
		monitor_acked(&channel->monitor, path, now, acked_data(&ack) * channel->unit, rtt);
	}
	units_acked(channel, &ack);
	path_find_lost(channel, path, now);
	path_window_late(&p->window, p->read_late + head->held);
	path_window_ack(&p->window, ack.in_time, 0, rtt, p->sent->newest - 1, p->sent->next, now);
	return true;
}

/* ---- messages ---- */

void channel_deliver(struct channel *channel)
{
	struct incoming *in = &channel->in[channel->delivered % CHANNEL_MESSAGES];

	while (in->state == INCOMING_WHOLE) {
		const struct channel_events *events = &channel->config.events;

		in->state = INCOMING_NONE;
		channel->delivered++;
		if (events->deliver)
			events->deliver(events->user, channel->delivered - 1, in->memory,
			                in->bytes);
		in = &channel->in[channel->delivered % CHANNEL_MESSAGES];
	}
}

/* The first packet of a message. False: the packet is dropped. */
static bool incoming_begin(struct channel *channel, struct incoming *in,
                           const struct path_data *head)
{
	const struct channel_events *events = &channel->config.events;
	void *memory;

	if (head->bytes > channel->config.longest) {
		channel_fail(channel, TRIB_ERR_PEER,
		             "%s sends message %u of %u bytes; up to %u are expected",
		             channel->config.name, head->message, head->bytes,
		             channel->config.longest);
		return false;
	}
	memory = events->place(events->user, head->message, head->bytes);
	if (!memory) {
		channel_fail(channel, TRIB_ERR_PEER,
		             "%s sends message %u of %u bytes, which is not expected",
		             channel->config.name, head->message, head->bytes);
		return false;
	}
	if (incoming_start(in, memory, head->bytes, channel->unit))
		return true;
	channel_fail(channel, TRIB_ERR_NO_MEMORY, "no memory for a message of %s",
	             channel->config.name);
	return false;
}

static bool take_unit(struct channel *channel, const struct path_data *head, size_t bytes)
{
	struct incoming *in = &channel->in[head->message % CHANNEL_MESSAGES];
	uint32_t length;

	if ((int32_t)(head->message - channel->delivered) < 0 || in->state == INCOMING_WHOLE) {
		channel->counters.duplicates++;
		return true;
	}
	if ((int32_t)(head->message - channel->granted) >= 0 ||
	    head->unit >= message_units(head->bytes, channel->unit))
		return false;
	length = message_unit_bytes(head->bytes, channel->unit, head->unit);
	if (bytes != CHANNEL_HEADER + ((length + 7) & ~7u))
		return false;
	if (in->state == INCOMING_NONE && !incoming_begin(channel, in, head))
		return false;
	if (in->bytes != head->bytes)
		return false;
	if (incoming_take(in, head->unit)) {
		if (length)
			memcpy(in->memory + (size_t)head->unit * channel->unit, head + 1, length);
		channel_deliver(channel);
	} else {
		channel->counters.duplicates++;
	}
	return true;
}

static bool take_data(struct channel *channel, unsigned path, uint64_t now,
                      const struct path_data *head, size_t bytes)
{
	struct channel_path *p = &channel->paths[path];
	struct wire_unsent unsent = { channel->id, channel_side(channel) ^ PATH_ANSWERS };
	bool lacks;

	if (p->phase != PHASE_OPEN || !channel->unit || channel_needs_carrier(channel) ||
	    head->check != wire_check_fragment(head, bytes, &unsent))
		return false;
	channel_heard(channel, path, now);
	channel->counters.received++;
	if (!take_unit(channel, head, bytes))
		return false;
	p->received += bytes - CHANNEL_HEADER;
	/* A patient receiver tells about a loss at once. */
	lacks = channel->config.patient && arrivals_skips(&p->arrivals, head->sequence);
	arrivals_take(&p->arrivals, head->sequence, now);
	if (lacks || head->kind & PATH_WANTS_ACK)
		p->arrivals.urgent = true;
	return true;
}

/* ---- closing ---- */

static void take_bye(struct channel *channel, unsigned path)
{
	if (channel->state == CHANNEL_CLOSING) {
		channel->state = CHANNEL_CLOSED;
		return;
	}
	channel->paths[path].owes_bye = true;
	if (channel_has_ended(channel))
		return;
	for (uint32_t i = 0; i < CHANNEL_MESSAGES; i++) {
		if (channel->in[i].state == INCOMING_NONE)
			continue;
		channel_fail(channel, TRIB_ERR_PEER, "%s closed the channel amid message %u",
		             channel->config.name, channel->delivered);
	}
	if (channel->state != CHANNEL_FAILED)
		channel->state = CHANNEL_CLOSED;
}

/* ---- all kinds ---- */

static bool take_control(struct channel *channel, unsigned path, uint64_t now,
                         const struct path_control *head, size_t bytes)
{
	const unsigned kind = head->kind & ~(unsigned)PATH_ANSWERS;
	const struct path_hello *hello = (const struct path_hello *)(head + 1);
	const bool greets = kind == PATH_HELLO || kind == PATH_WELCOME;

	if (!control_is_sound(head, bytes) || (greets && !hello_is_sound(hello, bytes)))
		return false;
	if (kind == PATH_HELLO) {
		if (channel_has_ended(channel) || !take_hello(channel, path, now, head, hello))
			return false;
	} else if (head->id != channel->id || channel->paths[path].phase == PHASE_NONE) {
		return false;
	}
	if (kind == PATH_WELCOME && !take_welcome(channel, path, now, hello))
		return false;
	if (channel->paths[path].phase != PHASE_OPEN ||
	    !channel_take_counts(channel, head->delivered, head->credit))
		return false;
	channel_heard(channel, path, now);
	if (kind == PATH_CARRIER)
		return carrier_take(channel, path, (const struct path_carrier *)(head + 1),
		                    bytes - sizeof(*head));
	if (kind == PATH_PROBE) {
		arrivals_take(&channel->paths[path].arrivals, head->sequence, now);
		channel->paths[path].arrivals.urgent = true;
	} else if (kind == PATH_BYE) {
		take_bye(channel, path);
	}
	return kind != PATH_ACK ||
	       (bytes == sizeof(*head) + sizeof(struct path_ack) &&
	        take_ack(channel, path, now, head, (const struct path_ack *)(head + 1)));
}

/*
 * While the channel opens, the answer may come from another version (channel_listener.c). It has
 * nothing but magic and kind. A packet whose version a link has damaged has more.
 */
static void check_version(struct channel *channel, const struct path_control *head, size_t bytes)
{
	static const struct path_control nothing;

	if (channel->state != CHANNEL_OPENING || !channel->config.connects ||
	    bytes != sizeof(*head) || (head->magic & 0xff) != PATH_MAGIC_NAME ||
	    head->magic == PATH_MAGIC || head->kind != (PATH_WELCOME | PATH_ANSWERS) ||
	    memcmp(&head->path, &nothing.path, sizeof(*head) - offsetof(struct path_control, path)))
		return;
	channel_fail(channel, TRIB_ERR_REFUSED,
	             "%s speaks version %c of the path protocol, this process version %c",
	             channel->config.name, head->magic >> 8 & 0x7f, PATH_MAGIC >> 8);
}

void channel_receive(struct channel *channel, unsigned path, uint64_t now, const void *packet,
                     size_t bytes)
{
	const struct path_data *head = packet;
	const unsigned kind = packet_kind(packet, bytes);
	bool taken = false;

	check_version(channel, packet, bytes);
	if (path < PATHS_MAX && kind && head->path == path &&
	    (kind & PATH_ANSWERS) == (channel_side(channel) ^ PATH_ANSWERS)) {
		if ((kind & 0x3f) != PATH_DATA)
			taken = take_control(channel, path, now, packet, bytes);
		else if (!channel_has_ended(channel))
			taken = take_data(channel, path, now, head, bytes);
	}
	channel->counters.dropped += !taken;
}
