/* SPDX-License-Identifier: Apache-2.0 */
#include "path/channel/channel.h"

#include "path/channel/channel_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct channel *channel_new(const struct channel_config *config, uint64_t now)
{
	struct channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->config = *config;
	channel->id = config->connects ? config->id : 0;
	channel->heard_at = channel->beat_at = channel->stalled_at = channel->carried_at = now;
	channel->granted = config->credit < CHANNEL_MESSAGES ? config->credit : CHANNEL_MESSAGES;
	monitor_init(&channel->monitor, 0, now);
	channel->monitor.kind = config->monitor;
	balancer_init(&channel->balancer, config->balancer);
	return channel;
}

void channel_free(struct channel *channel)
{
	if (!channel)
		return;
	for (unsigned i = 0; i < PATHS_MAX; i++)
		free(channel->paths[i].sent);
	for (unsigned i = 0; i < CHANNEL_MESSAGES; i++) {
		outgoing_free(&channel->out[i]);
		if (channel->in[i].state != INCOMING_NONE && channel->config.events.unplace)
			channel->config.events.unplace(channel->config.events.user,
			                               channel->in[i].memory);
		incoming_free(&channel->in[i]);
	}
	free(channel);
}

bool channel_open_path(struct channel *channel, unsigned path, const struct path_address *at,
                       uint64_t now)
{
	if (path >= PATHS_MAX || channel->paths[path].phase != PHASE_NONE ||
	    channel_has_ended(channel))
		return false;
	channel->paths[path].at = *at;
	return path_start(channel, path, PHASE_CALLING, now);
}

void channel_set_addresses(struct channel *channel, const struct path_address *own, unsigned n)
{
	channel->n_own_addresses = n < PATH_ADDRESSES ? n : PATH_ADDRESSES;
	memcpy(channel->own_addresses, own, channel->n_own_addresses * sizeof(*own));
}

unsigned channel_peer_addresses(const struct channel *channel, const struct path_address **own)
{
	*own = channel->peer_addresses;
	return channel->n_peer_addresses;
}

bool channel_is_called_by(const struct channel *channel, uint64_t id)
{
	return !channel_has_ended(channel) && (!channel->id || channel->id == id);
}

trib_status channel_send(struct channel *channel, const void *data, uint32_t bytes)
{
	struct outgoing *out = channel_outgoing(channel, channel->queued);

	if (channel->state == CHANNEL_FAILED)
		return channel_status(channel);
	if (channel->state > CHANNEL_OPEN)
		return status_fail(TRIB_ERR_PEER, "the channel to %s is closed",
		                   channel->config.name);
	if (!channel_room(channel))
		return status_fail(TRIB_ERR_ARGUMENT, "%u messages to %s are in flight",
		                   CHANNEL_MESSAGES, channel->config.name);
	if (channel->unit && bytes > channel->peer_longest)
		return status_fail(TRIB_ERR_ARGUMENT, "%s takes messages of up to %u bytes, not %u",
		                   channel->config.name, channel->peer_longest, bytes);
	out->data = data;
	out->bytes = bytes;
	if (channel->unit && !outgoing_start(out, data, bytes, cut_of(channel)))
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a message to %s",
		                   channel->config.name);
	channel->queued++;
	channel->wants_carrier |= bytes >= channel->config.carried_from;
	return TRIB_OK;
}

uint32_t channel_room(const struct channel *channel)
{
	return CHANNEL_MESSAGES - (channel->queued - channel->sent);
}

uint32_t channel_sent(const struct channel *channel)
{
	return channel->sent;
}

uint32_t channel_delivered(const struct channel *channel)
{
	return channel->delivered;
}

void channel_grant(struct channel *channel, uint32_t more)
{
	uint32_t most = CHANNEL_MESSAGES - (channel->granted - channel->delivered);

	more = more < most ? more : most;
	channel->granted += more;
	if (more && channel->state == CHANNEL_OPEN)
		channel->paths[channel->heard_on].arrivals.urgent = true;
}

void channel_set_blocked(struct channel *channel, unsigned path, bool blocked)
{
	channel->paths[path].blocked = blocked;
}

void channel_set_late(struct channel *channel, unsigned path, uint64_t late)
{
	channel->paths[path].read_late = late;
}

/* ---- time ---- */

static uint64_t heartbeat_ns(const struct channel *channel)
{
	uint64_t eighth = channel->config.timeout / 8;

	return eighth < CHANNEL_HEARTBEAT_NS ? eighth : CHANNEL_HEARTBEAT_NS;
}

static void probe_all(struct channel *channel)
{
	for (unsigned i = 0; i < channel->n_paths; i++)
		if (channel->paths[i].phase == PHASE_OPEN)
			channel->paths[i].owes_probe = true;
}

