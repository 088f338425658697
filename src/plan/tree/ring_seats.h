/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a plan without trees: the ranks sum around a ring. It says where each rank listens
 * for the rank before it, and how many bytes of a fragment its network carries:
 *
 *     ring(10.0.0.1:40001/1448,10.0.0.2:40001/1448,[fd00::3]:40002/1424)
 *
 * An "r" behind the bytes says that the rank has an RDMA device.
 */
#ifndef TRIB_PLAN_TREE_RING_SEATS_H
#define TRIB_PLAN_TREE_RING_SEATS_H

#include "plan/tree/tree.h"

#include <stdint.h>

/* Where a rank listens, as ranks also tell each other. Little-endian. */
struct ring_seat {
	uint8_t family; /* 4 or 6; 0: unknown */
	uint8_t rdma;   /* 1: it has an RDMA device */
	uint16_t port;
	uint8_t address[16];
	uint32_t payload; /* bytes of a fragment that its network carries */
};

_Static_assert(sizeof(struct ring_seat) == 24, "no holes");

/* Is this the text of a ring? */
bool ring_seats_are(const char *plan);
/* Writes the text. Returns its length, as snprintf does. */
size_t ring_seats_print(const struct ring_seat *seats, unsigned n, char *out, size_t size);
/* Reads the text up to its end, or to a '|'; *n: the number of ranks. */
trib_status ring_seats_parse(const char *plan, struct ring_seat seats[TREE_RANKS_MAX], unsigned *n);

#endif
