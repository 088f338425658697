/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child owns how a process is one child of one communicator at an aggregator: joining,
 * heartbeats, the socket, and leaving. It must not touch rows, maps, servers, or a
 * communicator of libtributary. It never waits: the caller polls `child_fd`, and calls
 * child_step() and child_receive().
 *
 * A child goes through these states:
 *
 *   JOINING -> JOINED -> LEAVING -> GONE
 *        \-------\----> FAILED
 */
#ifndef TRIB_SPARSE_CHILD_SPARSE_CHILD_H
#define TRIB_SPARSE_CHILD_SPARSE_CHILD_H

#include "path/udp.h"
#include "wire/packet.h"

enum child_state {
	CHILD_JOINING,
	CHILD_JOINED,
	CHILD_FAILED, /* child_failure() says why */
};

struct child_options {
	struct udp_address aggregator;
	uint64_t cookie; /* of the job */
	uint64_t key;    /* names the communicator within the job */
	uint64_t pool_bytes;
	uint64_t timeout_ns; /* of joining, and of the aggregator's patience with a silent child */
	uint16_t job;
	uint8_t engine;
	unsigned rank, size; /* children are numbered as ranks */
	unsigned mtu;        /* 0: that of the route */
};

struct sparse_child;

/* Begins to join. */
trib_status child_open(struct sparse_child **out, const struct child_options *options,
                       uint64_t now);
/* Frees it. If it is joined, a few BYEs leave first, and nobody waits for the echo. */
void child_close(struct sparse_child *child);

int child_fd(const struct sparse_child *child);
enum child_state child_state(const struct sparse_child *child);
/* JOINED. */
const struct wire_welcome *child_welcome(const struct sparse_child *child);
/* FAILED: its status, and the sentence. */
trib_status child_failure(const struct sparse_child *child, const char **sentence);

/* Sends what is due: JOINs and heartbeats. Gives the time when it has to be called again. */
uint64_t child_step(struct sparse_child *child, uint64_t now);

/* What child_receive() calls. */
struct child_listener {
	void *context;
	/* The 64-bit position of a RESULT: its checksum covers it. */
	uint64_t (*position)(void *context, const struct wire_header *header);
	/* A RESULT that was found intact; `bytes` counts the header. */
	void (*take)(void *context, const struct wire_header *header, uint32_t bytes, uint64_t now);
};

/* Takes what has come, a limited number of packets. True: there may be more. */
bool child_receive(struct sparse_child *child, const struct child_listener *listener, uint64_t now);

/*
 * Room for the next packet, of WIRE_PACKET_MAX bytes; NULL: call child_flush() first. The caller
 * writes the header and the payload there, but not magic, type, comm and checksum.
 */
void *child_room(struct sparse_child *child);
/* Adds that packet: `bytes` with the header, at this 64-bit position. It leaves with a flush. */
void child_add(struct sparse_child *child, uint32_t bytes, uint64_t position);
/* What the socket does not take stays, and leaves with the next flush. */
void child_flush(struct sparse_child *child);
/* Is something left, because the socket is full? The caller waits for POLLOUT then. */
bool child_is_full(const struct sparse_child *child);

/* Ends the communicator for all its children, with a sentence. The child has FAILED then. */
void child_abort(struct sparse_child *child, const char *sentence);

#endif
