/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane/tcp: the carrier with one connection per child and lane (XAgg's
 * "TCP-Agg"). It owns connections: which senders may have one, bytes in, bytes
 * out. What packets mean is for plane/loop and the rooms below it.
 *
 * Results leave from the pool, for each child at its own speed. lane->queue holds
 * them in the order in which they were completed; lane->heads[] is how far each
 * child is. A child does not acknowledge a result before it has all of it, so the
 * cell is not reused: what leaves in parts does not change.
 */
#ifndef TRIB_PLANE_TCP_CONNECTIONS_H
#define TRIB_PLANE_TCP_CONNECTIONS_H

#include "path/tcp.h"
#include "plane/lane/agg_lane.h"
#include "wire/frame.h"

#include <sys/epoll.h>

#define EVENTS_MAX 64
#define CONNECTIONS_MAX 4096u /* per thread */
#define CONNECTION_CLOSED "its connection is closed, so its process has ended"
#define CONNECTION_BAD "it has sent bytes that are no packet of its job"
#define SMALL_BYTES 16384u /* per connection, for packets that are not results */

extern const struct carrier carrier_tcp;

struct connection {
	uint64_t link; /* unique number; modulo CONNECTIONS_MAX it is the place in the table */
	int fd;
	struct udp_address peer;
	bool proven;       /* it has shown a cookie */
	bool upward;       /* opened by us, to a parent */
	uint64_t heard_at; /* time of the last accepted packet, or of opening */
	bool blocked;      /* its socket is full: epoll waits for EPOLLOUT */
	/* The child whose results it carries, and how much of the first result has left: */
	unsigned comm; /* 0: none */
	unsigned child;
	uint32_t under_way;
	/* Small packets, which leave between results: */
	uint32_t small_at, small_end;
	bool dirty;
	struct connection *next_dirty;
	/*
	 * To a parent: sums and reports in order. The first packet is a report, which
	 * shows our cookie:
	 */
	bool introduced;
	uint8_t *out;
	uint32_t out_at, out_end;
	struct tcp_tail tail;
	uint8_t small[SMALL_BYTES];
};

struct connections {
	int epoll, listener;
	int other_listener; /* for connections of another kind (path/tcp.h); -1: none */
	bool deaf;          /* out of descriptors: the listener is ignored until the next tick */
	uint64_t serial;
	unsigned n, unproven;
	struct tcp_rx rx;
	struct epoll_event events[EVENTS_MAX];
	struct connection *dirty; /* connections that have, or may have, something to send */
	struct connection *table[CONNECTIONS_MAX];
};

/* NULL: it is closed. */
struct connection *connection_find(const struct thread *thread, uint64_t link);
/* Accepts all waiting connections. */
void connections_accept(struct thread *thread);
/* `why`: the child at the other end is lost for this reason. NULL: no child is lost. */
void connection_close(struct thread *thread, struct connection *connection, const char *why);
/* Closes connections that have been silent for too long. */
void connections_tick(struct thread *thread);
/* Tells epoll what to wait for. */
void connection_watch(struct thread *thread, struct connection *connection, bool blocked);

/* upward.c: connections to parents. */
bool upward_reach(struct thread *thread, struct udp_address *parent);
bool upward_send_sums(struct thread *thread, struct agg_lane *lane);
/* Seals and queues a packet behind the sums. False: no room. */
bool upward_add(struct connection *connection, const void *packet, uint32_t bytes);
/* Sends what its socket takes; may close it. */
void upward_flush(struct thread *thread, struct connection *connection);

/* NULL: no memory or no room; the descriptor is closed. */
struct connection *connection_new(struct thread *thread, int fd, const struct udp_address *peer);

/* The connection has, or may have, something to send. */
void connection_mark(struct thread *thread, struct connection *connection);

/* send.c */
/* Seals and queues a packet that is not a result. False: no room. */
bool connection_add(struct connection *connection, const void *packet, uint32_t bytes);
/* The child leaves: copies the rest of the result that is leaving. False: no room. */
bool connection_detach(struct thread *thread, struct connection *connection);
/* Sends what its socket takes; may close it. */
void connection_flush(struct thread *thread, struct connection *connection);
void connections_flush(struct thread *thread);

#endif
