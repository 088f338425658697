/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds what its children send, and sends each part of the sum on as soon as all
 * children have sent theirs. So a fast child may be a whole vector ahead of a slow
 * one, and nobody waits for the end of a vector.
 *
 * At the root, a part that is complete goes down to all children. At other servers
 * it goes up, and the result replaces it and goes down.
 */
#include "ps_server.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 60
#define SEGMENT (256u << 10) /* bytes received at once, and added while they are in the cache */

/*
 * A vector in flight. Two are enough: a child that begins the next vector has the whole sum of
 * this one, so all children have sent theirs.
 */
struct vector {
	size_t bytes, room;
	size_t front; /* elements below it are a sum; nothing is above yet */
	float *sum;
	unsigned begun; /* children that have begun it */
	unsigned sent;  /* children that have received all of it */
	size_t raised;  /* bytes sent to the parent, with the opening message */
	size_t lowered; /* bytes that came back from the parent */
};

struct connection {
	int fd; /* -1: closed */
	struct vector *vector;
	struct ps_opening opening;
	size_t opened;   /* bytes of it that have arrived */
	size_t received; /* whole elements of the vector that have arrived */
	size_t held;     /* bytes of an incomplete element, at the start of `segment` */
	size_t sent;
	char *segment;
};

struct server {
	int parent;            /* -1: this is the root */
	struct vector *rising; /* the vector that goes up */
	unsigned n, open;
	struct connection connections[PS_WORKERS_MAX];
	struct vector vectors[2];
};

