/* SPDX-License-Identifier: Apache-2.0 */
/* The packets of a channel that carry no message. */
#include "path/channel/channel_state.h"

#include "wire/checksum.h"

#include <string.h>

/*
 * The unit of the next HELLO or WELCOME. A path may carry less than its first link. So if nobody
 * answers HELLOs of full length, some are shorter, and the answer to one of them settles the unit.
 */
static uint32_t hello_unit(const struct channel *channel, struct channel_path *p)
{
	if (channel->unit || channel_needs_carrier(channel))
		return unit_of(channel);
	p->lengths.full = channel->config.unit;
	return length_probe_next(&p->lengths);
}

/* HELLO and WELCOME are as long as the longest DATA: a path that opens carries full packets. */
static uint32_t hello_bytes(uint32_t unit)
{
	uint32_t least = sizeof(struct path_control) + sizeof(struct path_hello);

	return CHANNEL_HEADER + unit > least ? CHANNEL_HEADER + unit : least;
}

static void *put_head(const struct channel *channel, unsigned path, enum path_kind kind,
                      void *buffer, uint32_t bytes)
{
	struct path_control *head = buffer;

	memset(buffer, 0, bytes);
	*head = (struct path_control){
		.magic = PATH_MAGIC,
		.kind = (uint8_t)((uint8_t)kind | channel_side(channel)),
		.path = (uint8_t)path,
		.delivered = channel->delivered,
		.credit = channel->granted,
		.id = channel->id,
	};
	return head + 1;
}

static uint32_t put_hello(struct channel *channel, unsigned path, enum path_kind kind, void *buffer)
{
	uint32_t unit = hello_unit(channel, &channel->paths[path]), bytes = hello_bytes(unit);
	struct path_hello *hello = put_head(channel, path, kind, buffer, bytes);

	hello->key = channel->config.key;
	hello->from = channel->config.self;
	hello->to = channel->config.peer;
	hello->unit = unit;
	hello->longest = channel->config.longest;
	if (kind == PATH_HELLO) {
		hello->at = channel->paths[path].at;
	} else {
		hello->addresses = channel->n_own_addresses;
		memcpy(hello->own, channel->own_addresses, sizeof(hello->own));
	}
	return bytes;
}

static uint32_t put_ack(struct channel *channel, unsigned path, uint64_t now, void *buffer)
{
	struct arrivals *arrivals = &channel->paths[path].arrivals;
	struct path_control *head = buffer;
	struct path_ack *ack =
		put_head(channel, path, PATH_ACK, buffer, sizeof(*head) + sizeof(*ack));
	uint64_t held = now - arrivals->came_at;

	if (arrivals->any)
		arrivals_tell(arrivals, ack->came);
	arrivals_told(arrivals);
	head->sequence = (uint32_t)arrivals->newest;
	head->held = held < UINT32_MAX ? (uint32_t)held : UINT32_MAX;
	return sizeof(*head) + sizeof(*ack);
}

static uint32_t put_probe(struct channel *channel, unsigned path, uint64_t now, void *buffer)
{
	struct sent_packets *sent = channel->paths[path].sent;
	struct sent_unit none = { 0, SENT_NO_UNIT };
	struct path_control *head = buffer;

	put_head(channel, path, PATH_PROBE, buffer, sizeof(*head));
	if (!sent->in_flight)
		channel->paths[path].quiet_since = now;
	head->sequence = sent_add(sent, now, none);
	return sizeof(*head);
}

static uint32_t put_carrier(struct channel *channel, unsigned path, uint64_t now, void *buffer)
{
	struct channel_path *p = &channel->paths[path];
	struct path_carrier *body = put_head(channel, path, PATH_CARRIER, buffer,
	                                     sizeof(struct path_control) + sizeof(*body));

	*body = p->own;
	body->heard = p->heard.serial;
	body->asks = p->heard.heard != p->own.serial;
	p->owes_carrier = false;
	p->carrier_at = now;
	return sizeof(struct path_control) + sizeof(*body);
}

uint64_t hello_at(const struct channel_path *path)
{
	if (!path->calls)
		return 0;
	return path->called_at + CHANNEL_HELLO_NS * (path->calls < CHANNEL_HELLOS ? 1 : 10);
}

static bool hello_is_due(const struct channel *channel, const struct channel_path *p, uint64_t now)
{
	return p->phase == PHASE_CALLING && !channel_has_ended(channel) && now >= hello_at(p);
}

static bool bye_is_due(const struct channel *channel, const struct channel_path *p, uint64_t now)
{
	return p->owes_bye || (channel->state == CHANNEL_CLOSING && p->phase == PHASE_OPEN &&
	                       (!p->bye_at || now >= p->bye_at + CHANNEL_BYE_NS));
}

static bool ack_is_due(const struct channel *channel, unsigned path, uint64_t now)
{
	const struct channel_path *p = &channel->paths[path];

	return now >= arrivals_due(&p->arrivals, channel->config.patient) ||
	       (channel->config.patient && arrivals_ride(&p->arrivals, now) &&
	        chunks_are_due(channel, path));
}

bool control_is_due(const struct channel *channel, unsigned path, uint64_t now)
{
	const struct channel_path *p = &channel->paths[path];

	return hello_is_due(channel, p, now) || bye_is_due(channel, p, now) || p->owes_welcome ||
	       (p->owes_probe && sent_has_room(p->sent)) || carrier_is_due(channel, p, now) ||
	       ack_is_due(channel, path, now);
}

static uint32_t put_due(struct channel *channel, unsigned path, uint64_t now, void *buffer)
{
	struct channel_path *p = &channel->paths[path];

	if (hello_is_due(channel, p, now)) {
		p->called_at = now;
		p->calls++;
		return put_hello(channel, path, PATH_HELLO, buffer);
	}
	if (bye_is_due(channel, p, now)) {
		p->bye_at = now;
		p->owes_bye = false;
		put_head(channel, path, PATH_BYE, buffer, sizeof(struct path_control));
		return sizeof(struct path_control);
	}
	if (p->owes_welcome) {
		p->owes_welcome = false;
		return put_hello(channel, path, PATH_WELCOME, buffer);
	}
	if (p->owes_probe) {
		p->owes_probe = false;
		return put_probe(channel, path, now, buffer);
	}
	if (carrier_is_due(channel, p, now))
		return put_carrier(channel, path, now, buffer);
	return put_ack(channel, path, now, buffer);
}

uint32_t control_output(struct channel *channel, unsigned path, uint64_t now, void *buffer)
{
	struct path_control *head = buffer;
	uint32_t bytes;

	if (channel->paths[path].phase == PHASE_NONE || !control_is_due(channel, path, now))
		return 0;
	bytes = put_due(channel, path, now, buffer);
	head->check = wire_check(buffer, bytes);
	return bytes;
}
