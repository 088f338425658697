/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that shows no cookie costs one of few places, for a short time. */
#include "plane/tcp/connections.h"

#include "base/clock.h"
#include "base/log.h"
#include "plane/membership/liveness.h"
#include "plane/membership/parent_session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNPROVEN_MAX 256u
#define CONNECTION_SILENT_NS (5 * NSEC_PER_SEC)

_Static_assert(TCP_TAIL_MAX >= WIRE_FRAME_MAX, "a frame's start has to fit");
_Static_assert(SMALL_BYTES >= WIRE_FRAME_MAX + 4096, "a result's rest has to fit");

static unsigned place_of(uint64_t link)
{
	return (unsigned)(link % CONNECTIONS_MAX);
}

struct connection *connection_find(const struct thread *thread, uint64_t link)
{
	struct connection *connection = thread->streams->table[place_of(link)];

	return link && connection && connection->link == link ? connection : NULL;
}

/* The lane that has a child at this connection, or NULL; gives the child. */
static struct agg_lane *lane_of(const struct thread *thread, uint64_t link, unsigned *child)
{
	for (unsigned id = 1; id < thread->ids; id++) {
		struct agg_lane *lane = thread->lanes[id];

		for (*child = 0; lane && *child < lane->comm->size; ++*child)
			if (lane->known & child_bit(*child) && lane->addresses[*child].link == link)
				return lane;
	}
	return NULL;
}

void connection_close(struct thread *thread, struct connection *connection, const char *why)
{
	struct connections *streams = thread->streams;
	unsigned child;
	struct agg_lane *lane = why && connection->proven && !connection->upward
	                                ? lane_of(thread, connection->link, &child)
	                                : NULL;

	if (why && connection->upward)
		parent_hung_up(thread, connection->link);
	if (lane && !(lane->comm->gone & child_bit(child)) && !atomic_load(&lane->comm->failed))
		liveness_fail_child(lane, child, why, thread->now - lane->heard_at[child]);
	for (struct connection **at = &streams->dirty; *at; at = &(*at)->next_dirty) {
		if (*at == connection) {
			*at = connection->next_dirty;
			break;
		}
	}
	streams->table[place_of(connection->link)] = NULL;
	streams->n--;
	streams->unproven -= !connection->proven;
	tcp_close(connection->fd);
	free(connection->out);
	free(connection);
}

/* Closes the oldest of the connections that have shown no cookie. */
static bool close_unproven(struct thread *thread)
{
	struct connections *streams = thread->streams;
	struct connection *oldest = NULL;

	for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *one = streams->table[i];

		if (one && !one->proven && (!oldest || one->heard_at < oldest->heard_at))
			oldest = one;
	}
	if (oldest)
		connection_close(thread, oldest, NULL);
	return oldest != NULL;
}

struct connection *connection_new(struct thread *thread, int fd, const struct udp_address *peer)
{
	struct connections *streams = thread->streams;
	struct connection *connection =
		streams->n < CONNECTIONS_MAX ? calloc(1, sizeof(*connection)) : NULL;
	struct epoll_event event = { .events = EPOLLIN };

	if (!connection) {
		tcp_close(fd);
		return NULL;
	}
	do /* ends: the table has a free place */
		connection->link = ++streams->serial;
	while (streams->table[place_of(connection->link)]);
	connection->fd = fd;
	connection->peer = *peer;
	connection->peer.link = connection->link;
	connection->heard_at = thread->now;
	event.data.u64 = connection->link;
	if (epoll_ctl(streams->epoll, EPOLL_CTL_ADD, fd, &event)) {
		tcp_close(fd);
		free(connection);
		return NULL;
	}
	streams->table[place_of(connection->link)] = connection;
	streams->n++;
	streams->unproven++;
	return connection;
}

static void listen_again(struct connections *streams, bool listens)
{
	struct epoll_event event = { .events = listens ? EPOLLIN : 0 };

	streams->deaf = !listens;
	epoll_ctl(streams->epoll, EPOLL_CTL_MOD, streams->listener, &event);
}

static void accept_from(struct thread *thread, int listener)
{
	struct connections *streams = thread->streams;
	struct udp_address peer;

	for (unsigned i = 0; i < UNPROVEN_MAX; i++) {
		int fd = tcp_accept(listener, &peer);

		if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS) {
			if (close_unproven(thread))
				continue;
			log_warn("cannot accept connections: %s", strerror(-fd));
			listen_again(streams, false);
			return;
		}
		if (fd < 0)
			return;
		if ((streams->unproven >= UNPROVEN_MAX || streams->n == CONNECTIONS_MAX) &&
		    !close_unproven(thread))
			tcp_close(fd);
		else
			connection_new(thread, fd, &peer);
	}
}

void connections_accept(struct thread *thread)
{
	accept_from(thread, thread->streams->listener);
	if (thread->streams->other_listener >= 0)
		accept_from(thread, thread->streams->other_listener);
}

/* Does a lane, or a communicator that asks, still use this connection to a parent? */
static bool has_owner(const struct thread *thread, uint64_t link)
{
	for (unsigned id = 1; id < thread->ids; id++)
		if (thread->lanes[id] && thread->lanes[id]->comm->has_parent &&
		    thread->lanes[id]->parent.link == link)
			return true;
	for (unsigned id = 1; thread->index == 0 && id < COMMS_MAX; id++) {
		const struct comm *comm = thread->aggregator->comms[id];

		if (comm && comm->parent.asking && comm->parent.address.link == link)
			return true;
	}
	return false;
}

void connections_tick(struct thread *thread)
{
	struct connections *streams = thread->streams;
	unsigned child;

	if (streams->deaf)
		listen_again(streams, true);
	for (unsigned i = 0, left = streams->n; left && i < CONNECTIONS_MAX; i++) {
		struct connection *one = streams->table[i];

		left -= one != NULL;
		/* membership/liveness.c decides how long a child may be silent. */
		if (one && thread->now > one->heard_at + CONNECTION_SILENT_NS &&
		    !(one->upward ? has_owner(thread, one->link)
		                  : lane_of(thread, one->link, &child) != NULL))
			connection_close(thread, one, NULL);
	}
}

void connection_watch(struct thread *thread, struct connection *connection, bool blocked)
{
	struct epoll_event event = { .events = EPOLLIN | (blocked ? EPOLLOUT : 0),
		                     .data.u64 = connection->link };

	if (connection->blocked == blocked)
		return;
	connection->blocked = blocked;
	epoll_ctl(thread->streams->epoll, EPOLL_CTL_MOD, connection->fd, &event);
}

void connection_mark(struct thread *thread, struct connection *connection)
{
	if (connection->dirty || connection->blocked)
		return;
	connection->dirty = true;
	connection->next_dirty = thread->streams->dirty;
	thread->streams->dirty = connection;
}
