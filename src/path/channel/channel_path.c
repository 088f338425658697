/* SPDX-License-Identifier: Apache-2.0 */
#include "path/channel/channel_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LOST_AT_ONCE 256u

void channel_fail(struct channel *channel, trib_status status, const char *format, ...)
{
	va_list arguments;

	if (channel_has_ended(channel))
		return;
	va_start(arguments, format);
	vsnprintf(channel->why, sizeof(channel->why), format, arguments);
	va_end(arguments);
	channel->error = status;
	channel->state = CHANNEL_FAILED;
}

/* Short messages come in bursts. Their window holds several, so that few are acknowledged singly.
 */
static void window_start(const struct channel *channel, struct channel_path *p)
{
	bool patient = channel->config.patient;

	path_window_init(&p->window, p->sent->next, patient ? WINDOW_LONG_NS : WINDOW_SHORT_NS);
	if (patient)
		p->window.packets = WINDOW_BURSTS;
}

bool path_start(struct channel *channel, unsigned path, enum path_phase phase, uint64_t now)
{
	struct channel_path *p = &channel->paths[path];

	p->sent = calloc(1, sizeof(*p->sent));
	if (!p->sent) {
		channel_fail(channel, TRIB_ERR_NO_MEMORY, "no memory for a path to %s",
		             channel->config.name);
		return false;
	}
	p->sent->lost_at = UINT64_MAX;
	while (channel->monitor.n <= path)
		monitor_add(&channel->monitor, now);
	if (channel->n_paths <= path)
		channel->n_paths = path + 1;
	window_start(channel, p);
	p->phase = phase;
	return true;
}

void channel_agree(struct channel *channel, uint32_t unit, uint32_t longest)
{
	channel->unit = unit;
	channel->peer_longest = longest;
	channel->chunk_units = channel->config.chunk / unit ? channel->config.chunk / unit : 1;
	channel->state = CHANNEL_OPEN;
	for (uint32_t i = 0; i != channel->queued; i++) {
		struct outgoing *out = channel_outgoing(channel, i);

		if (out->bytes > longest)
			channel_fail(channel, TRIB_ERR_ARGUMENT,
			             "%s takes messages of up to %u bytes, not %u",
			             channel->config.name, longest, out->bytes);
		else if (!outgoing_start(out, out->data, out->bytes, cut_of(channel)))
			channel_fail(channel, TRIB_ERR_NO_MEMORY, "no memory for a message to %s",
			             channel->config.name);
	}
}

/* Units that a path did not deliver. They go again, on any path. */
static void lose_units(struct channel *channel, const struct sent_unit *units, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (units[i].unit == SENT_NO_UNIT ||
		    units[i].message - channel->sent >= channel->queued - channel->sent)
			continue;
		channel->lost +=
			outgoing_lost(channel_outgoing(channel, units[i].message), units[i].unit);
	}
}

static unsigned count_data(const struct sent_unit *units, unsigned n)
{
	unsigned data = 0;

	for (unsigned i = 0; i < n; i++)
		data += units[i].unit != SENT_NO_UNIT;
	return data;
}

void path_find_lost(struct channel *channel, unsigned path, uint64_t now)
{
	struct channel_path *p = &channel->paths[path];
	struct sent_unit units[LOST_AT_ONCE];
	unsigned n, data;

	do {
		n = sent_lost(p->sent, now, path_window_reorder(&p->window), units, LOST_AT_ONCE);
		data = count_data(units, n);
		p->window.lost += data;
		if (data)
			monitor_lost(&channel->monitor, path, now, data * channel->unit);
		lose_units(channel, units, n);
	} while (n == LOST_AT_ONCE);
}

void channel_finish(struct channel *channel, uint32_t number)
{
	for (; channel->sent != number; channel->sent++)
		channel->lost -= outgoing_finish(channel_outgoing(channel, channel->sent));
}

