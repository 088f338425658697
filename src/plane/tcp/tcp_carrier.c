/* SPDX-License-Identifier: Apache-2.0 */
/* The carrier's table. Queries, and the controller's fences of turns, come as datagrams. */
#include "path/rdma/rdma.h"
#include "plane/common/datagrams.h"
#include "plane/lane/lane_handover.h"
#include "plane/loop/packet_dispatch.h"
#include "plane/tcp/connections.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define LISTENER 0 /* links are above 0 */
#define DATAGRAMS UINT64_MAX
#define WAKE (UINT64_MAX - 1)

/* Each connection is a descriptor: raises the limit as far as the system permits. */
static void raise_limit(void)
{
	const rlim_t wanted = THREADS_MAX * CONNECTIONS_MAX + 1024;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static bool watch(int epoll, int fd, uint64_t name)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = name };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static trib_status streams_open(struct thread *thread, const struct udp_address *listen)
{
	struct connections *streams = calloc(1, sizeof(*streams));
	struct udp_address address = *listen;
	trib_status status;

	if (!streams)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for connections");
	thread->streams = streams;
	streams->listener = streams->other_listener = -1;
	streams->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!tcp_rx_init(&streams->rx))
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for connections");
	if (streams->epoll < 0)
		return status_fail_errno("cannot open an epoll descriptor");
	if (thread->index == 0) {
		thread->aggregator->options.multicast = false;
		raise_limit();
		rdma_streams_start();
		status = datagrams_open(thread, listen);
		if (status != TRIB_OK)
			return status;
		udp_set_port(&address, thread->aggregator->port);
	}
	status = tcp_listen(&address, &streams->listener);
	if (status != TRIB_OK)
		return status;
	streams->other_listener = tcp_listen_other(&address);
	if (streams->other_listener >= 0 &&
	    !watch(streams->epoll, streams->other_listener, LISTENER))
		return status_fail_errno("cannot wait for connections");
	if (!watch(streams->epoll, streams->listener, LISTENER) ||
	    !watch(streams->epoll, thread->wake_fd, WAKE) ||
	    (thread->index == 0 && !watch(streams->epoll, thread->fd, DATAGRAMS)))
		return status_fail_errno("cannot wait for connections");
	return TRIB_OK;
}

static void streams_close(struct thread *thread)
{
	struct connections *streams = thread->streams;

	datagrams_close(thread);
	if (!streams)
		return;
	for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
		if (streams->table[i])
			connection_close(thread, streams->table[i], NULL);
	if (streams->other_listener >= 0)
		tcp_close(streams->other_listener);
	if (streams->listener >= 0)
		close(streams->listener);
	if (streams->epoll >= 0)
		close(streams->epoll);
	tcp_rx_free(&streams->rx);
	free(streams);
}

/* Queries and fences. A worker of the udp plane is told that it needs tcp. */
static void take_datagrams(struct thread *thread)
{
	int n = udp_receive(thread->rx, thread->fd);

	for (int i = 0; i < n; i++) {
		const struct udp_message *message = udp_message(thread->rx, i);
		const struct wire_header *header = (const void *)message->data;
		enum wire_fault fault = wire_parse(message->data, message->bytes);

		if (fault == WIRE_SOUND && header->type != WIRE_QUERY &&
		    header->type != WIRE_JOIN && header->type != WIRE_TURN)
			thread->counters.drops[DROP_UNEXPECTED]++;
		else
			packet_take(thread, header, message->bytes, fault, &message->from);
	}
}

/* False: the connection is to be closed. */
static bool take_frame(struct thread *thread, struct connection *connection,
                       const struct wire_header *header, uint32_t bytes)
{
	struct agg_lane *lane;

	/* The cells of a child that leaves may be reused from now on. */
	if (header->type == WIRE_BYE && !connection_detach(thread, connection))
		return false;
	if (!packet_take(thread, header, bytes, wire_parse_frame(header, bytes), &connection->peer))
		return connection->upward; /* a parent may speak to a lane that is over here */
	if (!connection->proven) {
		connection->proven = true;
		thread->streams->unproven--;
	}
	connection->heard_at = thread->now;
	if (header->type != WIRE_REPORT || connection->comm)
		return true;
	/* A child that reports has joined and is ready for results. */
	lane = thread->lanes[header->comm];
	if (lane->addresses[header->child].link == connection->link) {
		connection->comm = header->comm;
		connection->child = header->child;
		connection_mark(thread, connection);
	}
	return true;
}

