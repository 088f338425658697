/* SPDX-License-Identifier: Apache-2.0 */
#include "path/channel/channel_io.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/settings.h"
#include "path/channel/io_state.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static trib_status read_settings(const struct channel_io_config *config,
                                 struct channel_config *channel)
{
	uint64_t chunk = config->chunk, balancer, monitor;
	trib_status status = TRIB_OK;

	if (!chunk)
		status = setting_count(SETTING_CHUNK, &chunk);
	if (status == TRIB_OK)
		status = setting_count(SETTING_BALANCER, &balancer);
	if (status == TRIB_OK)
		status = setting_count(SETTING_MONITOR, &monitor);
	if (status != TRIB_OK)
		return status;
	channel->chunk = (uint32_t)chunk;
	channel->balancer = (enum balancer_kind)balancer;
	channel->monitor = (enum monitor_kind)monitor;
	return TRIB_OK;
}

trib_status channel_io_new(const struct channel_io_config *config, bool connects, uint32_t unit,
                           uint64_t now, struct channel_io **out)
{
	struct channel_config channel = {
		.connects = connects,
		.key = config->key,
		.self = config->self,
		.peer = config->peer,
		.unit = unit,
		.longest = config->longest,
		.credit = config->credit,
		.timeout = config->timeout,
		.carried = config->carrier ? config->carrier->depth : 0,
		.carried_from = config->carrier ? config->carrier->from : 0,
		.patient = config->patient,
		.events = config->events,
	};
	struct channel_io *io;
	trib_status status = read_settings(config, &channel);

	if (status != TRIB_OK)
		return status;
	if (getrandom(&channel.id, sizeof(channel.id), 0) != sizeof(channel.id))
		return status_fail_errno("no random number");
	channel.id |= 1; /* never 0 */
	snprintf(channel.name, sizeof(channel.name), "%s", config->name);
	io = calloc(1, sizeof(*io));
	if (!io)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a channel to %s",
		                   config->name);
	for (unsigned i = 0; i < PATHS_MAX; i++)
		io->sockets[i].fd = -1;
	io->key = config->key;
	io->self = config->self;
	io->peer = config->peer;
	snprintf(io->name, sizeof(io->name), "%s", config->name);
	io->shares_rx = config->rx;
	io->rx = config->rx ? config->rx : udp_rx_new(CHANNEL_RX, false);
	io->channel = channel_new(&channel, now);
	io->carrier = config->carrier;
	if (!io->rx || !io->channel)
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for a channel to %s",
		                     config->name);
	else if (io->carrier)
		status = io->carrier->open(io->channel, io->name, config->longest, &config->events,
		                           &io->carried);
	if (status != TRIB_OK) {
		channel_io_free(io);
		return status;
	}
	*out = io;
	return TRIB_OK;
}

void channel_io_free(struct channel_io *io)
{
	if (!io)
		return;
	if (io->listener) {
		struct channel_io **at = &io->listener->channels;

		while (*at != io)
			at = &(*at)->next;
		*at = io->next;
	}
	if (io->channel && channel_abandon(io->channel))
		for (unsigned i = 0; i < io->n_sockets; i++)
			if (io->sockets[i].fd >= 0)
				path_socket_send(&io->sockets[i], io->channel, i);
	if (io->carried)
		io->carrier->close(io->carried);
	for (unsigned i = 0; i < io->n_sockets; i++)
		path_socket_close(&io->sockets[i]);
	discovery_stop(io->discovery);
	if (!io->shares_rx)
		udp_rx_free(io->rx);
	channel_free(io->channel);
	free(io);
}

struct channel *channel_of(const struct channel_io *io)
{
	return io->channel;
}

/* ---- the side that calls ---- */

const struct virtual_path *channel_io_path(const struct channel_io *io, unsigned i)
{
	if (io->n_paths || !io->discovery)
		return i < io->n_paths ? &io->paths[i] : NULL;
	return i < discovery_count(io->discovery) ? discovery_path(io->discovery, i) : NULL;
}

