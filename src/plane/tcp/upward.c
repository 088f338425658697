/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to parents. A sum may be emptied again for a higher scale while a
 * part of it has left, so sums are copied before they leave. The buffer stays in
 * the cache, and the socket would copy them anyway.
 */
#include "plane/stream/stream_packets.h"
#include "plane/tcp/connections.h"

#include <stdlib.h>
#include <string.h>

#define OUT_BYTES (256u << 10)

bool upward_reach(struct thread *thread, struct udp_address *parent)
{
	struct connection *connection = connection_find(thread, parent->link);
	int fd;

	if (connection)
		return true;
	parent->link = 0;
	fd = tcp_begin_any(parent);
	connection = fd < 0 ? NULL : connection_new(thread, fd, parent);
	if (!connection)
		return false;
	connection->upward = true;
	connection->proven = true;
	thread->streams->unproven--;
	connection->out = malloc(OUT_BYTES);
	if (!connection->out) {
		connection_close(thread, connection, NULL);
		return false;
	}
	parent->link = connection->link;
	return true;
}

/* Room for `bytes` at the end of the buffer, or NULL. */
static uint8_t *out_room(struct connection *connection, uint32_t bytes)
{
	if (connection->out_at == connection->out_end)
		connection->out_at = connection->out_end = 0;
	if (bytes > OUT_BYTES - connection->out_end && connection->out_at >= OUT_BYTES / 2) {
		connection->out_end -= connection->out_at;
		memmove(connection->out, connection->out + connection->out_at, connection->out_end);
		connection->out_at = 0;
	}
	return bytes <= OUT_BYTES - connection->out_end ? connection->out + connection->out_end
	                                                : NULL;
}

bool upward_add(struct connection *connection, const void *packet, uint32_t bytes)
{
	uint8_t *to = out_room(connection, bytes);
	struct wire_header header;

	if (!to)
		return false;
	memcpy(&header, packet, WIRE_HEADER);
	wire_seal_frame(&header, bytes);
	memcpy(to, &header, WIRE_HEADER);
	memcpy(to + WIRE_HEADER, (const uint8_t *)packet + WIRE_HEADER, bytes - WIRE_HEADER);
	connection->out_end += bytes;
	connection->introduced |= header.type == WIRE_REPORT;
	return true;
}

bool upward_send_sums(struct thread *thread, struct agg_lane *lane)
{
	struct connection *connection = connection_find(thread, lane->parent.link);
	struct stream_packet packet;

	while (connection && connection->introduced && out_room(connection, lane->stride) &&
	       stream_pop_sum(thread, lane, &packet)) {
		upward_add(connection, packet.data, packet.bytes);
		thread->counters.raised++;
		connection_mark(thread, connection);
	}
	return connection && lane->up.head == lane->up.tail;
}

/* The lane whose sums it carries, or NULL. */
static struct agg_lane *lane_below(const struct thread *thread, const struct connection *connection)
{
	for (unsigned id = 1; id < thread->ids; id++) {
		struct agg_lane *lane = thread->lanes[id];

		if (lane && lane->comm->has_parent && lane->parent.link == connection->link)
			return lane;
	}
	return NULL;
}

void upward_flush(struct thread *thread, struct connection *connection)
{
	struct agg_lane *lane = lane_below(thread, connection);

	for (;;) {
		struct iovec vector = { connection->out + connection->out_at,
			                connection->out_end - connection->out_at };
		int64_t sent = vector.iov_len ? tcp_send(connection->fd, &vector, 1) : 0;

		if (sent < 0) {
			connection_close(thread, connection, CONNECTION_CLOSED);
			return;
		}
		connection->out_at += (uint32_t)sent;
		if ((size_t)sent < vector.iov_len) {
			connection_watch(thread, connection, true);
			return;
		}
		if (!lane || !connection->introduced || lane->up.head == lane->up.tail)
			break;
		upward_send_sums(thread, lane);
	}
	connection_watch(thread, connection, false);
}