/* Closes a connection after what it is still to be told, for example why it was refused. */
static void turn_away(struct thread *thread, uint64_t link)
{
	struct connection *connection = connection_find(thread, link);

	if (connection)
		connection_flush(thread, connection);
	connection = connection_find(thread, link); /* the flush may have closed it */
	if (connection)
		connection_close(thread, connection, CONNECTION_BAD);
}

static void take_bytes(struct thread *thread, uint64_t link)
{
	struct connection *connection = connection_find(thread, link);
	struct tcp_rx *rx = &thread->streams->rx;
	int n = connection ? tcp_receive(rx, &connection->tail, connection->fd) : 0;
	enum wire_fault fault = WIRE_SOUND;
	uint32_t at = 0, bytes;

	if (n < 0)
		connection_close(thread, connection, CONNECTION_CLOSED);
	if (n <= 0)
		return;
	lane_handover_read(thread); /* the packets may be for a lane that has just been made */
	connection = connection_find(thread, link);
	if (!connection)
		return;
	for (;; at += bytes) {
		fault = wire_frame(rx->data + at, rx->bytes - at, &bytes);
		if (fault != WIRE_SOUND || !bytes)
			break;
		if (!take_frame(thread, connection, (const void *)(rx->data + at), bytes)) {
			turn_away(thread, link);
			return;
		}
	}
	if (fault != WIRE_SOUND) {
		packet_take(thread, (const void *)(rx->data + at), 0, fault, &connection->peer);
		connection_close(thread, connection, CONNECTION_BAD);
		return;
	}
	tcp_keep(rx, &connection->tail, at);
}

static int fetch(struct thread *thread)
{
	bool sleeps = !thread->aggregator->options.socket.busy_poll;

	return epoll_wait(thread->streams->epoll, thread->streams->events, EVENTS_MAX,
	                  sleeps ? thread_patience(thread) : 0);
}

static void take(struct thread *thread, int n)
{
	for (int i = 0; i < n; i++) {
		const struct epoll_event *event = &thread->streams->events[i];
		struct connection *connection;

		if (event->data.u64 == LISTENER) {
			connections_accept(thread);
			continue;
		}
		if (event->data.u64 == DATAGRAMS) {
			take_datagrams(thread);
			continue;
		}
		if (event->data.u64 == WAKE) {
			thread_awake(thread);
			continue;
		}
		connection = connection_find(thread, event->data.u64);
		if (connection && event->events & EPOLLOUT)
			connection_flush(thread, connection);
		if (event->events & ~(uint32_t)EPOLLOUT)
			take_bytes(thread, event->data.u64);
		/* Connections of another kind say so when they have room, too. */
		connection = connection_find(thread, event->data.u64);
		if (connection && connection->blocked && tcp_is_other(connection->fd))
			connection_flush(thread, connection);
	}
}

static void no_sleep(struct thread *thread)
{
	(void)thread; /* fetch() has slept */
}

static void send_small(struct thread *thread, const void *packet, uint32_t bytes,
                       const struct udp_address *to)
{
	struct connection *connection = connection_find(thread, to->link);

	if (!connection)
		return;
	if (connection->upward ? upward_add(connection, packet, bytes)
	                       : connection_add(connection, packet, bytes))
		connection_mark(thread, connection);
}

static void answer(struct thread *thread, void *packet, uint32_t bytes,
                   const struct udp_address *to)
{
	if (to->link)
		send_small(thread, packet, bytes, to);
	else
		datagrams_answer(thread, packet, bytes, to);
}

/* Results leave at the end of the batch, in connections_flush(). */
static bool send_results(struct thread *thread, struct agg_lane *lane)
{
	(void)thread;
	(void)lane;
	return true;
}

static void forget(struct thread *thread, struct agg_lane *lane)
{
	for (unsigned child = 0; child < lane->comm->size; child++) {
		struct connection *connection =
			connection_find(thread, lane->addresses[child].link);

		if (connection && connection->comm == lane->comm->id) {
			connection->comm = 0;
			if (connection->under_way)
				connection_close(thread, connection, NULL);
		}
	}
}

const struct carrier carrier_tcp = {
	.plane = "tcp",
	.reliable = true,
	.needs_connection = "this aggregator is on the TCP plane (tribd --plane tcp): its workers "
			    "need TRIB_PLANE=tcp",
	.open = streams_open,
	.close = streams_close,
	.fetch = fetch,
	.take = take,
	.flush = connections_flush,
	.sleep = no_sleep,
	.send = send_small,
	.answer = answer,
	.reach = upward_reach,
	.send_sums = upward_send_sums,
	.send_results = send_results,
	.forget = forget,
	.tick = connections_tick,
};