/* A path that cannot be used is left out: one line says why. */
static void open_path(struct channel_io *io, unsigned i, const struct virtual_path *path,
                      uint64_t now)
{
	struct path_socket *socket = &io->sockets[i];
	struct path_address at = path_address_of(&path->to);
	char text[64];

	if (path_socket_open(socket, path->from.length ? &path->from : NULL, &path->to, false)) {
		log_notice("path %u to %s is not used: %s", i, io->name, trib_last_error());
		return;
	}
	if (path_socket_unit(socket, &path->to) < channel_unit(io->channel)) {
		log_notice("path %u to %s (%s) is not used: its MTU is too small", i, io->name,
		           udp_text(&path->to, text, sizeof(text)));
		path_socket_close(socket);
		return;
	}
	channel_open_path(io->channel, i, &at, now);
	if (io->n_sockets <= i)
		io->n_sockets = i + 1;
}

static void tell_addresses(struct channel_io *io, uint64_t now)
{
	struct udp_address to[PATH_ADDRESSES];
	const struct path_address *told;
	unsigned n = channel_peer_addresses(io->channel, &told), known = 0;

	for (unsigned i = 0; i < n; i++)
		if (told[i].size == 4 || told[i].size == 16)
			udp_from_raw(told[i].raw, told[i].size, told[i].port, &to[known++]);
	if (known)
		discovery_tell(io->discovery, to, known, now);
	io->told = true;
}

/* Is it the pair of addresses that path 0 has? */
static bool is_first(const struct channel_io *io, const struct virtual_path *path)
{
	struct path_address from, to, own = path_address_of(&path->from);

	path_address_of_socket(io->sockets[0].fd, &from, &to);
	return from.size == own.size && !memcmp(from.raw, own.raw, own.size) &&
	       udp_same_host(&path->to, &io->paths[0].to);
}

/* Path 0 opens the channel. With a carrier, the others join address N of both sides. */
static void pair_addresses(struct channel_io *io)
{
	struct udp_address own[PATHS_MAX];
	const struct path_address *told;
	unsigned n = channel_peer_addresses(io->channel, &told);
	unsigned most = io->carrier->addresses(own, PATHS_MAX);

	io->told = true;
	for (unsigned i = 0; i < n && i < most && io->n_paths < PATHS_MAX; i++) {
		struct virtual_path *path = &io->paths[io->n_paths];

		if (told[i].size != 4)
			continue;
		*path = (struct virtual_path){ .from = own[i] };
		udp_from_raw(told[i].raw, 4, told[i].port, &path->to);
		io->n_paths += !is_first(io, path);
	}
}

/* Opens given paths at once. When the first path is open, others are looked for. */
static void search_paths(struct channel_io *io, uint64_t now)
{
	const struct virtual_path *path;

	if (channel_state(io->channel) > CHANNEL_OPEN)
		return;
	if (io->discovery) {
		if (channel_state(io->channel) != CHANNEL_OPEN)
			return;
		if (!io->told)
			tell_addresses(io, now);
		else if (now < discovery_wake(io->discovery) && discovery_fd(io->discovery) < 0)
			return;
		discovery_step(io->discovery, now);
	}
	if (carrier_takes_all(io->carrier) && !io->told &&
	    channel_state(io->channel) == CHANNEL_OPEN)
		pair_addresses(io);
	while (io->n_tried < PATHS_MAX && (path = channel_io_path(io, io->n_tried)))
		open_path(io, io->n_tried++, path, now);
}

static trib_status first_path(const struct channel_io_config *config, const struct udp_address *to,
                              struct discovery **discovery, struct virtual_path *path)
{
	trib_status status = TRIB_OK;

	*discovery = NULL;
	if (config->n_paths) {
		*path = config->paths[0];
	} else if (carrier_takes_all(config->carrier)) {
		*path = (struct virtual_path){ .to = *to };
	} else {
		status = discovery_start(to, discovery);
		if (status == TRIB_OK)
			*path = *discovery_path(*discovery, 0);
	}
	return status;
}

