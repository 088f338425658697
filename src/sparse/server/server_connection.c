/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/server/server_connection.h"

#include "base/clock.h"
#include "base/log.h"
#include "path/tcp.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define RECEIVE_BYTES (256u << 10)
/* A host that vanishes without a word is noticed after 5 + 3 * 3 seconds. */
#define KEEPALIVE_IDLE_S 5
#define KEEPALIVE_EVERY_S 3
#define KEEPALIVE_TIMES 3

static void keepalive_set(int fd)
{
	const int one = 1, idle = KEEPALIVE_IDLE_S, every = KEEPALIVE_EVERY_S,
		  times = KEEPALIVE_TIMES;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
}

static bool connections_grow(struct sparse_server *server)
{
	uint32_t room = server->connection_room ? 2 * server->connection_room : 16;
	struct connection **grown;

	if (server->n_connections < server->connection_room)
		return true;
	grown = realloc(server->connections, room * sizeof(struct connection *));
	if (!grown)
		return false;
	server->connections = grown;
	server->connection_room = room;
	return true;
}

bool connection_accept(struct sparse_server *server, uint64_t now)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct udp_address peer;
	struct connection *c;
	int fd = tcp_accept(server->listen_fd, &peer);

	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM) {
		/* The listener rests until the next tick. Otherwise epoll would report it at once.
		 */
		log_warn("cannot take another client: %s", strerror(-fd));
		epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, server->listen_fd, NULL);
		server->listens = false;
	}
	if (fd < 0)
		return false;
	c = calloc(1, sizeof(*c));
	if (!c || !connections_grow(server)) {
		free(c);
		close(fd);
		return false;
	}
	c->fd = fd;
	c->events = EPOLLIN;
	c->since = now;
	udp_text(&peer, c->peer, sizeof(c->peer));
	keepalive_set(fd);
	tcp_share(fd);
	event.data.ptr = c;
	server->connections[server->n_connections++] = c;
	if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		c->state = CONNECTION_DEAD;
	return true;
}

bool connection_read(struct connection *c)
{
	ssize_t n;

	if (!buffer_reserve(&c->in, RECEIVE_BYTES))
		return false;
	n = recv(c->fd, c->in.data + c->in.used, RECEIVE_BYTES, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->in.used += (size_t)n;
	if (c->state == CONNECTION_CLOSING)
		c->in.used = c->in.first = 0;
	return n > 0;
}

bool connection_write(struct connection *c)
{
	while (buffer_bytes(&c->out)) {
		struct iovec vector = { buffer_front(&c->out), buffer_bytes(&c->out) };
		int64_t sent = tcp_send(c->fd, &vector, 1);

		if (sent < 0)
			return false;
		if (!sent)
			return true;
		buffer_consume(&c->out, (size_t)sent);
	}
	/* What the client still sends is read and dropped: closing now could cost it our answer. */
	if (c->state == CONNECTION_CLOSING && !c->is_shut && !c->waits_for_bye) {
		shutdown(c->fd, SHUT_WR);
		c->is_shut = true;
	}
	return true;
}

void connection_poll(struct sparse_server *server, struct connection *c, bool may_read)
{
	struct epoll_event event = { .data.ptr = c };

	if (may_read && buffer_bytes(&c->out) < OUTPUT_MAX)
		event.events |= EPOLLIN;
	if (buffer_bytes(&c->out))
		event.events |= EPOLLOUT;
	if (event.events == c->events)
		return;
	if (epoll_ctl(server->epoll_fd, EPOLL_CTL_MOD, c->fd, &event))
		c->state = CONNECTION_DEAD;
	c->events = event.events;
}

void connection_drop(struct connection *c)
{
	log_warn("no memory for a message to %s", c->peer);
	c->state = CONNECTION_DEAD;
}

void connection_end(struct connection *c)
{
	c->state = CONNECTION_CLOSING;
	c->closed_at = clock_now();
}

void connection_refuse(struct connection *c, unsigned flags, const char *sentence)
{
	log_line(flags & MESSAGE_FOR_NOW ? LOG_INFO : LOG_NOTICE, "%s is refused: %s", c->peer,
	         sentence);
	if (c->state == CONNECTION_DEAD)
		return;
	connection_end(c);
	if (!message_add_text(&c->out, MESSAGE_REFUSED, flags, sentence))
		connection_drop(c);
}

void connections_sweep(struct sparse_server *server)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < server->n_connections; i++) {
		struct connection *c = server->connections[i];

		if (c->state != CONNECTION_DEAD) {
			server->connections[n++] = c;
			continue;
		}
		close(c->fd);
		buffer_free(&c->in);
		buffer_free(&c->out);
		free(c);
	}
	server->n_connections = n;
}
