/* SPDX-License-Identifier: Apache-2.0 */
/* A lane over UDP datagrams, with GSO and GRO; results may come by multicast. */
#include "worker/comm/comm.h"
#include "worker/transport/lane_internal.h"
#include "worker/transport/lane_paths.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define RX_MESSAGES 8u
#define GROUP_MESSAGES 64u /* by multicast in one pass: then the lane sends */
#define TX_MESSAGES LANE_MESSAGES
#define SEND_BYTES_MIN (16 << 10)

static trib_status open_socket(const struct lane *lane, const struct udp_address *from, int *fd,
                               bool *gso)
{
	const struct trib_comm *comm = lane->comm;
	struct udp_options options = comm->config.socket;

	/* All lanes share one link. If they queue too much, the queue of the link drops packets. */
	options.send_bytes /= (int)(comm->lanes_wanted * comm->n_trunks);
	if (options.send_bytes < SEND_BYTES_MIN)
		options.send_bytes = SEND_BYTES_MIN;
	return udp_open(from, &lane->peer, &options, fd, gso);
}

static trib_status udp_lane_open(struct lane *lane)
{
	struct udp_address from;
	bool chosen = lane_paths_from(lane, &from);
	trib_status status;

	lane->rx = udp_rx_new(RX_MESSAGES, false);
	lane->group_rx = udp_rx_new(RX_MESSAGES, false);
	if (!lane->rx || !lane->group_rx)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for packet buffers");
	status = open_socket(lane, chosen ? &from : NULL, &lane->fd, &lane->gso);
	if (status != TRIB_OK && chosen) { /* another program has taken the port since */
		lane->path = PATHS_MAX;
		status = open_socket(lane, NULL, &lane->fd, &lane->gso);
	}
	if (status != TRIB_OK)
		return status;
	lane->tx = udp_tx_new(TX_MESSAGES, lane->gso);
	return lane->tx ? TRIB_OK : status_fail(TRIB_ERR_NO_MEMORY, "no memory for packet buffers");
}

static void udp_lane_close(struct lane *lane)
{
	if (group_probe_failed(&lane->group_probe, clock_now()))
		atomic_store(&lane->comm->no_multicast, true);
	if (lane->group_fd >= 0)
		close(lane->group_fd);
	udp_rx_free(lane->rx);
	udp_rx_free(lane->group_rx);
	udp_tx_free(lane->tx);
	lane_paths_forget(lane);
}

/* The new socket gets the number of the old one, so that the lane does not notice. */
static int udp_lane_move(struct lane *lane, const struct udp_address *from)
{
	int fd, left;
	bool gso;

	if (open_socket(lane, from, &fd, &gso) != TRIB_OK)
		return -1;
	left = fcntl(lane->fd, F_DUPFD_CLOEXEC, 0);
	if (gso != lane->gso || left < 0 || dup3(fd, lane->fd, O_CLOEXEC) < 0) {
		close(fd);
		if (left >= 0)
			close(left);
		return -1;
	}
	close(fd);
	pacing_moved(lane);
	return left;
}

static bool udp_lane_reach(struct lane *lane, int wait_ms)
{
	(void)lane;
	(void)wait_ms;
	return true; /* datagrams need no connection */
}

static void open_group(struct lane *lane)
{
	const struct wire_welcome *welcome = &lane->trunk->welcome;
	struct in_addr group = { welcome->multicast_group };
	struct udp_address local;
	char interface[64];

	if (!welcome->multicast_port || !lane->comm->config.multicast)
		return;
	if (udp_route(&lane->trunk->aggregator, &local, interface, sizeof(interface)) ||
	    udp_open_group(group, (uint16_t)(welcome->multicast_port + lane->index),
	                   ((struct sockaddr_in *)&local.storage)->sin_addr,
	                   &lane->comm->config.socket, &lane->group_fd))
		log_info("no multicast: %s", trib_last_error());
	else if (!atomic_load(&lane->comm->no_multicast))
		group_probe_start(&lane->group_probe, clock_now());
}

