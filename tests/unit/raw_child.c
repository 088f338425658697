/* SPDX-License-Identifier: Apache-2.0 */
#include "raw_child.h"

#include "path/tcp.h"
#include "wire/frame.h"
#include "wire/parse.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

void raw_child_open(struct raw_child *child, const struct cluster *cluster, uint8_t rank)
{
	struct udp_options options = { .receive_bytes = 1 << 20, .send_bytes = 1 << 20 };
	struct udp_address own, peer;
	bool gso;

	*child = (struct raw_child){ .rank = rank, .stream = getenv("TRIB_PLANE") != NULL };
	demand(udp_resolve("127.0.0.1", 0, &own) == TRIB_OK);
	demand(udp_resolve(cluster->address, UDP_DEFAULT_PORT, &peer) == TRIB_OK);
	if (child->stream)
		demand((child->fd = tcp_connect(&peer, RAW_PATIENCE_MS)) >= 0);
	else
		demand(udp_open(&own, &peer, &options, &child->fd, &gso) == TRIB_OK);
}

uint8_t raw_child_receive(const struct raw_child *child, union raw_packet *packet, int wait_ms,
                          uint32_t *length)
{
	struct pollfd wait = { .fd = child->fd, .events = POLLIN };
	size_t have = 0;
	uint32_t bytes = 0;

	while (!bytes) {
		ssize_t more;

		if (poll(&wait, 1, wait_ms) <= 0)
			return 0;
		more = recv(child->fd, (char *)packet + have, sizeof(*packet) - have, 0);
		demand(more > 0);
		have += (size_t)more;
		if (!child->stream)
			bytes = (uint32_t)have;
		else
			demand(wire_frame(packet, have, &bytes) == WIRE_SOUND);
	}
	demand((child->stream ? wire_parse_frame(packet, bytes) : wire_parse(packet, bytes)) ==
	       WIRE_SOUND);
	if (length)
		*length = bytes;
	return packet->header.type;
}

uint32_t raw_child_await(const struct raw_child *child, union raw_packet *packet, uint8_t type)
{
	uint32_t bytes = 0;
	uint8_t came;

	do
		demand((came = raw_child_receive(child, packet, RAW_PATIENCE_MS, &bytes)));
	while (came == WIRE_WELCOME || came == WIRE_STATUS);
	demand(came == type);
	return bytes;
}

uint32_t raw_child_join(struct raw_child *child, uint32_t size, uint8_t engine, uint8_t hops)
{
	const uint32_t bytes = WIRE_JOIN_LEAST;
	const struct wire_join join = { .key = 1,
		                        .size = size,
		                        .rank = child->rank,
		                        .payload = 1024,
		                        .lanes = 1,
		                        .pool_bytes = 1 << 16,
		                        .timeout_ms = 20000,
		                        .engine = engine,
		                        .hops = hops,
		                        .host = "raw",
		                        .up = { { .ranks = 7, .port = 7700, .family = 4 } } };
	union raw_packet packet = { .control = { .type = WIRE_JOIN,
		                                 .cookie = CLUSTER_COOKIE,
		                                 .job = RAW_JOB,
		                                 .child = child->rank,
		                                 .token = child->token } };

	memcpy(&packet.control + 1, &join, sizeof(join));
	if (child->stream)
		wire_seal_frame(&packet, bytes);
	else
		wire_seal(&packet, bytes);
	demand(send(child->fd, &packet, bytes, 0) == (ssize_t)bytes);
	if (raw_child_receive(child, &packet, 50, NULL) != WIRE_WELCOME)
		return WIRE_WAIT;
	child->token = packet.control.token;
	memcpy(&child->welcome, &packet.control + 1, sizeof(child->welcome));
	return child->welcome.verdict;
}

void raw_children_join(struct raw_child *children, const struct cluster *cluster, uint32_t size,
                       uint8_t engine)
{
	unsigned joined = 0;

	for (unsigned i = 0; i < size; i++)
		raw_child_open(&children[i], cluster, (uint8_t)i);
	for (unsigned i = 0; joined != (1u << size) - 1; i = (i + 1) % size)
		if (!(joined >> i & 1) &&
		    raw_child_join(&children[i], size, engine, 0) == WIRE_JOINED &&
		    children[i].welcome.cookie)
			joined |= 1u << i;
}

struct wire_unsent raw_child_unsent(const struct raw_child *child, uint64_t position)
{
	return (struct wire_unsent){ .proof = wire_proof(child->welcome.cookie, RAW_JOB,
		                                         child->welcome.epoch),
		                     .pos = wire_pos(0, position) };
}

void raw_child_send(const struct raw_child *child, union raw_packet *packet, uint32_t bytes,
                    uint64_t position)
{
	const struct wire_unsent unsent = raw_child_unsent(child, position);

	packet->header.comm = child->welcome.comm;
	packet->header.child = child->rank;
	wire_seal_fragment(packet, bytes, &unsent);
	demand(send(child->fd, packet, bytes, 0) == (ssize_t)bytes);
}
