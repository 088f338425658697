/* SPDX-License-Identifier: Apache-2.0 */
/* Packets made by hand: those of outsiders, and those of an insider, a member that lies. */
#ifndef TRIB_TESTS_UNIT_HOSTILE_PACKETS_H
#define TRIB_TESTS_UNIT_HOSTILE_PACKETS_H

#include "cluster.h"
#include "wire/call.h"
#include "wire/parse.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define JOB 1

union packet {
	struct wire_header header;
	struct wire_control control;
	uint64_t words[(WIRE_PACKET_MAX + 64) / 8];
};

static inline void *body_of(union packet *packet)
{
	return wire_is_fragment(&packet->header) ? (void *)(&packet->header + 1)
	                                         : (void *)(&packet->control + 1);
}

/* A packet as a worker would send it, except for the communicator's cookie. */
static inline uint32_t make(union packet *packet, uint8_t type, uint32_t payload)
{
	memset(packet, 0, WIRE_CONTROL + payload);
	packet->header.type = type;
	packet->header.comm = 1;
	if (wire_is_fragment(&packet->header)) {
		packet->header.from = packet->header.to = WIRE_ALL;
		return WIRE_HEADER + payload;
	}
	packet->control.cookie = CLUSTER_COOKIE;
	packet->control.job = JOB;
	packet->control.epoch = 1;
	return WIRE_CONTROL + payload;
}

/* Sealed with what an outsider knows. */
static inline uint32_t sealed(union packet *packet, uint32_t bytes)
{
	const struct wire_unsent unsent = { .proof = wire_proof(CLUSTER_COOKIE, JOB, 1),
		                            .pos = packet->header.pos };

	if (wire_is_fragment(&packet->header))
		wire_seal_fragment(packet, bytes, &unsent);
	else
		wire_seal(packet, bytes);
	return bytes;
}

static inline uint32_t make_join(union packet *packet)
{
	uint32_t bytes = make(packet, WIRE_JOIN, sizeof(struct wire_welcome));
	struct wire_join *join = body_of(packet);

	*join = (struct wire_join){ .key = 4711,
		                    .size = 2,
		                    .payload = 1024,
		                    .lanes = 1,
		                    .pool_bytes = 1 << 20,
		                    .timeout_ms = 20000,
		                    .host = "raw" };
	return bytes;
}

static inline int attacker_open(const struct cluster *cluster)
{
	struct udp_options options = { .receive_bytes = 1 << 20, .send_bytes = 1 << 20 };
	struct udp_address to;
	bool gso;
	int fd;

	demand(udp_resolve(cluster->address, 0, &to) == TRIB_OK);
	demand(udp_open(NULL, &to, &options, &fd, &gso) == TRIB_OK);
	return fd;
}

static inline void attack(int fd, const union packet *packet, uint32_t bytes)
{
	demand(send(fd, packet, bytes, 0) == (ssize_t)bytes);
}

/* ---- an insider: a hand-made rank 1 of 2, beside a rank of the library ---- */

#define WORDS 250u /* elements of a round: one fragment */
#define REPLAYS 5u

struct insider {
	int fd;
	int thief; /* another socket, from which its reports are replayed */
	struct wire_welcome welcome;
	uint32_t token; /* proves its address */
	uint64_t duplicates, finished, stale, epoch, lane, stranger, strangers_data, cookie;
	uint64_t replayed, check;
};

/* The next packet of one of two types. */
static inline uint32_t insider_receive_one(struct insider *insider, union packet *packet,
                                           uint8_t type, uint8_t other, int wait_ms)
{
	struct pollfd wait = { .fd = insider->fd, .events = POLLIN };

	while (poll(&wait, 1, wait_ms) > 0) {
		ssize_t bytes = recv(insider->fd, packet, sizeof(*packet), 0);

		demand(bytes < 0 || wire_parse(packet, (size_t)bytes) == WIRE_SOUND);
		if (bytes > 0 && (packet->header.type == type || packet->header.type == other))
			return (uint32_t)bytes;
	}
	return 0;
}

static inline uint32_t insider_receive(struct insider *insider, union packet *packet, uint8_t type,
                                       int wait_ms)
{
	return insider_receive_one(insider, packet, type, type, wait_ms);
}

static inline void insider_join(struct insider *insider, const struct cluster *cluster)
{
	union packet packet;

	insider->fd = attacker_open(cluster);
	insider->thief = attacker_open(cluster);
	do {
		uint32_t bytes = make_join(&packet);
		struct wire_join *join = body_of(&packet);

		join->key = 0;
		join->rank = 1;
		packet.header.child = 1;
		packet.control.token = insider->token;
		attack(insider->fd, &packet, sealed(&packet, bytes));
		if (insider_receive(insider, &packet, WIRE_WELCOME, 20)) {
			insider->welcome = *(struct wire_welcome *)body_of(&packet);
			insider->token = packet.control.token;
		}
	} while (insider->welcome.verdict != WIRE_JOINED || !insider->welcome.cookie);
}

static inline uint32_t insider_packet(const struct insider *insider, union packet *packet,
                                      uint8_t type, uint32_t payload, uint64_t done)
{
	uint32_t bytes = make(packet, type, payload);

	packet->header.comm = insider->welcome.comm;
	packet->header.child = 1;
	packet->header.ack = (uint32_t)done;
	if (!wire_is_fragment(&packet->header)) {
		packet->control.cookie = insider->welcome.cookie;
		packet->control.epoch = insider->welcome.epoch;
	}
	return bytes;
}

static inline struct wire_unsent insider_unsent(const struct insider *insider, uint64_t position)
{
	return (struct wire_unsent){ .proof = wire_proof(insider->welcome.cookie, JOB,
		                                         insider->welcome.epoch),
		                     .pos = wire_pos(0, position) };
}

/* The call that a round is, after `number` others of its kind. */
static inline struct wire_call insider_call(uint32_t number)
{
	struct wire_call call = {
		.kind = WIRE_CALL_ALLREDUCE, .count = WORDS, .type = TRIB_U32, .root = WIRE_ALL
	};

	for (; call.number < number; call.number++)
		call.before = wire_call_sign(&call);
	return call;
}

static inline uint32_t insider_data(const struct insider *insider, union packet *packet,
                                    uint64_t position)
{
	const struct wire_unsent unsent = insider_unsent(insider, position);
	uint32_t bytes = insider_packet(insider, packet, WIRE_DATA, WORDS * 4, position);
	uint32_t *words = body_of(packet);
	struct wire_call call = insider_call((uint32_t)position);

	packet->header.pos = (uint32_t)position;
	packet->header.op = WIRE_ADD32;
	packet->header.flags = TRIB_U32 << WIRE_TYPE_SHIFT;
	packet->header.scale = (uint16_t)wire_call_sign(&call);
	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = (uint32_t)position + i;
	wire_seal_fragment(packet, bytes, &unsent);
	return bytes;
}

#endif
