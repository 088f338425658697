/* SPDX-License-Identifier: Apache-2.0 */
/* A lane over a TCP connection. The kernel delivers everything, in order. */
#include "worker/comm/comm.h"
#include "worker/transport/lane_carrier.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/frame.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define BATCH_BYTES (128u << 10)
#define REPORTS_MAX 8u
#define SEND_WAIT_MS 1000

_Static_assert(TCP_TAIL_MAX >= WIRE_FRAME_MAX, "a frame's start has to fit");

static trib_status tcp_lane_open(struct lane *lane)
{
	return tcp_rx_init(&lane->bytes)
	               ? TRIB_OK
	               : status_fail(TRIB_ERR_NO_MEMORY, "no memory for packet buffers");
}

static void tcp_lane_close(struct lane *lane)
{
	if (lane->connecting_fd >= 0)
		tcp_close(lane->connecting_fd);
	tcp_rx_free(&lane->bytes);
}

/* One line, if RDMA was wanted and is not possible. */
static void say_kind(const struct lane *lane)
{
	char text[64];

	if (!tcp_has_other() || lane->index)
		return;
	if (tcp_is_other(lane->fd))
		log_info("packets to the aggregator %s travel by RDMA",
		         udp_text(&lane->peer, text, sizeof(text)));
	else
		log_notice("packets to the aggregator %s travel by TCP: it takes no RDMA",
		           udp_text(&lane->peer, text, sizeof(text)));
}

/* Tries to connect without waiting: to be called again until it returns true. */
static bool try_connect(struct lane *lane)
{
	int error;

	if (lane->connecting_fd < 0)
		lane->connecting_fd = tcp_begin_any(&lane->peer);
	error = lane->connecting_fd < 0 ? -lane->connecting_fd : tcp_wait(lane->connecting_fd, 0);
	lane->connect_error = error == ETIMEDOUT ? EINPROGRESS : error;
	if (error == ETIMEDOUT)
		return false;
	if (!error) {
		lane->fd = lane->connecting_fd;
		say_kind(lane);
	} else if (lane->connecting_fd >= 0) {
		tcp_close(lane->connecting_fd);
	}
	lane->connecting_fd = -1;
	return !error;
}

static bool tcp_lane_reach(struct lane *lane, int wait_ms)
{
	struct timespec nap = clock_span((uint64_t)wait_ms * 1000000);
	uint64_t start = clock_now();

	if (lane->fd >= 0)
		return true;
	if (!wait_ms)
		return try_connect(lane);
	lane->fd = tcp_connect_any(&lane->peer, wait_ms);
	lane->connect_error = lane->fd < 0 ? -lane->fd : 0;
	if (!lane->connect_error) {
		say_kind(lane);
		return true;
	}
	lane->fd = -1;
	if (clock_now() < start + (uint64_t)wait_ms * 500000)
		nanosleep(&nap, NULL); /* refused: the aggregator may start soon */
	return false;
}

static void tcp_lane_start(struct lane *lane)
{
	(void)lane;
}

static void hang_up(struct lane *lane)
{
	tcp_close(lane->fd);
	lane->fd = -1;
	lane->tail.bytes = 0;
	lane->sent_to = lane->filled_to = 0;
}

/* Hands whole frames up until the batch is full. */
static enum wire_fault hand_up(struct lane *lane)
{
	const struct tcp_rx *rx = &lane->bytes;
	struct lane_batch *batch = &lane->batch;

	while (batch->n < LANE_BATCH_PACKETS) {
		const struct wire_header *header = (const void *)(rx->data + lane->parsed_to);
		uint32_t bytes;
		enum wire_fault fault = wire_frame(header, rx->bytes - lane->parsed_to, &bytes);

		if (fault != WIRE_SOUND || !bytes)
			return fault;
		lane->parsed_to += bytes;
		if (wire_parse_frame(header, bytes) != WIRE_SOUND) {
			lane->dropped++;
			continue;
		}
		batch->packets[batch->n].header = header;
		batch->packets[batch->n].bytes = bytes;
		batch->packets[batch->n++].by_group = false;
	}
	batch->more = true;
	return WIRE_SOUND;
}

static int tcp_lane_receive(struct lane *lane)
{
	bool goes_on = lane->batch.more;
	int n = 1;

	lane->batch.n = 0;
	lane->batch.more = false;
	if (!goes_on) {
		lane->parsed_to = 0;
		n = lane->fd < 0 ? -ENOTCONN : tcp_receive(&lane->bytes, &lane->tail, lane->fd);
	}
	if (n > 0) {
		if (hand_up(lane) != WIRE_SOUND)
			n = -EPROTO; /* the start of the next frame is unknown */
		else if (!lane->batch.more)
			tcp_keep(&lane->bytes, &lane->tail, lane->parsed_to);
	}
	if (n < 0 && lane->fd >= 0)
		hang_up(lane);
	return n;
}

/* Sends what is left in the buffer. -EAGAIN: the socket did not take all of it. */
static int flush(struct lane *lane)
{
	while (lane->sent_to < lane->filled_to) {
		struct iovec vector = { lane->buffer + lane->sent_to,
			                lane->filled_to - lane->sent_to };
		int64_t sent = lane->fd < 0 ? -ENOTCONN : tcp_send(lane->fd, &vector, 1);

		if (sent < 0)
			return (int)sent;
		lane->sent_to += (uint32_t)sent;
		if ((size_t)sent < vector.iov_len)
			return -EAGAIN;
	}
	lane->sent_to = lane->filled_to = 0;
	return 0;
}

static int tcp_lane_flush(struct lane *lane, struct lane_room *room)
{
	int error = flush(lane);

	*room = (struct lane_room){ .messages = error ? 0 : LANE_MESSAGES,
		                    .reports = REPORTS_MAX,
		                    .bytes = BATCH_BYTES,
		                    .mixes = true };
	return error;
}

/* The messages lie one behind the other in the buffer. */
static int tcp_lane_send(struct lane *lane, const struct lane_message *messages, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		lane->filled_to += messages[i].bytes;
	return flush(lane);
}

/* Waits for room in the socket: the aggregator always reads, so there is room soon. */
static int tcp_lane_send_one(struct lane *lane, void *packet, uint32_t bytes)
{
	uint64_t until = clock_now() + SEND_WAIT_MS * 1000000ull;
	bool queued = false;
	int error;

	for (;;) {
		struct pollfd wait = { .fd = lane->fd, .events = POLLOUT };

		error = flush(lane);
		if (!error && queued)
			return 0;
		if (!error) {
			wire_seal_frame(packet, bytes);
			memcpy(lane->buffer, packet, bytes);
			lane->filled_to = bytes;
			queued = true;
		} else if (error != -EAGAIN || clock_now() > until) {
			return error;
		} else {
			poll(&wait, 1, 10);
		}
	}
}

const struct lane_carrier lane_carrier_tcp = {
	.open = tcp_lane_open,
	.close = tcp_lane_close,
	.reach = tcp_lane_reach,
	.start = tcp_lane_start,
	.receive = tcp_lane_receive,
	.flush = tcp_lane_flush,
	.send = tcp_lane_send,
	.send_one = tcp_lane_send_one,
};
