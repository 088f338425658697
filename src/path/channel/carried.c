/* SPDX-License-Identifier: Apache-2.0 */
#include "path/channel/carried.h"

#include "path/channel/channel_state.h"

/* ---- messages that leave ---- */

void carried_set_up(struct channel *channel, unsigned path, bool up, uint64_t now)
{
	struct channel_path *p = &channel->paths[path];

	if (p->carries && !up) {
		channel->counters.deaths++;
		p->left++;
		for (unsigned i = 0; i < MONITOR_SILENCES; i++)
			monitor_silent(&channel->monitor, path, now);
	}
	p->carries = up;
}

/* The message that chunks_take would give. */
static const struct outgoing *next_message(const struct channel *channel)
{
	uint32_t i = channel->sent;

	if (!channel->lost)
		i = channel->fresh;
	while (channel->lost && !channel->out[i % CHANNEL_MESSAGES].n_lost)
		i++;
	return &channel->out[i % CHANNEL_MESSAGES];
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

	if (channel->state != CHANNEL_OPEN || (!channel->lost && !chunks_are_fresh(channel)))
		return false;
	out = next_message(channel);
	bytes = out->bytes ? out->bytes : 1;
	path = choose_path(channel, bytes, now);
	if (path < 0)
		return false;
	*message = (struct carried_message){ .path = (unsigned)path,
		                             .number = chunks_take(channel).message,
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

void carried_arrived(struct channel *channel, unsigned path, uint32_t number, uint64_t sent_at,
                     uint64_t now)
{
	struct outgoing *out = channel_outgoing(channel, number);

	channel->paths[path].flying--;
	/* A message that the peer has told about is out of the list. Its place may be taken. */
	monitor_acked(&channel->monitor, path, now, is_open(channel, number) ? out->bytes : 0,
	              now - sent_at);
	if (is_open(channel, number))
		channel->lost -= outgoing_acked(out, 0);
	while (channel->sent != channel->fresh && channel_outgoing(channel, channel->sent)->n_acked)
		channel_finish(channel, channel->sent + 1);
}

void carried_lost(struct channel *channel, unsigned path, uint32_t number, uint64_t now)
{
	struct outgoing *out = channel_outgoing(channel, number);

	channel->paths[path].flying--;
	if (!is_open(channel, number))
		return;
	monitor_lost(&channel->monitor, path, now, out->bytes);
	channel->lost += outgoing_lost(out, 0);
}

/* ---- messages that come ---- */

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