static void socket_tune(int fd)
{
	int one = 1;

	/* Buffer sizes are left to the kernel: a fixed size would switch off its tuning. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void floats_add(float *restrict to, const float *restrict from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += from[i];
}

static int vector_begin(struct connection *c)
{
	struct vector *vector = c->vector;

	if (!vector->begun) {
		vector->bytes = c->opening.bytes;
		vector->front = vector->raised = vector->lowered = 0;
		if (vector->room < vector->bytes) {
			free(vector->sum);
			vector->sum = malloc(vector->bytes);
			vector->room = vector->bytes;
		}
		if (!vector->sum)
			err(1, "no memory for %zu bytes", vector->bytes);
	}
	if (c->opening.bytes != vector->bytes || vector->bytes % sizeof(float)) {
		warnx("ps: one child has %zu bytes and another %zu", vector->bytes,
		      (size_t)c->opening.bytes);
		return -1;
	}
	vector->begun++;
	c->received = c->held = c->sent = 0;
	return 0;
}

/* The first child stores a part, the others add to it. */
static void part_take(struct connection *c, size_t bytes)
{
	struct vector *vector = c->vector;
	size_t add = vector->front > c->received ? vector->front - c->received : 0;

	if (add > bytes)
		add = bytes;
	floats_add(vector->sum + c->received / sizeof(float), (const float *)c->segment,
	           add / sizeof(float));
	memcpy((char *)vector->sum + c->received + add, c->segment + add, bytes - add);
	c->received += bytes;
	if (c->received > vector->front)
		vector->front = c->received;
}

static bool would_block(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* 0; -1: the child is gone, or sends nonsense. */
static int connection_read(struct connection *c)
{
	size_t left, whole;
	ssize_t n;

	if (c->opened < sizeof(c->opening)) {
		n = recv(c->fd, (char *)&c->opening + c->opened, sizeof(c->opening) - c->opened, 0);
		if (n <= 0)
			return would_block(n) ? 0 : -1;
		c->opened += (size_t)n;
		return c->opened == sizeof(c->opening) ? vector_begin(c) : 0;
	}
	left = c->vector->bytes - c->received - c->held;
	if (!left)
		return 0;
	n = recv(c->fd, c->segment + c->held, left < SEGMENT - c->held ? left : SEGMENT - c->held,
	         0);
	if (n <= 0)
		return would_block(n) ? 0 : -1;
	c->held += (size_t)n;
	whole = c->held / sizeof(float) * sizeof(float);
	part_take(c, whole);
	c->held -= whole;
	memmove(c->segment, c->segment + whole, c->held);
	return 0;
}

/* How much of the vector all children have sent. */
static size_t vector_complete(const struct server *server, const struct vector *vector)
{
	size_t ready = vector->bytes;

	if (vector->begun < server->n)
		return 0;
	for (unsigned i = 0; i < server->n; i++)
		if (server->connections[i].vector == vector &&
		    server->connections[i].received < ready)
			ready = server->connections[i].received;
	return ready;
}

/* Bytes of the result that are ready to go down. */
static size_t vector_ready(const struct server *server, const struct vector *vector)
{
	return server->parent < 0 ? vector_complete(server, vector) : vector->lowered;
}

/* Sends the opening message first, then what is complete. */
static int parent_write(struct server *server)
{
	struct vector *v = server->rising;
	struct ps_opening opening = { .bytes = v->bytes };
	size_t head = sizeof(opening), complete = vector_complete(server, v);
	ssize_t n;

	if (v->raised < head)
		n = send(server->parent, (const char *)&opening + v->raised, head - v->raised,
		         MSG_NOSIGNAL | MSG_MORE);
	else
		n = send(server->parent, (const char *)v->sum + v->raised - head,
		         complete + head - v->raised, MSG_NOSIGNAL);
	if (n < 0)
		return would_block(n) ? 0 : -1;
	v->raised += (size_t)n;
	return 0;
}

/* The parent returns no more than it got, so the result may replace the sum. */
static int parent_read(struct server *server)
{
	struct vector *v = server->rising;
	ssize_t n = recv(server->parent, (char *)v->sum + v->lowered, v->bytes - v->lowered, 0);

	if (n <= 0)
		return would_block(n) ? 0 : -1;
	v->lowered += (size_t)n;
	if (v->lowered == v->bytes)
		server->rising = &server->vectors[v == &server->vectors[0]];
	return 0;
}

/* The events to wait for at the parent. */
static short parent_events(const struct server *server)
{
	const struct vector *v = server->rising;

	if (!v->begun)
		return 0;
	if (v->raised < vector_complete(server, v) + sizeof(struct ps_opening))
		return POLLIN | POLLOUT;
	return POLLIN;
}

static int connection_write(struct server *server, struct connection *c, size_t ready)
{
	ssize_t n =
		send(c->fd, (const char *)c->vector->sum + c->sent, ready - c->sent, MSG_NOSIGNAL);

	if (n < 0)
		return would_block(n) ? 0 : -1;
	c->sent += (size_t)n;
	if (c->sent < c->vector->bytes)
		return 0;
	/* The child's next vector is the other one. */
	if (++c->vector->sent == server->n)
		c->vector->sent = c->vector->begun = 0;
	c->vector = &server->vectors[c->vector == &server->vectors[0]];
	c->opened = 0;
	return 0;
}

static int parent_serve(struct server *server, short events)
{
	int rc = 0;

	if (events & POLLOUT)
		rc = parent_write(server);
	if (rc == 0 && events & (POLLIN | POLLHUP | POLLERR))
		rc = parent_read(server);
	if (rc < 0)
		warnx("ps: the parent has gone");
	return rc;
}

static int server_step(struct server *server)
{
	struct pollfd fds[PS_WORKERS_MAX + 1];
	size_t ready[2] = { vector_ready(server, &server->vectors[0]),
		            vector_ready(server, &server->vectors[1]) };

	for (unsigned i = 0; i < server->n; i++) {
		const struct connection *c = &server->connections[i];
		bool opened = c->opened == sizeof(c->opening);
		short events = !opened || c->received < c->vector->bytes ? POLLIN : 0;

		if (opened && c->sent < ready[c->vector - server->vectors])
			events |= POLLOUT;
		fds[i] = (struct pollfd){ .fd = c->fd, .events = events };
	}
	fds[server->n] = (struct pollfd){ .fd = server->parent };
	if (server->parent >= 0) {
		fds[server->n].events = parent_events(server);
		fds[server->n].fd = fds[server->n].events ? server->parent : -1;
	}
	if (poll(fds, server->n + 1, -1) < 0)
		return errno == EINTR ? 0 : -1;
	if (fds[server->n].revents && parent_serve(server, fds[server->n].revents) < 0)
		return -1;
	for (unsigned i = 0; i < server->n; i++) {
		struct connection *c = &server->connections[i];
		int rc = 0;

		if (fds[i].revents & POLLOUT)
			rc = connection_write(server, c, ready[c->vector - server->vectors]);
		if (rc == 0 && fds[i].revents & (POLLIN | POLLHUP | POLLERR))
			rc = connection_read(c);
		if (rc == 0)
			continue;
		close(c->fd);
		c->fd = -1;
		server->open--;
	}
	return 0;
}

int ps_connect(const struct sockaddr_in *to)
{
	time_t end = time(NULL) + PATIENCE_S;

	for (;;) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd >= 0 && connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0) {
			socket_tune(fd);
			return fd;
		}
		if (fd < 0 || time(NULL) >= end)
			err(1, "cannot reach %s:%d", inet_ntoa(to->sin_addr), ntohs(to->sin_port));
		close(fd);
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	}
}

static int server_accept(struct server *server, const struct sockaddr_in *self,
                         const struct sockaddr_in *parent)
{
	int one = 1, listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (listening < 0 || bind(listening, (const struct sockaddr *)self, sizeof(*self)) < 0 ||
	    listen(listening, PS_WORKERS_MAX) < 0) {
		warn("cannot listen on %s:%d", inet_ntoa(self->sin_addr), ntohs(self->sin_port));
		return -1;
	}
	printf("ps: ready on %s:%d\n", inet_ntoa(self->sin_addr), ntohs(self->sin_port));
	fflush(stdout);
	server->parent = parent ? ps_connect(parent) : -1;
	for (unsigned i = 0; i < server->n; i++) {
		struct connection *c = &server->connections[i];

		*c = (struct connection){ .fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC),
			                  .vector = &server->vectors[0],
			                  .segment = malloc(SEGMENT) };
		if (c->fd < 0 || !c->segment) {
			warn("cannot take a child's connection");
			return -1;
		}
		socket_tune(c->fd);
		server->open++;
	}
	close(listening);
	return 0;
}

int ps_serve(const struct sockaddr_in *self, const struct sockaddr_in *parent, unsigned children)
{
	static struct server server;

	server.n = children;
	server.rising = &server.vectors[0];
	if (server_accept(&server, self, parent) < 0)
		return 1;
	while (server.open)
		if (server_step(&server) < 0)
			return 1;
	return 0;
}
