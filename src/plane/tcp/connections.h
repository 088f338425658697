/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane/tcp: the aggregator's carrier where there is a connection a child and
 * lane (XAgg's "TCP-Agg"). It owns connections: who may have one, bytes in,
 * bytes out. What the packets mean is for plane/core.
 *
 * Results leave from the pool, each child's at its own pace: lane->queue holds
 * them in the order in which they were completed, lane->heads[] says how far
 * each child is. A result that a child has not got whole is not acknowledged
 * by it, so its cell is not used again: what leaves in parts stays as it is.
 */
#ifndef TRIB_PLANE_TCP_CONNECTIONS_H
#define TRIB_PLANE_TCP_CONNECTIONS_H

#include "path/tcp.h"
#include "plane/core/internal.h"
#include "wire/frame.h"

#include <sys/epoll.h>

#define EVENTS_MAX 64
#define CONNECTIONS_MAX 4096u /* of a thread */
#define CONNECTION_CLOSED "its connection is closed, so its process has ended"
#define CONNECTION_BAD "it has sent what is no packet of its job"
#define SMALL_BYTES 16384u /* of a connection: packets that are not results */

struct connection {
	uint64_t link; /* a number that no other has had, above its place in the table */
	int fd;
	struct udp_address peer;
	bool proven;       /* it has shown a cookie */
	bool upward;       /* to a parent, opened by us */
	uint64_t heard_at; /* when something last came that was let in, or it was opened */
	bool blocked;      /* its socket is full: it waits for EPOLLOUT */
	/* Whose results it carries, and how much of the first of them has left. */
	unsigned comm; /* 0: none */
	unsigned child;
	uint32_t under_way;
	/* Between results: small packets. */
	uint32_t small_at, small_end;
	bool dirty;
	struct connection *next_dirty;
	/* Upward: sums and reports, in their order; first a report, which shows who we are. */
	bool introduced;
	uint8_t *out;
	uint32_t out_at, out_end;
	struct tcp_tail tail;
	uint8_t small[SMALL_BYTES];
};

struct connections {
	int epoll, listener;
	bool deaf; /* no descriptors: the listener is left alone until the next tick */
	uint64_t serial;
	unsigned n, unproven;
	struct tcp_rx rx;
	struct epoll_event events[EVENTS_MAX];
	struct connection *dirty; /* that have something to send, or may */
	struct connection *table[CONNECTIONS_MAX];
};

/* NULL: it is closed. */
struct connection *connection_find(const struct thread *thread, uint64_t link);
/* Takes all who ask. */
void connections_accept(struct thread *thread);
/* The rank at its other end, if it is one, is lost; `why` NULL: that is nobody's loss. */
void connection_close(struct thread *thread, struct connection *connection, const char *why);
/* Closes those who have shown nothing for too long. */
void connections_tick(struct thread *thread);
/* Tells epoll what to wait for. */
void connection_watch(struct thread *thread, struct connection *connection, bool blocked);

/* upward.c: connections to parents. */
bool upward_reach(struct thread *thread, struct udp_address *parent);
bool upward_send_sums(struct thread *thread, struct lane *lane);
/* Queues a packet behind the sums, sealed. False: no room. */
bool upward_add(struct connection *connection, const void *packet, uint32_t bytes);
/* Sends what its socket takes; may close it. */
void upward_flush(struct thread *thread, struct connection *connection);

/* NULL: no memory, or no room; the descriptor is closed then. */
struct connection *connection_new(struct thread *thread, int fd, const struct udp_address *peer);

/* send.c */
/* It has, or may have, something to send. */
void connection_mark(struct thread *thread, struct connection *connection);
/* Queues a packet that is not a result, sealed. False: no room. */
bool connection_add(struct connection *connection, const void *packet, uint32_t bytes);
/* The child leaves: the rest of the result under way is copied. False: that cannot be. */
bool connection_detach(struct thread *thread, struct connection *connection);
/* Sends what its socket takes; may close it. */
void connection_flush(struct thread *thread, struct connection *connection);
void connections_flush(struct thread *thread);

#endif
