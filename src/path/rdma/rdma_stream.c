/* SPDX-License-Identifier: Apache-2.0 */
#include "path/rdma/rdma_stream.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELLO "TRBSTRM1" /* what both ends say when they connect; 8 bytes */
#define RESOLVE_MS 1000
#define BACKLOG 128
#define STREAM_RETRIES 7
#define STREAMS_MAX 65536           /* descriptors */
#define CLOSE_NS (NSEC_PER_SEC / 5) /* that the last bytes have to leave */
#define REFUSED_MAX 64u             /* peers that are remembered */

/* By descriptor. */
static _Atomic(struct rdma_stream *) streams[STREAMS_MAX];

static struct rdma_stream *find(int fd)
{
	return fd >= 0 && fd < STREAMS_MAX ? atomic_load(&streams[fd]) : NULL;
}

static bool is_stream(int fd)
{
	return find(fd) != NULL;
}

static void fail(struct rdma_stream *stream, int error)
{
	if (stream->state == STREAM_FAILED)
		return;
	stream->state = STREAM_FAILED;
	stream->error = error ? error : ECONNRESET;
}

/* ---- peers that refuse RDMA: the next attempt takes TCP ---- */

static pthread_mutex_t refused_lock = PTHREAD_MUTEX_INITIALIZER;
static struct udp_address refused[REFUSED_MAX];
static unsigned n_refused;

static void note_refused(const struct udp_address *peer)
{
	pthread_mutex_lock(&refused_lock);
	if (n_refused < REFUSED_MAX)
		refused[n_refused++] = *peer;
	pthread_mutex_unlock(&refused_lock);
}

static bool forget_refused(const struct udp_address *peer)
{
	bool found = false;

	pthread_mutex_lock(&refused_lock);
	for (unsigned i = 0; i < n_refused && !found; i++) {
		found = udp_same(&refused[i], peer);
		if (found)
			refused[i] = refused[--n_refused];
	}
	pthread_mutex_unlock(&refused_lock);
	return found;
}

/* ---- connecting ---- */

static struct rdma_conn_param parameters(void)
{
	return (struct rdma_conn_param){ .private_data = HELLO,
		                         .private_data_len = sizeof(HELLO) - 1,
		                         .retry_count = STREAM_RETRIES,
		                         .rnr_retry_count = STREAM_RETRIES };
}

static bool says_hello(const struct rdma_cm_event *event)
{
	return event->param.conn.private_data_len >= sizeof(HELLO) - 1 &&
	       !memcmp(event->param.conn.private_data, HELLO, sizeof(HELLO) - 1);
}

static int handle(struct rdma_stream *stream, const struct rdma_cm_event *event)
{
	struct rdma_conn_param param = parameters();

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return cm_api.resolve_route(stream->id, RESOLVE_MS) ? errno : 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return !stream_equip(stream) || cm_api.connect(stream->id, &param) ? errno : 0;
	case RDMA_CM_EVENT_ESTABLISHED:
		stream->state = STREAM_OPEN;
		return 0;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (stream->state == STREAM_OPEN)
			stream->state = STREAM_CLOSED;
		return 0;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return 0;
	default:
		return ECONNREFUSED;
	}
}

static void take_cm_events(struct rdma_stream *stream)
{
	struct rdma_cm_event *event;
	int error;

	while (stream->state != STREAM_FAILED && cm_api.get_cm_event(stream->events, &event) == 0) {
		error = handle(stream, event);
		if (error && stream->state == STREAM_OPENING)
			note_refused(&stream->peer);
		if (error)
			fail(stream, error);
		cm_api.ack_cm_event(event);
	}
}

static int enter(struct rdma_stream *stream)
{
	if (stream->fd >= STREAMS_MAX) {
		stream_free(stream);
		return -EMFILE;
	}
	atomic_store(&streams[stream->fd], stream);
	return stream->fd;
}

static int give_up(struct rdma_stream *stream)
{
	int error = errno ? errno : EIO;

	if (stream)
		stream_free(stream);
	return -error;
}

static int stream_begin(const struct udp_address *peer)
{
	struct udp_address to = *peer;
	struct rdma_stream *stream;

	if (forget_refused(peer))
		return -ECONNREFUSED;
	stream = stream_new();
	if (!stream || cm_api.create_id(stream->events, &stream->id, NULL, RDMA_PS_TCP) ||
	    cm_api.resolve_addr(stream->id, NULL, (struct sockaddr *)&to.storage, RESOLVE_MS))
		return give_up(stream);
	stream->peer = *peer;
	return enter(stream);
}

