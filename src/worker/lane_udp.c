/* SPDX-License-Identifier: Apache-2.0 */
/* A lane by datagrams: batches both ways, and results that are sent to all at once. */
#include "worker/comm.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/parse.h"

#include <errno.h>
#include <unistd.h>

#define RX_MESSAGES 8u
#define TAKEN_MOST 64 /* messages of a group, before it is looked what there is to send */
#define TX_MESSAGES 64u
#define BATCH_BYTES UDP_GSO_BYTES
#define SEND_BYTES_MIN (16 << 10)

static trib_status udp_lane_open(struct lane *lane)
{
	const struct trib_comm *comm = lane->comm;
	struct udp_options options = comm->config.socket;
	trib_status status;

	/* All lanes leave by one link, whose queue drops what is too much for it. */
	options.send_bytes /= (int)(comm->lanes_wanted * comm->n_trunks);
	if (options.send_bytes < SEND_BYTES_MIN)
		options.send_bytes = SEND_BYTES_MIN;
	lane->rx = udp_rx_new(RX_MESSAGES, false);
	lane->group_rx = udp_rx_new(RX_MESSAGES, false);
	if (!lane->rx || !lane->group_rx)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for packet buffers");
	status = udp_open(NULL, &lane->peer, &options, &lane->fd, &lane->gso);
	if (status != TRIB_OK)
		return status;
	lane->tx = udp_tx_new(TX_MESSAGES, lane->gso);
	return lane->tx ? TRIB_OK : status_fail(TRIB_ERR_NO_MEMORY, "no memory for packet buffers");
}

static void udp_lane_close(struct lane *lane)
{
	if (hearing_was_in_vain(&lane->hearing, clock_now()))
		atomic_store(&lane->comm->deaf, true);
	if (lane->group_fd >= 0)
		close(lane->group_fd);
	udp_rx_free(lane->rx);
	udp_rx_free(lane->group_rx);
	udp_tx_free(lane->tx);
}

static bool udp_lane_reach(struct lane *lane, int wait_ms)
{
	(void)lane;
	(void)wait_ms;
	return true; /* who is there shows when he answers */
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
	else if (!atomic_load(&lane->comm->deaf))
		hearing_start(&lane->hearing, clock_now());
}

static void take_packet(struct lane *lane, const void *data, uint32_t bytes, bool by_group,
                        lane_taker *take, void *context)
{
	if (wire_parse(data, bytes) == WIRE_SOUND)
		take(lane, data, bytes, by_group, context);
	else
		lane->dropped++;
}

static void take_messages(struct lane *lane, const struct udp_rx *rx, int n, lane_taker *take,
                          void *context)
{
	for (int i = 0; i < n; i++) {
		const struct udp_message *message = udp_message(rx, i);

		if (message->segment == 0 || message->segment % 8) {
			lane->dropped++;
			continue;
		}
		for (uint32_t at = 0; at < message->bytes; at += message->segment) {
			uint32_t left = message->bytes - at;

			take_packet(lane, message->data + at,
			            left < message->segment ? left : message->segment,
			            rx == lane->group_rx, take, context);
		}
	}
}

/*
 * A STATUS tells what left before it, so it must not overtake results that
 * came to the group's socket: what our own socket gave is held until all that
 * was at the group's by then has been taken, in several calls if it is much.
 */
static int udp_lane_receive(struct lane *lane, lane_taker *take, void *context)
{
	int taken = 0, error = 0;
	bool more = lane->group_fd >= 0, any;

	if (lane->held <= 0)
		lane->held = udp_receive(lane->rx, lane->fd);
	if (lane->held < 0)
		error = lane->held;
	any = lane->held > 0;
	while (more && taken < TAKEN_MOST) {
		int n = udp_receive(lane->group_rx, lane->group_fd);

		take_messages(lane, lane->group_rx, n, take, context);
		more = udp_rx_was_full(lane->group_rx);
		taken += n > 0 ? n : 0;
	}
	if (!more) {
		take_messages(lane, lane->rx, lane->held, take, context);
		lane->held = 0;
	}
	return error ? error : any || taken;
}

static void udp_seal(void *packet, uint32_t bytes, const struct wire_unsent *unsent)
{
	if (unsent)
		wire_seal_fragment(packet, bytes, unsent);
	else
		wire_seal(packet, bytes);
}

static int udp_lane_send_one(struct lane *lane, void *packet, uint32_t bytes)
{
	wire_seal(packet, bytes);
	return send(lane->fd, packet, bytes, 0) < 0 ? -errno : 0;
}

/* Reports and heartbeats, each a message of its own; gives the bytes used of the buffer. */
static uint32_t fill_reports(struct lane *lane, uint64_t now)
{
	uint32_t used = 0, bytes;

	/* A report is about what was sent before, and must not come before that. */
	udp_tx_at(lane->tx, pacer_time(&lane->pacer, now));
	while (udp_tx_room(lane->tx) > TX_MESSAGES / 2 &&
	       (bytes = lane_next_report(lane, now, lane->buffer + used))) {
		udp_tx_add(lane->tx, lane->buffer + used, bytes, bytes, NULL);
		used += bytes;
	}
	return used;
}

static void add_data(struct lane *lane, uint64_t now, uint64_t time, const uint8_t *data,
                     uint32_t bytes, uint32_t segment)
{
	udp_tx_at(lane->tx, time);
	udp_tx_add(lane->tx, data, bytes, segment, NULL);
	pacer_message(&lane->pacer, now, time);
}

/* Packets of one length are one message, as far as they leave together; a shorter one may end it.
 */
static uint32_t fill_data(struct lane *lane, uint64_t now, uint32_t used)
{
	uint32_t start = used, segment = 0, bytes = 0, data = 0;
	uint32_t together = pacer_message_bytes(&lane->pacer, udp_tx_joins(lane->tx));
	uint64_t time = 0;

	while (data < BATCH_BYTES && (bytes = lane_next_data(lane, now, lane->buffer + used))) {
		if (segment &&
		    (bytes > segment || used - start + bytes > UDP_GSO_BYTES ||
		     used - start + bytes > together ||
		     (used - start) / segment >= UDP_GSO_SEGMENTS || (used - start) % segment)) {
			add_data(lane, now, time, lane->buffer + start, used - start, segment);
			start = used;
			segment = 0;
		}
		if (!segment) {
			segment = bytes;
			time = pacer_time(&lane->pacer, now);
		}
		used += bytes;
		data += bytes;
		if (udp_tx_room(lane->tx) < 2)
			break;
	}
	if (used > start)
		add_data(lane, now, time, lane->buffer + start, used - start, segment);
	return data;
}

static int udp_lane_send_some(struct lane *lane, uint64_t now, bool *sent)
{
	int error = udp_send(lane->tx, lane->fd);
	uint32_t used;

	/* An error gave up one message; the rest comes next time. */
	if (error == -EAGAIN || !udp_tx_is_empty(lane->tx))
		return error;
	used = fill_reports(lane, now);
	used += fill_data(lane, now, used);
	if (!used)
		return error;
	*sent = true;
	return udp_send(lane->tx, lane->fd);
}

const struct lane_way lane_way_udp = {
	.open = udp_lane_open,
	.close = udp_lane_close,
	.reach = udp_lane_reach,
	.start = open_group,
	.receive = udp_lane_receive,
	.send_one = udp_lane_send_one,
	.send_some = udp_lane_send_some,
	.seal = udp_seal,
};
