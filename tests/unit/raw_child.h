/* SPDX-License-Identifier: Apache-2.0 */
/* A child of a real aggregator that makes its packets itself, for tests of engines. */
#ifndef TRIB_TESTS_RAW_CHILD_H
#define TRIB_TESTS_RAW_CHILD_H

#include "cluster.h"
#include "wire/packet.h"

#define RAW_JOB 1
#define RAW_PATIENCE_MS 5000

union raw_packet {
	struct wire_header header;
	struct wire_control control;
	uint64_t words[(WIRE_PACKET_MAX + 64) / 8];
};

struct raw_child {
	int fd;
	uint8_t rank;
	bool stream;    /* a TCP connection: TRIB_PLANE is set */
	uint32_t token; /* proves our address */
	struct wire_welcome welcome;
};

void raw_child_open(struct raw_child *child, const struct cluster *cluster, uint8_t rank);
/* The next packet's type; 0: none arrived. *bytes may be NULL. */
uint8_t raw_child_receive(const struct raw_child *child, union raw_packet *packet, int wait_ms,
                          uint32_t *bytes);
/* Waits for a packet of this type; repeats of WELCOME and the like do not matter. Its bytes. */
uint32_t raw_child_await(const struct raw_child *child, union raw_packet *packet, uint8_t type);
/* Asks once to join `size` children at this engine; the verdict. */
uint32_t raw_child_join(struct raw_child *child, uint32_t size, uint8_t engine, uint8_t hops);
/* Opens `size` children, and joins until all have joined. */
void raw_children_join(struct raw_child *children, const struct cluster *cluster, uint32_t size,
                       uint8_t engine);
/* The words of a DATA or RESULT that are not sent. */
struct wire_unsent raw_child_unsent(const struct raw_child *child, uint64_t position);
/* Fills in comm and child, seals and sends. */
void raw_child_send(const struct raw_child *child, union raw_packet *packet, uint32_t bytes,
                    uint64_t position);

#endif
