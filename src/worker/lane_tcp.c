/* SPDX-License-Identifier: Apache-2.0 */
/* A lane by a connection: what is to be sent is one piece of the buffer, and nothing is lost. */
#include "worker/comm.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/frame.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define BATCH_BYTES (128u << 10)
#define REPORTS_MAX 8
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
	if (lane->knock_fd >= 0)
		close(lane->knock_fd);
	tcp_rx_free(&lane->bytes);
}

/* Without a wait: there is a connection, or one is on its way, or will be tried anew. */
static bool knock(struct lane *lane)
{
	int error;

	if (lane->knock_fd < 0)
		lane->knock_fd = tcp_begin(&lane->peer);
	error = lane->knock_fd < 0 ? -lane->knock_fd : tcp_wait(lane->knock_fd, 0);
	lane->unreached = error == ETIMEDOUT ? EINPROGRESS : error;
	if (error == ETIMEDOUT)
		return false;
	if (!error)
		lane->fd = lane->knock_fd;
	else if (lane->knock_fd >= 0)
		close(lane->knock_fd);
	lane->knock_fd = -1;
	return !error;
}

static bool tcp_lane_reach(struct lane *lane, int wait_ms)
{
	struct timespec nap = clock_span((uint64_t)wait_ms * 1000000);
	uint64_t start = clock_now();

	if (lane->fd >= 0)
		return true;
	if (!wait_ms)
		return knock(lane);
	lane->fd = tcp_connect(&lane->peer, wait_ms);
	lane->unreached = lane->fd < 0 ? -lane->fd : 0;
	if (!lane->unreached)
		return true;
	lane->fd = -1;
	if (clock_now() < start + (uint64_t)wait_ms * 500000)
		nanosleep(&nap, NULL); /* refused: it may start soon */
	return false;
}

static void tcp_lane_start(struct lane *lane)
{
	(void)lane;
}

static void hang_up(struct lane *lane)
{
	close(lane->fd);
	lane->fd = -1;
	lane->tail.bytes = 0;
	lane->sent_to = lane->filled_to = 0;
}

static int tcp_lane_receive(struct lane *lane, lane_taker *take, void *context)
{
	struct tcp_rx *rx = &lane->bytes;
	int n = lane->fd < 0 ? -ENOTCONN : tcp_receive(rx, &lane->tail, lane->fd);
	enum wire_fault fault = WIRE_SOUND;
	uint32_t at = 0, bytes;

	if (n <= 0)
		goto ended;
	for (;; at += bytes) {
		const struct wire_header *header = (const void *)(rx->data + at);

		fault = wire_frame(header, rx->bytes - at, &bytes);
		if (fault != WIRE_SOUND || !bytes)
			break;
		if (wire_parse_frame(header, bytes) == WIRE_SOUND)
			take(lane, header, bytes, false, context);
		else
			lane->dropped++;
	}
	if (fault != WIRE_SOUND) /* it cannot be read on */
		n = -EPROTO;
	else
		tcp_keep(rx, &lane->tail, at);
ended:
	if (n < 0 && lane->fd >= 0)
		hang_up(lane);
	return n;
}

/* What is left of the buffer; -EAGAIN: not all of it. */
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

static int tcp_lane_send_some(struct lane *lane, uint64_t now, bool *sent)
{
	int error = flush(lane);
	uint32_t used = 0, bytes;

	if (error)
		return error;
	for (int i = 0; i < REPORTS_MAX; i++)
		used += lane_next_report(lane, now, lane->buffer + used);
	while (used < BATCH_BYTES && (bytes = lane_next_data(lane, now, lane->buffer + used)))
		used += bytes;
	*sent = used > 0;
	lane->filled_to = used;
	return flush(lane);
}

/* The aggregator never stops to read, so what is under way is soon gone. */
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

static void tcp_seal(void *packet, uint32_t bytes, const struct wire_unsent *unsent)
{
	(void)unsent; /* the connection shows whose it is */
	wire_seal_frame(packet, bytes);
}

const struct lane_way lane_way_tcp = {
	.open = tcp_lane_open,
	.close = tcp_lane_close,
	.reach = tcp_lane_reach,
	.start = tcp_lane_start,
	.receive = tcp_lane_receive,
	.send_one = tcp_lane_send_one,
	.send_some = tcp_lane_send_some,
	.seal = tcp_seal,
};
