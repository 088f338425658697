/* SPDX-License-Identifier: Apache-2.0 */
#include "path/channel/path_socket.h"

#include "base/clock.h"
#include "base/settings.h"
#include "path/length_probe.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define RECEIVE_BYTES (8 << 20)
#define SEND_BYTES (1 << 20)
#define BURST_ROOM 65536u
#define STAMP_OLDEST_NS NSEC_PER_SEC /* 1 s: an older time stamp means that a clock was set */
#define RECEIVE_CALLS 4u             /* before something is sent */

trib_status path_socket_open(struct path_socket *socket, const struct udp_address *from,
                             const struct udp_address *to, bool shares_port)
{
	struct udp_options options = { .receive_bytes = RECEIVE_BYTES,
		                       .send_bytes = SEND_BYTES,
		                       .shares_port = shares_port };
	uint64_t offload;
	trib_status status = setting_count(SETTING_OFFLOAD, &offload);
	bool gso;

	socket->fd = -1;
	options.offload = offload;
	if (status || (status = udp_open(from, to, &options, &socket->fd, &gso)))
		return status;
	udp_let_stamps(socket->fd);
	socket->tx = udp_tx_new(PATH_SOCKET_BURSTS, gso);
	socket->bursts = aligned_alloc(64, (size_t)PATH_SOCKET_BURSTS * BURST_ROOM);
	if (socket->tx && socket->bursts)
		return TRIB_OK;
	path_socket_close(socket);
	return status_fail(TRIB_ERR_NO_MEMORY, "no memory for the packets of a path");
}

void path_socket_close(struct path_socket *socket)
{
	if (socket->fd < 0)
		return;
	close(socket->fd);
	udp_tx_free(socket->tx);
	free(socket->bursts);
	*socket = (struct path_socket){ .fd = -1 };
}

uint32_t path_socket_unit(const struct path_socket *socket, const struct udp_address *to)
{
	unsigned mtu = udp_mtu(socket->fd);
	uint64_t most;

	if (setting_count(SETTING_MTU, &most) == TRIB_OK && most && most < mtu)
		mtu = (unsigned)most;
	return length_probe_full(mtu, udp_overhead(to) + CHANNEL_HEADER, CHANNEL_UNIT_MAX);
}

/*
 * When a message came, by the monotonic clock. The time that it waited for this thread is no part
 * of the round trip.
 */
static uint64_t arrival(const struct udp_message *message, uint64_t now, uint64_t now_real)
{
	uint64_t age = clock_since(now_real, message->stamp);

	return message->stamp && age < STAMP_OLDEST_NS ? now - age : now;
}

static uint64_t clock_real(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static void take_message(const struct udp_message *message, struct channel *channel, unsigned path,
                         uint64_t now)
{
	/* Packets that the kernel joined are aligned only if their length allows it. */
	if (!message->segment || (message->segment % 8 && message->segment < message->bytes))
		return;
	for (uint32_t at = 0; at < message->bytes; at += message->segment) {
		uint32_t left = message->bytes - at;

		channel_receive(channel, path, now, message->data + at,
		                left < message->segment ? left : message->segment);
	}
}

void path_socket_receive(struct path_socket *socket, struct udp_rx *rx, struct channel *channel,
                         unsigned path)
{
	for (unsigned call = 0; call < RECEIVE_CALLS; call++) {
		int n = udp_receive(rx, socket->fd);
		uint64_t now = clock_now(), now_real = clock_real();

		for (int i = 0; i < n; i++) {
			const struct udp_message *message = udp_message(rx, i);
			uint64_t came_at = arrival(message, now, now_real);

			channel_set_late(channel, path, now - came_at);
			take_message(message, channel, path, came_at);
		}
		/* An error is that of an earlier packet, e.g. a port that is closed. */
		if (n == -ECONNREFUSED)
			channel_refused(channel);
		if (n >= 0 && !udp_rx_was_full(rx))
			return;
	}
}

bool path_socket_send(struct path_socket *socket, struct channel *channel, unsigned path)
{
	struct channel_bodies bodies;
	uint32_t bytes, segment;
	bool any = false;
	int result;

	if (udp_tx_is_empty(socket->tx))
		socket->used = 0;
	while (socket->used < PATH_SOCKET_BURSTS && udp_tx_room(socket->tx)) {
		uint8_t *burst = socket->bursts + (size_t)socket->used * BURST_ROOM;

		bytes = channel_output(channel, path, clock_now(), burst, UDP_GSO_BYTES, &segment,
		                       &bodies);
		if (!bytes)
			break;
		udp_tx_add_split(socket->tx, burst, bytes, segment, bodies.data, bodies.packets,
		                 CHANNEL_HEADER);
		socket->used++;
		any = true;
	}
	/* Errors other than a full socket drop a message: it counts as lost. */
	do
		result = udp_send(socket->tx, socket->fd);
	while (result < 0 && result != -EAGAIN);
	channel_set_blocked(channel, path, !udp_tx_is_empty(socket->tx));
	return any;
}