static void check_peer(struct channel *channel, uint64_t now)
{
	if (now < channel->heard_at + channel->config.timeout)
		return;
	channel_fail(channel, TRIB_ERR_PEER, "%s has not answered for %.1f s", channel->config.name,
	             (double)(now - channel->heard_at) * 1e-9);
}

/* A carrier knows that a message is in the peer's memory, and not that the peer has seen it. */
static bool has_arrived(const struct channel *channel)
{
	return (channel_needs_carrier(channel) ? channel->peer_delivered : channel->sent) ==
	       channel->queued;
}

static void tick_closing(struct channel *channel, uint64_t now)
{
	if (!channel->closes)
		return;
	if (channel->state == CHANNEL_OPEN && has_arrived(channel)) {
		channel->state = CHANNEL_CLOSING;
		channel->close_by = now + CHANNEL_LINGER_NS;
	}
	if (channel->state == CHANNEL_CLOSING && now >= channel->close_by)
		channel->state = CHANNEL_CLOSED;
}

void channel_tick(struct channel *channel, uint64_t now)
{
	channel->ticked = now;
	if (channel_has_ended(channel))
		return;
	for (unsigned i = 0; i < channel->n_paths; i++)
		path_tick(channel, i, now);
	if (now >= channel->beat_at + heartbeat_ns(channel)) {
		if (now >= channel->heard_at + heartbeat_ns(channel))
			probe_all(channel);
		channel->beat_at = now;
	}
	/* Credit may have been lost on its way. */
	if (channel->fresh != channel->queued && channel->peer_credit == channel->fresh &&
	    now >= channel->stalled_at + CHANNEL_STALL_NS) {
		probe_all(channel);
		channel->stalled_at = now;
	}
	check_peer(channel, now);
	if (channel_needs_carrier(channel))
		carried_tick(channel, now);
	tick_closing(channel, now);
}

uint32_t channel_output(struct channel *channel, unsigned path, uint64_t now, void *buffer,
                        uint32_t room, uint32_t *segment, struct channel_bodies *bodies)
{
	uint32_t bytes;

	if (bodies)
		*bodies = (struct channel_bodies){ 0 };
	if (now != channel->ticked)
		channel_tick(channel, now);
	if (channel->state == CHANNEL_OPEN && !channel_needs_carrier(channel))
		chunks_assign(channel, now);
	bytes = control_output(channel, path, now, buffer);
	*segment = bytes;
	if (bytes || channel->state != CHANNEL_OPEN || channel->paths[path].phase != PHASE_OPEN)
		return bytes;
	return chunks_output(channel, path, now, buffer, room, segment, bodies);
}

uint64_t channel_wake(const struct channel *channel, uint64_t now)
{
	uint64_t at = now + CHANNEL_TICK_NS;

	if (chunks_wait_for_path(channel))
		return now;
	for (unsigned i = 0; i < channel->n_paths; i++) {
		uint64_t path = path_wake(channel, i, now);

		at = path < at ? path : at;
	}
	return at;
}

/* ---- the end ---- */

void channel_close(struct channel *channel, uint64_t now)
{
	if (channel_has_ended(channel))
		return;
	channel->closes = true;
	if (channel->state == CHANNEL_OPENING)
		channel->state = CHANNEL_CLOSED;
	tick_closing(channel, now);
}

void channel_refused(struct channel *channel)
{
	bool silent = channel->ticked >= channel->heard_at + CHANNEL_LINGER_NS;

	if (channel->state == CHANNEL_CLOSING ||
	    (channel->state == CHANNEL_OPEN && channel->closes && silent))
		channel->state = CHANNEL_CLOSED;
}

bool channel_abandon(struct channel *channel)
{
	bool open = channel->state != CHANNEL_OPENING && channel->state != CHANNEL_CLOSED;

	channel->state = CHANNEL_CLOSED;
	for (unsigned i = 0; i < channel->n_paths; i++)
		channel->paths[i].owes_bye = open && channel->paths[i].phase == PHASE_OPEN;
	return open;
}

enum channel_state channel_state(const struct channel *channel)
{
	return channel->state;
}

trib_status channel_status(const struct channel *channel)
{
	return channel->state == CHANNEL_FAILED ? status_fail(channel->error, "%s", channel->why)
	                                        : TRIB_OK;
}

bool channel_is_silent(const struct channel *channel, uint64_t now)
{
	return now >= channel->heard_at + channel->config.timeout / 2;
}

uint32_t channel_unit(const struct channel *channel)
{
	return unit_of(channel);
}

uint64_t channel_id(const struct channel *channel)
{
	return channel->id;
}

bool channel_calls(const struct channel *channel)
{
	return channel->config.connects;
}

const struct monitor *channel_monitor(const struct channel *channel)
{
	return &channel->monitor;
}

struct channel_counters channel_counters(const struct channel *channel)
{
	return channel->counters;
}