trib_status channel_connect(const struct channel_io_config *config, const struct udp_address *to,
                            uint64_t now, struct channel_io **out)
{
	struct path_socket first = { .fd = -1 };
	struct discovery *discovery;
	struct virtual_path path;
	struct path_address at;
	struct channel_io *io = NULL;
	trib_status status = first_path(config, to, &discovery, &path);

	if (status != TRIB_OK)
		return status;
	at = path_address_of(&path.to);
	status = path_socket_open(&first, path.from.length ? &path.from : NULL, &path.to, false);
	if (status == TRIB_OK && path_socket_unit(&first, &path.to) < CHANNEL_UNIT_MIN)
		status = status_fail(TRIB_ERR_SYSTEM, "the MTU to %s is too small", config->name);
	/* Without packets of data, paths may have any MTU. */
	if (status == TRIB_OK)
		status = channel_io_new(config, true,
		                        carrier_takes_all(config->carrier)
		                                ? CHANNEL_UNIT_MIN
		                                : path_socket_unit(&first, &path.to),
		                        now, &io);
	if (!io) {
		path_socket_close(&first);
		discovery_stop(discovery);
		return status;
	}
	io->discovery = discovery;
	io->n_paths = config->n_paths < PATHS_MAX ? config->n_paths : PATHS_MAX;
	if (io->n_paths)
		memcpy(io->paths, config->paths, io->n_paths * sizeof(io->paths[0]));
	else if (carrier_takes_all(io->carrier))
		io->paths[io->n_paths++] = path;
	io->sockets[0] = first;
	io->n_sockets = io->n_tried = 1;
	channel_open_path(io->channel, 0, &at, now);
	*out = io;
	return TRIB_OK;
}

/* ---- both sides ---- */

unsigned channel_fds(const struct channel_io *io, struct pollfd *fds)
{
	unsigned n = 0;

	for (unsigned i = 0; i < io->n_sockets; i++) {
		const struct path_socket *socket = &io->sockets[i];

		if (socket->fd >= 0)
			fds[n++] = (struct pollfd){
				.fd = socket->fd,
				.events = udp_tx_is_empty(socket->tx) ? POLLIN : POLLIN | POLLOUT,
			};
	}
	if (io->discovery && discovery_fd(io->discovery) >= 0)
		fds[n++] = (struct pollfd){ .fd = discovery_fd(io->discovery), .events = POLLIN };
	if (io->carried)
		fds[n++] = io->carrier->poll(io->carried);
	return n;
}

uint64_t channel_wait(const struct channel_io *io, uint64_t now)
{
	uint64_t at = channel_wake(io->channel, now);

	if (io->discovery && io->told && discovery_wake(io->discovery) < at)
		at = discovery_wake(io->discovery);
	return at > now ? at - now : 0;
}

bool channel_take(struct channel_io *io, const struct pollfd *fds, unsigned n)
{
	bool any = false;

	for (unsigned i = 0; i < n; i++)
		any |= fds[i].revents != 0;
	if (io->carried && n && fds[n - 1].revents) /* its place is the last */
		io->carrier->take(io->carried, clock_now());
	for (unsigned i = 0, k = 0; any && i < n && k < io->n_sockets; k++) {
		if (io->sockets[k].fd < 0 || io->sockets[k].fd != fds[i].fd)
			continue;
		if (fds[i++].revents & ~POLLOUT)
			path_socket_receive(&io->sockets[k], io->rx, io->channel, k);
	}
	return any;
}

/* The carrier learns of new paths, agrees with the peer, and sends. */
static void push_carrier(struct channel_io *io, uint64_t now)
{
	for (unsigned i = 0; i < io->n_sockets; i++) {
		struct path_address from, to;

		if (io->sockets[i].fd < 0 || io->carried_paths & 1ull << i)
			continue;
		io->carried_paths |= 1ull << i;
		path_address_of_socket(io->sockets[i].fd, &from, &to);
		io->carrier->add_path(io->carried, i, &from, &to);
	}
	io->carrier->push(io->carried, now);
}

trib_status channel_push(struct channel_io *io, uint64_t now)
{
	bool any = true;

	if (!io->listener)
		search_paths(io, now);
	if (io->carried)
		push_carrier(io, now);
	channel_tick(io->channel, now); /* a peer that never comes gives no path to send on */
	while (any) {
		any = false;
		for (unsigned i = 0; i < io->n_sockets; i++)
			if (io->sockets[i].fd >= 0)
				any |= path_socket_send(&io->sockets[i], io->channel, i);
	}
	return channel_status(io->channel);
}

trib_status channel_step(struct channel_io *io, uint64_t now)
{
	if (io->carried)
		io->carrier->take(io->carried, now);
	for (unsigned i = 0; i < io->n_sockets; i++)
		if (io->sockets[i].fd >= 0)
			path_socket_receive(&io->sockets[i], io->rx, io->channel, i);
	return channel_push(io, now);
}