/* The path does not answer. What it has goes to others. */
static void path_leave(struct channel *channel, unsigned path, uint64_t now)
{
	struct channel_path *p = &channel->paths[path];
	struct sent_unit units[LOST_AT_ONCE];
	unsigned n, data;

	while ((n = sent_give_up(p->sent, units, LOST_AT_ONCE))) {
		data = count_data(units, n);
		if (data)
			monitor_lost(&channel->monitor, path, now, data * channel->unit);
		lose_units(channel, units, n);
	}
	for (; p->pending.n; p->pending.n--, p->pending.first++) {
		struct sent_unit unit = { p->pending.message, p->pending.first };

		lose_units(channel, &unit, 1);
	}
	window_start(channel, p);
	p->asked = p->silences = 0;
}

static uint64_t silence_ns(const struct channel_path *p)
{
	uint64_t twice = 2 * path_window_patience(&p->window);

	return twice > CHANNEL_SILENCE_NS ? twice : CHANNEL_SILENCE_NS;
}

static uint64_t silence_at(const struct channel_path *p)
{
	return p->quiet_since + (p->silences + 1) * silence_ns(p);
}

/* When a path is asked because it does not answer. Each question is more patient. Packets of a peer
 * that pauses again and again, e.g. heartbeats, do not put the next one off. */
static uint64_t ask_at(const struct channel *channel, const struct channel_path *p)
{
	uint64_t from = p->asked ? p->asked_at : p->quiet_since;
	uint64_t patience = path_window_patience(&p->window);

	if (channel->config.patient)
		patience += ARRIVALS_PATIENCE_NS;
	return from + (patience << (p->asked < 3 ? p->asked : 3));
}

/* Paths without packets in flight are asked, too. Their answers show that the peer does not pause.
 */
static void ask_others(struct channel *channel)
{
	for (unsigned i = 0; i < channel->n_paths; i++) {
		struct channel_path *p = &channel->paths[i];

		if (p->phase == PHASE_OPEN && !p->sent->in_flight && !channel_is_dead(channel, i))
			p->owes_probe = true;
	}
}

static void tick_silence(struct channel *channel, unsigned path, uint64_t now)
{
	struct channel_path *p = &channel->paths[path];

	if (!p->sent->in_flight)
		return;
	if (now >= ask_at(channel, p)) {
		p->owes_probe = true;
		p->asked_at = now;
		p->asked++;
		ask_others(channel);
	}
	/* If no path is heard, the peer is late, not the path. */
	if (now < silence_at(p) || channel->heard_at <= p->quiet_since)
		return;
	p->silences++;
	monitor_silent(&channel->monitor, path, now);
	if (channel_is_dead(channel, path)) {
		channel->counters.deaths++;
		p->left++;
		path_leave(channel, path, now);
	}
}

void path_tick(struct channel *channel, unsigned path, uint64_t now)
{
	struct channel_path *p = &channel->paths[path];

	if (p->phase != PHASE_OPEN)
		return;
	if (now >= p->sent->lost_at)
		path_find_lost(channel, path, now);
	if (!channel_is_dead(channel, path))
		tick_silence(channel, path, now);
	if (monitor_wants_probe(&channel->monitor, path, now)) {
		if (channel_is_dead(channel, path))
			path_leave(channel, path, now);
		p->owes_probe = true;
		monitor_probed(&channel->monitor, path, now);
	}
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t path_wake(const struct channel *channel, unsigned path, uint64_t now)
{
	const struct channel_path *p = &channel->paths[path];
	uint64_t at = now + CHANNEL_TICK_NS;

	if (p->phase == PHASE_CALLING)
		return sooner(at, hello_at(p));
	if (p->phase != PHASE_OPEN || p->blocked)
		return at;
	if (control_is_due(channel, path, now) || chunks_are_due(channel, path))
		return now;
	at = sooner(at, arrivals_due(&p->arrivals, channel->config.patient));
	at = sooner(at, p->sent->lost_at);
	if (p->sent->in_flight && !channel_is_dead(channel, path)) {
		at = sooner(at, ask_at(channel, p));
		if (channel->heard_at > p->quiet_since)
			at = sooner(at, silence_at(p));
	}
	return at;
}