static int stream_listen(const struct udp_address *address)
{
	struct udp_address at = *address;
	struct rdma_stream *stream = stream_new();
	char text[64];

	if (stream && !cm_api.create_id(stream->events, &stream->id, NULL, RDMA_PS_TCP) &&
	    !cm_api.bind_addr(stream->id, (struct sockaddr *)&at.storage) &&
	    !cm_api.listen(stream->id, BACKLOG)) {
		stream->listens = true;
		return enter(stream);
	}
	log_notice("no RDMA, so connections are by TCP: cannot listen on %s: %s",
	           udp_text(address, text, sizeof(text)), strerror(errno));
	return give_up(stream);
}

/* The new connection has its own events. */
static int accept_one(struct rdma_cm_id *id, struct udp_address *peer)
{
	struct rdma_conn_param param = parameters();
	struct rdma_stream *stream = stream_new();
	const struct sockaddr *from = rdma_get_peer_addr(id);

	if (!stream || cm_api.migrate_id(id, stream->events)) {
		cm_api.destroy_id(id);
		return give_up(stream);
	}
	stream->id = id;
	peer->length = from->sa_family == AF_INET ? sizeof(struct sockaddr_in)
	                                          : sizeof(struct sockaddr_in6);
	memcpy(&peer->storage, from, peer->length);
	stream->peer = *peer;
	if (!stream_equip(stream) || cm_api.accept(id, &param))
		return give_up(stream);
	return enter(stream);
}

static int stream_accept(int fd, struct udp_address *peer)
{
	struct rdma_cm_event *event;

	while (cm_api.get_cm_event(find(fd)->events, &event) == 0) {
		struct rdma_cm_id *id = event->id;
		bool asks = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
		bool ours = asks && says_hello(event);

		cm_api.ack_cm_event(event);
		if (ours)
			return accept_one(id, peer);
		if (asks) {
			cm_api.reject(id, NULL, 0);
			cm_api.destroy_id(id);
		}
	}
	return -EAGAIN;
}

/* ---- bytes ---- */

static void take_completion(struct rdma_stream *stream, const struct ibv_wc *wc)
{
	unsigned place = (unsigned)(wc->wr_id % STREAM_BUFFERS);

	stream->posted--;
	if (wc->status != IBV_WC_SUCCESS) {
		/* After a goodbye, requests come back with errors. */
		if (stream->state == STREAM_OPEN && wc->status != IBV_WC_WR_FLUSH_ERR)
			fail(stream, ECONNRESET);
	} else if (wc->wr_id & STREAM_ID_RECEIVE) {
		unsigned at = (stream->first + stream->n_came++) % STREAM_BUFFERS;

		stream->came[at] = (uint8_t)place;
		stream->bytes[at] = wc->byte_len;
	} else {
		stream->free_sends |= 1u << place;
	}
}

static void poll_completions(struct rdma_stream *stream)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(stream->cq, 1, &wc) > 0)
		take_completion(stream, &wc);
}

/* Takes all that has happened. */
static void progress(struct rdma_stream *stream)
{
	struct ibv_cq *cq;
	void *user;

	take_cm_events(stream);
	if (!stream->cq)
		return;
	while (rdma_api.get_cq_event(stream->completions, &cq, &user) == 0) {
		rdma_api.ack_cq_events(cq, 1);
		ibv_req_notify_cq(cq, 0);
	}
	poll_completions(stream);
}

static int stream_wait(int fd, int wait_ms)
{
	struct rdma_stream *stream = find(fd);
	uint64_t deadline = clock_now() + (uint64_t)wait_ms * 1000000;

	for (;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		uint64_t now;

		progress(stream);
		if (stream->state == STREAM_FAILED)
			return stream->error;
		if (stream->state != STREAM_OPENING)
			return 0;
		now = clock_now();
		if (now >= deadline)
			return ETIMEDOUT;
		poll(&wait, 1, (int)((deadline - now) / 1000000) + 1);
	}
}

