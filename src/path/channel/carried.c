/* SPDX-License-Identifier: Apache-2.0 */
#include "path/channel/carried.h"

#include "path/channel/channel_state.h"

/* ---- messages that leave ---- */

void carried_set_up(struct channel *channel, unsigned path, bool up, uint64_t now)
{
	struct channel_path *p = &channel->paths[path];

	if (p->carries && !up && channel_needs_carrier(channel)) {
		channel->counters.deaths++;
		p->left++;
		for (unsigned i = 0; i < MONITOR_SILENCES; i++)
			monitor_silent(&channel->monitor, path, now);
	}
	p->carries = up;
}

/* Is there a message for the carrier? What it has lost goes as packets, if any message may. */
static bool has_next(const struct channel *channel)
{
	if (!channel_needs_carrier(channel))
		return channel_carries_next(channel);
	return channel->lost || channel_has_fresh(channel);
}

/* The message that chunks_take would give. */
static const struct outgoing *next_message(const struct channel *channel)
{
	uint32_t i = channel->sent;

	if (!channel->lost || !channel_needs_carrier(channel))
		i = channel->fresh;
	else
		while (!channel->out[i % CHANNEL_MESSAGES].n_lost)
			i++;
	return &channel->out[i % CHANNEL_MESSAGES];
}

/* Returns the number of the message. */
static uint32_t take_next(struct channel *channel)
{
	struct outgoing *out = channel_outgoing(channel, channel->fresh);

	if (channel_needs_carrier(channel))
		return chunks_take(channel).message;
	out->next = out->units;
	return channel->fresh++;
}

static int choose_path(struct channel *channel, uint32_t bytes, uint64_t now)
{
	uint32_t room[PATHS_MAX] = { 0 };

	for (unsigned i = 0; i < channel->n_paths; i++) {
		const struct channel_path *p = &channel->paths[i];

		if (p->carries && p->flying < channel->config.carried)
			room[i] = bytes;
	}
	return balancer_choose(&channel->balancer, &channel->monitor, room, bytes, bytes, now);
}

bool carried_next(struct channel *channel, uint64_t now, struct carried_message *message)
{
	const struct outgoing *out;
	uint32_t bytes;
	int path;

	if (channel->state != CHANNEL_OPEN || !has_next(channel))
		return false;
	out = next_message(channel);
	bytes = out->bytes ? out->bytes : 1;
	path = choose_path(channel, bytes, now);
	if (path < 0)
		return false;
	*message = (struct carried_message){ .path = (unsigned)path,
		                             .number = take_next(channel),
		                             .data = out->data,
		                             .bytes = out->bytes };
	channel->paths[path].flying++;
	channel->counters.packets++;
	channel->counters.bytes += out->bytes;
	monitor_sent(&channel->monitor, (unsigned)path, now, bytes);
	return true;
}

static bool is_open(const struct channel *channel, uint32_t number)
{
	return number - channel->sent < channel->queued - channel->sent;
}

/* A message that the peer has told about is out of the list. Its place may be taken. */
void carried_arrived(struct channel *channel, unsigned path, uint32_t number, uint32_t bytes,
                     uint64_t sent_at, uint64_t now)
{
	channel->paths[path].flying--;
	monitor_acked(&channel->monitor, path, now, bytes, now - sent_at);
	if (is_open(channel, number))
		channel->lost -= outgoing_finish(channel_outgoing(channel, number));
	while (channel->sent != channel->fresh) {
		const struct outgoing *out = channel_outgoing(channel, channel->sent);

		if (out->n_acked < out->units)
			return;
		channel_finish(channel, channel->sent + 1);
	}
}

void carried_lost(struct channel *channel, unsigned path, uint32_t number, uint64_t now)
{
	struct outgoing *out = channel_outgoing(channel, number);

	channel->paths[path].flying--;
	if (!is_open(channel, number) || out->n_acked == out->units)
		return;
	monitor_lost(&channel->monitor, path, now, out->bytes);
	for (uint32_t unit = 0; unit < out->units; unit++)
		channel->lost += outgoing_lost(out, unit);
}

bool carried_is_wanted(const struct channel *channel)
{
	return channel->wants_carrier;
}

uint64_t carried_heard_at(const struct channel *channel)
{
	return channel->heard_at;
}

void carried_ask(struct channel *channel, unsigned path)
{
	channel->paths[path].owes_probe = true;
}

struct carried_counts carried_tell_counts(struct channel *channel, unsigned path)
{
	struct arrivals *arrivals = &channel->paths[path].arrivals;

	arrivals->waiting -= arrivals->carried;
	arrivals->carried = 0;
	if (!arrivals->waiting)
		arrivals->urgent = false;
	return (struct carried_counts){ channel->delivered, channel->granted };
}

bool carried_take_counts(struct channel *channel, unsigned path, struct carried_counts counts,
                         uint64_t now)
{
	if (!channel_take_counts(channel, counts.delivered, counts.credit))
		return false;
	channel_heard(channel, path, now);
	return true;
}

/* ---- messages that come ---- */

bool carried_expects(const struct channel *channel, uint32_t number)
{
	return (int32_t)(number - channel->granted) < 0 &&
	       (int32_t)(number - channel->delivered) >= 0 &&
	       channel->in[number % CHANNEL_MESSAGES].state != INCOMING_WHOLE;
}

bool carried_came(struct channel *channel, unsigned path, uint32_t number, void *memory,
                  uint32_t bytes, uint64_t now)
{
	struct incoming *in = &channel->in[number % CHANNEL_MESSAGES];
	struct arrivals *arrivals = &channel->paths[path].arrivals;

	channel->counters.received++;
	if ((int32_t)(number - channel->granted) >= 0 || channel_has_ended(channel)) {
		channel->counters.dropped++;
		return false;
	}
	if ((int32_t)(number - channel->delivered) < 0 || in->state != INCOMING_NONE) {
		channel->counters.duplicates++;
		return false;
	}
	channel_heard(channel, path, now);
	channel->paths[path].received += bytes;
	if (!arrivals->waiting++) /* the peer is told soon */
		arrivals->since = now;
	arrivals->carried++;
	in->state = INCOMING_WHOLE;
	in->memory = memory;
	in->bytes = bytes;
	channel_deliver(channel);
	return true;
}

void carried_tick(struct channel *channel, uint64_t now)
{
	bool any = channel->fresh == channel->queued && !channel->lost;

	for (unsigned i = 0; i < channel->n_paths; i++)
		any |= channel->paths[i].carries;
	if (any)
		channel->carried_at = now;
	else if (now >= channel->carried_at + channel->config.timeout)
		channel_fail(channel, TRIB_ERR_PEER, "there is no RDMA connection to %s for %.1f s",
		             channel->config.name, (double)(now - channel->carried_at) * 1e-9);
}
