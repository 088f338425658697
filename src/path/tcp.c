/* SPDX-License-Identifier: Apache-2.0 */
#include "path/tcp.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 1024

/* Set once, before the first connection. */
static const struct tcp_other *others;

void tcp_use(const struct tcp_other *other)
{
	others = other;
}

bool tcp_has_other(void)
{
	return others;
}

bool tcp_is_other(int fd)
{
	return others && others->is(fd);
}

int tcp_listen_other(const struct udp_address *address)
{
	int fd = others ? others->listen(address) : -1;

	return fd < 0 ? -1 : fd;
}

void tcp_close(int fd)
{
	if (tcp_is_other(fd))
		others->close(fd);
	else
		close(fd);
}

bool tcp_rx_init(struct tcp_rx *rx)
{
	rx->bytes = 0;
	rx->data = aligned_alloc(64, (TCP_TAIL_MAX + TCP_RECEIVE_BYTES + 63) & ~63u);
	return rx->data != NULL;
}

void tcp_rx_free(struct tcp_rx *rx)
{
	free(rx->data);
	rx->data = NULL;
}

static ssize_t receive_some(int fd, void *memory)
{
	ssize_t n;

	if (tcp_is_other(fd))
		return others->receive(fd, memory, TCP_RECEIVE_BYTES);
	do
		n = recv(fd, memory, TCP_RECEIVE_BYTES, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	return n ? n : -EPIPE;
}

int tcp_receive(struct tcp_rx *rx, const struct tcp_tail *tail, int fd)
{
	ssize_t n;

	n = receive_some(fd, rx->data + tail->bytes);
	if (n <= 0)
		return (int)n;
	memcpy(rx->data, tail->data, tail->bytes);
	rx->bytes = tail->bytes + (uint32_t)n;
	return (int)n;
}

void tcp_keep(const struct tcp_rx *rx, struct tcp_tail *tail, uint32_t at)
{
	tail->bytes = rx->bytes - at;
	memcpy(tail->data, rx->data + at, tail->bytes);
}

int64_t tcp_send(int fd, struct iovec *vectors, unsigned n)
{
	struct msghdr message = { .msg_iov = vectors, .msg_iovlen = n };
	ssize_t sent;

	if (tcp_is_other(fd))
		return others->send(fd, vectors, n);
	do
		sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return errno == EAGAIN || errno == ENOBUFS ? 0 : -errno;
	return sent;
}

void tcp_share(int fd)
{
	char name[16] = "";
	socklen_t length = sizeof(name) - 1;

	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) ||
	    strncmp(name, "bbr", 3) != 0)
		return;
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5))
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

/* No delay: chunks are large, and small packets are urgent. The kernel sizes the buffers. */
static void set_common(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

trib_status tcp_listen(const struct udp_address *address, int *fd)
{
	int one = 1,
	    s = socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	char text[64];

	if (s < 0)
		return status_fail_errno("cannot open a TCP socket");
	/* Old connections of an ended process must not block its port. */
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, (const void *)&address->storage, address->length) || listen(s, BACKLOG)) {
		trib_status status = status_fail_errno("cannot listen on %s by TCP",
		                                       udp_text(address, text, sizeof(text)));
		close(s);
		return status;
	}
	*fd = s;
	return TRIB_OK;
}

int tcp_accept(int fd, struct udp_address *peer)
{
	int s;

	memset(peer, 0, sizeof(*peer));
	peer->length = sizeof(peer->storage);
	if (tcp_is_other(fd))
		return others->accept(fd, peer);
	s = accept4(fd, (void *)&peer->storage, &peer->length, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (s < 0)
		return -errno;
	set_common(s);
	return s;
}

int tcp_wait(int fd, int wait_ms)
{
	struct pollfd wait = { .fd = fd, .events = POLLOUT };
	socklen_t length = sizeof(int);
	int error = 0;

	if (tcp_is_other(fd))
		return others->wait(fd, wait_ms);
	if (poll(&wait, 1, wait_ms) <= 0)
		return ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length))
		return errno;
	return error;
}

/* Any port of this address. */
static int bind_host(int fd, const struct udp_address *from)
{
	struct udp_address own = *from;
	int one = 1;

	udp_set_port(&own, 0);
	/* The port may be one that other connections of this host have, to other peers. */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	return bind(fd, (const void *)&own.storage, own.length);
}

int tcp_begin(const struct udp_address *peer)
{
	return tcp_begin_from(NULL, peer, 0);
}

int tcp_begin_from(const struct udp_address *from, const struct udp_address *peer, unsigned most)
{
	int one = 1, error,
	    s = socket(peer->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (s < 0)
		return -errno;
	set_common(s);
	/* A tribd on this host may later listen on the port that this connection gets. */
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (most)
		setsockopt(s, IPPROTO_TCP, TCP_MAXSEG, &most, sizeof(most));
	if (from && bind_host(s, from)) {
		error = errno;
		close(s);
		return -error;
	}
	if (!connect(s, (const void *)&peer->storage, peer->length) || errno == EINPROGRESS)
		return s;
	error = errno;
	close(s);
	return -error;
}

int tcp_begin_any(const struct udp_address *peer)
{
	int s = others ? others->begin(peer) : -1;

	return s < 0 ? tcp_begin(peer) : s;
}

static int connected(int s, int wait_ms)
{
	int error;

	if (s < 0)
		return s;
	error = tcp_wait(s, wait_ms);
	if (!error)
		return s;
	tcp_close(s);
	return -error;
}

int tcp_connect(const struct udp_address *peer, int wait_ms)
{
	return connected(tcp_begin(peer), wait_ms);
}

int tcp_connect_any(const struct udp_address *peer, int wait_ms)
{
	return connected(tcp_begin_any(peer), wait_ms);
}

int tcp_talk(int fd, void *memory, size_t bytes, bool out, uint64_t deadline)
{
	uint8_t *at = memory;

	while (bytes) {
		struct pollfd wait = { .fd = fd, .events = out ? POLLOUT : POLLIN };
		ssize_t n = out ? send(fd, at, bytes, MSG_NOSIGNAL) : recv(fd, at, bytes, 0);
		uint64_t now = clock_now();

		if (n > 0) {
			at += n;
			bytes -= (size_t)n;
		} else if (n == 0) {
			return ECONNRESET;
		} else if (errno != EAGAIN && errno != EINTR) {
			return errno;
		} else if (now >= deadline) {
			return ETIMEDOUT;
		} else {
			poll(&wait, 1, (int)((deadline - now) / 1000000) + 1);
		}
	}
	return 0;
}