/* Copies as much as one buffer takes. Returns the bytes. */
static uint32_t fill(uint8_t *buffer, const struct iovec *vectors, unsigned n, size_t skip)
{
	uint32_t filled = 0;

	for (unsigned i = 0; i < n && filled < STREAM_BUFFER_BYTES; i++) {
		size_t part = vectors[i].iov_len;

		if (skip >= part) {
			skip -= part;
			continue;
		}
		part -= skip;
		if (part > STREAM_BUFFER_BYTES - filled)
			part = STREAM_BUFFER_BYTES - filled;
		memcpy(buffer + filled, (const uint8_t *)vectors[i].iov_base + skip, part);
		filled += (uint32_t)part;
		skip = 0;
	}
	return filled;
}

static int post(struct rdma_stream *stream, unsigned place, uint32_t bytes)
{
	size_t at = (size_t)(STREAM_BUFFERS + place) * STREAM_BUFFER_BYTES;
	struct ibv_sge piece = { (uintptr_t)stream->memory + at, bytes, stream->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = place, .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND
	};
	struct ibv_send_wr *bad;
	int error = ibv_post_send(stream->id->qp, &wr, &bad);

	if (error)
		return error;
	stream->posted++;
	stream->free_sends &= ~(1u << place);
	return 0;
}

static int64_t stream_send(int fd, const struct iovec *vectors, unsigned n)
{
	struct rdma_stream *stream = find(fd);
	int64_t sent = 0;

	if (stream->state == STREAM_OPENING || !stream->free_sends)
		progress(stream);
	while (stream->state == STREAM_OPEN && stream->free_sends) {
		unsigned place = (unsigned)__builtin_ctz(stream->free_sends);
		size_t at = (size_t)(STREAM_BUFFERS + place) * STREAM_BUFFER_BYTES;
		uint32_t bytes = fill(stream->memory + at, vectors, n, (size_t)sent);
		int error = bytes ? post(stream, place, bytes) : 0;

		if (error)
			fail(stream, error);
		if (error || !bytes)
			break;
		sent += bytes;
	}
	if (stream->state == STREAM_FAILED)
		return -stream->error;
	return stream->state == STREAM_CLOSED ? -EPIPE : sent;
}

/* Hands over what fits. A buffer that is empty takes the next bytes. */
static uint32_t take_bytes(struct rdma_stream *stream, uint8_t *memory, uint32_t room)
{
	uint32_t took = 0;

	while (stream->n_came && took < room) {
		unsigned place = stream->came[stream->first];
		uint32_t left = stream->bytes[stream->first] - stream->taken;
		uint32_t part = left < room - took ? left : room - took;

		memcpy(memory + took,
		       stream->memory + (size_t)place * STREAM_BUFFER_BYTES + stream->taken, part);
		took += part;
		stream->taken += part;
		if (part < left)
			break;
		stream->taken = 0;
		stream->first = (stream->first + 1) % STREAM_BUFFERS;
		stream->n_came--;
		if (stream->state == STREAM_OPEN && !stream_receive_again(stream, place))
			fail(stream, errno);
	}
	return took;
}

static int stream_receive(int fd, void *memory, uint32_t room)
{
	struct rdma_stream *stream = find(fd);
	uint64_t one = 1;
	uint32_t took;

	(void)!read(stream->more_fd, &one, sizeof(one));
	progress(stream);
	took = take_bytes(stream, memory, room);
	if (stream->n_came) { /* the descriptor stays readable */
		one = 1;
		(void)!write(stream->more_fd, &one, sizeof(one));
	}
	if (took)
		return (int)took;
	if (stream->state == STREAM_FAILED)
		return -stream->error;
	return stream->state == STREAM_CLOSED ? -EPIPE : 0;
}

/* What was sent leaves first. Then requests come back, so that the QP can be destroyed at once. */
static void stream_close(int fd)
{
	struct rdma_stream *stream = find(fd);
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	uint64_t end = clock_now() + CLOSE_NS;
	const uint32_t all = (1u << STREAM_BUFFERS) - 1;

	while (stream->state == STREAM_OPEN && stream->free_sends != all && clock_now() < end) {
		progress(stream);
		poll(&wait, 1, 1);
	}
	if (stream->id->qp && !stream->listens) {
		cm_api.disconnect(stream->id);
		while (stream->posted && clock_now() < end)
			poll_completions(stream);
	}
	atomic_store(&streams[fd], NULL);
	stream_free(stream);
}

const struct tcp_other rdma_streams = {
	.is = is_stream,
	.listen = stream_listen,
	.accept = stream_accept,
	.begin = stream_begin,
	.wait = stream_wait,
	.send = stream_send,
	.receive = stream_receive,
	.close = stream_close,
};
