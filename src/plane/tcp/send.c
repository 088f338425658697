/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves a connection: the rest of a result, small packets, results; in one call. */
#include "plane/stream/stream_packets.h"
#include "plane/tcp/connections.h"

#include <string.h>

#define VECTORS 64u
#define SEND_BYTES (1u << 20) /* per call */

bool connection_add(struct connection *connection, const void *packet, uint32_t bytes)
{
	struct wire_header header;
	uint8_t *to;

	if (connection->small_at) {
		connection->small_end -= connection->small_at;
		memmove(connection->small, connection->small + connection->small_at,
		        connection->small_end);
		connection->small_at = 0;
	}
	if (bytes > SMALL_BYTES - connection->small_end)
		return false;
	/* A partly sent packet may end anywhere, so `to` need not be aligned. */
	to = connection->small + connection->small_end;
	memcpy(&header, packet, WIRE_HEADER);
	wire_seal_frame(&header, bytes);
	memcpy(to, &header, WIRE_HEADER);
	memcpy(to + WIRE_HEADER, (const uint8_t *)packet + WIRE_HEADER, bytes - WIRE_HEADER);
	connection->small_end += bytes;
	return true;
}

/* The lane whose results it carries; NULL: none, or the child has left. */
static struct agg_lane *lane_of(const struct thread *thread, const struct connection *connection)
{
	struct agg_lane *lane = connection->comm ? thread->lanes[connection->comm] : NULL;

	if (!lane || lane->addresses[connection->child].link != connection->link ||
	    lane->left & child_bit(connection->child))
		return NULL;
	return lane;
}

/* Small packets leave between results only, so none of them has begun to leave. */
bool connection_detach(struct thread *thread, struct connection *connection)
{
	struct agg_lane *lane = lane_of(thread, connection);
	struct stream_packet result;
	uint32_t rest;

	if (!connection->under_way)
		return true;
	if (!lane)
		return false;
	stream_result_at(lane, lane->heads[connection->child], connection->child, &result);
	rest = result.bytes - connection->under_way;
	if (connection->small_end + rest > SMALL_BYTES)
		return false;
	memmove(connection->small + rest, connection->small, connection->small_end);
	memcpy(connection->small, result.data + connection->under_way, rest);
	connection->small_end += rest;
	connection->under_way = 0;
	lane->heads[connection->child]++;
	return true;
}

static void spread_results(struct thread *thread, struct agg_lane *lane)
{
	stream_seal_results(thread, lane);
	for (uint64_t to = lane->known & ~lane->left; to; to &= to - 1) {
		uint64_t link = lane->addresses[__builtin_ctzll(to)].link;
		struct connection *connection = connection_find(thread, link);

		if (connection && connection->comm == lane->comm->id)
			connection_mark(thread, connection);
	}
}

struct batch {
	struct iovec vectors[VECTORS];
	unsigned n;
	uint32_t bytes;
};

static void batch_add(struct batch *batch, uint8_t *data, uint32_t bytes)
{
	struct iovec *last = batch->n ? &batch->vectors[batch->n - 1] : NULL;

	if (last && (uint8_t *)last->iov_base + last->iov_len == data)
		last->iov_len += bytes;
	else
		batch->vectors[batch->n++] = (struct iovec){ data, bytes };
	batch->bytes += bytes;
}

static void batch_fill(struct batch *batch, struct connection *connection,
                       const struct agg_lane *lane)
{
	uint64_t at = lane ? lane->heads[connection->child] : 0, end = lane ? lane->head : 0;
	struct stream_packet result;

	batch->n = batch->bytes = 0;
	if (connection->under_way && lane) {
		stream_result_at(lane, at++, connection->child, &result);
		batch_add(batch, result.data + connection->under_way,
		          result.bytes - connection->under_way);
	}
	if (connection->small_end > connection->small_at)
		batch_add(batch, connection->small + connection->small_at,
		          connection->small_end - connection->small_at);
	for (; at != end && batch->n < VECTORS && batch->bytes < SEND_BYTES; at++)
		if (stream_result_at(lane, at, connection->child, &result))
			batch_add(batch, result.data, result.bytes);
}

/* Removes what has left from the queues, in the order of batch_fill(). */
static void consume(struct thread *thread, struct connection *connection, struct agg_lane *lane,
                    uint32_t sent)
{
	uint32_t small = connection->small_end - connection->small_at;
	uint64_t *head = lane ? &lane->heads[connection->child] : NULL;
	struct stream_packet result;

	if (connection->under_way && lane) {
		uint32_t rest;

		stream_result_at(lane, *head, connection->child, &result);
		rest = result.bytes - connection->under_way;
		if (sent < rest) {
			connection->under_way += sent;
			return;
		}
		sent -= rest;
		connection->under_way = 0;
		++*head;
		thread->counters.sends++;
	}
	small = sent < small ? sent : small;
	connection->small_at += small;
	sent -= small;
	if (connection->small_at == connection->small_end)
		connection->small_at = connection->small_end = 0;
	for (; head && *head != lane->head; ++*head) {
		if (!stream_result_at(lane, *head, connection->child, &result))
			continue;
		if (sent < result.bytes)
			break;
		sent -= result.bytes;
		thread->counters.sends++;
	}
	connection->under_way = sent;
}

void connection_flush(struct thread *thread, struct connection *connection)
{
	struct agg_lane *lane = lane_of(thread, connection);
	struct batch batch;

	if (connection->upward) {
		upward_flush(thread, connection);
		return;
	}
	if (connection->under_way && !lane) {
		/* The child has left the lane, or has another connection now. */
		connection_close(thread, connection, NULL);
		return;
	}
	for (;;) {
		int64_t sent;

		batch_fill(&batch, connection, lane);
		if (!batch.bytes) {
			consume(thread, connection, lane, 0); /* skips results for other children */
			break;
		}
		sent = tcp_send(connection->fd, batch.vectors, batch.n);
		if (sent < 0) {
			connection_close(thread, connection, CONNECTION_CLOSED);
			return;
		}
		consume(thread, connection, lane, (uint32_t)sent);
		if (sent < batch.bytes) {
			connection_watch(thread, connection, true);
			return;
		}
	}
	connection_watch(thread, connection, false);
}

void connections_flush(struct thread *thread)
{
	struct connections *streams = thread->streams;

	for (unsigned id = 0; id < thread->ids; id++) {
		struct agg_lane *lane = thread->lanes[id];

		if (lane && lane->head != lane->tail)
			spread_results(thread, lane);
		if (lane && lane->up.head != lane->up.tail)
			upward_send_sums(thread, lane);
	}
	while (streams->dirty) {
		struct connection *connection = streams->dirty;

		streams->dirty = connection->next_dirty;
		connection->dirty = false;
		connection_flush(thread, connection);
	}
}