/* Hands packets up until the batch is full. True: none of the received messages is left. */
static bool hand_up(struct lane *lane, const struct udp_rx *rx, struct lane_cursor *cursor)
{
	struct lane_batch *batch = &lane->batch;

	for (; cursor->message < cursor->messages; cursor->message++, cursor->at = 0) {
		const struct udp_message *message = udp_message(rx, cursor->message);
		uint32_t segment = message->segment;

		if (segment == 0 || segment % 8) {
			lane->dropped++;
			continue;
		}
		for (; cursor->at < message->bytes; cursor->at += segment) {
			const void *data = message->data + cursor->at;
			uint32_t left = message->bytes - cursor->at;
			uint32_t bytes = left < segment ? left : segment;

			if (batch->n == LANE_BATCH_PACKETS)
				return false;
			if (wire_parse(data, bytes) != WIRE_SOUND) {
				lane->dropped++;
				continue;
			}
			batch->packets[batch->n].header = data;
			batch->packets[batch->n].bytes = bytes;
			batch->packets[batch->n++].by_group = rx == lane->group_rx;
		}
	}
	*cursor = (struct lane_cursor){ 0 };
	return true;
}

/* From the multicast socket. True: all that was there by then is handed up. */
static bool hand_up_group(struct lane *lane)
{
	while (hand_up(lane, lane->group_rx, &lane->group_cursor)) {
		int n;

		if (!lane->group_more || lane->group_taken >= GROUP_MESSAGES)
			return true;
		if (lane->batch.n) /* the next call to the kernel reuses their buffers */
			return false;
		n = udp_receive(lane->group_rx, lane->group_fd);
		lane->group_more = udp_rx_was_full(lane->group_rx);
		if (n > 0) {
			lane->group_cursor.messages = n;
			lane->group_taken += (unsigned)n;
		}
	}
	return false;
}

/* Results that were on their way when the lane left a path. */
static int receive_left(struct lane *lane)
{
	int n = 0;

	for (unsigned i = 0; i < lane->n_left && n <= 0; i++)
		n = udp_receive(lane->rx, lane->left[i]);
	return n > 0 ? n : 0;
}

/*
 * A STATUS speaks of results that left before it, so it must not overtake results in the
 * multicast socket. Packets of the lane's own socket are held until all that was in the multicast
 * socket by then is handed up; if that is much, it takes several passes.
 *
 * A pass is one call to the kernel for the own socket, and enough for the multicast socket to
 * take GROUP_MESSAGES. While batch.more is set, the pass goes on with the next call.
 */
static int udp_lane_receive(struct lane *lane)
{
	struct lane_batch *batch = &lane->batch;
	int error = 0;
	bool came;

	if (!batch->more) {
		lane->group_more = lane->group_fd >= 0;
		lane->group_taken = 0;
		if (!lane->own_cursor.messages) {
			int n = udp_receive(lane->rx, lane->fd);

			if (n == 0)
				n = receive_left(lane);
			error = n < 0 ? n : 0;
			lane->own_cursor.messages = n > 0 ? n : 0;
		}
	}
	batch->n = 0;
	batch->more = !hand_up_group(lane);
	came = lane->group_taken || lane->own_cursor.messages;
	if (!batch->more && !lane->group_more)
		batch->more = !hand_up(lane, lane->rx, &lane->own_cursor);
	return error ? error : came;
}

static int udp_lane_send_one(struct lane *lane, void *packet, uint32_t bytes)
{
	wire_seal(packet, bytes);
	return send(lane->fd, packet, bytes, 0) < 0 ? -errno : 0;
}

static int udp_lane_flush(struct lane *lane, struct lane_room *room)
{
	int error = udp_send(lane->tx, lane->fd);
	/* An error other than a full socket gave up one message; the rest goes next time. */
	bool is_free = error != -EAGAIN && udp_tx_is_empty(lane->tx);

	*room = (struct lane_room){ .messages = is_free ? TX_MESSAGES : 0,
		                    .reports = TX_MESSAGES / 2,
		                    .bytes = UDP_GSO_BYTES,
		                    .message_bytes = UDP_GSO_BYTES,
		                    .message_packets = UDP_GSO_SEGMENTS,
		                    .joins = udp_tx_joins(lane->tx) };
	return error;
}

static int udp_lane_send(struct lane *lane, const struct lane_message *messages, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		udp_tx_at(lane->tx, messages[i].time);
		udp_tx_add(lane->tx, messages[i].data, messages[i].bytes, messages[i].segment,
		           NULL);
	}
	return udp_send(lane->tx, lane->fd);
}

const struct lane_carrier lane_carrier_udp = {
	.open = udp_lane_open,
	.close = udp_lane_close,
	.reach = udp_lane_reach,
	.start = open_group,
	.receive = udp_lane_receive,
	.flush = udp_lane_flush,
	.send = udp_lane_send,
	.move = udp_lane_move,
	.send_one = udp_lane_send_one,
};
