/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse/layout owns the place of parameters at an aggregator. It is pure: no input or output, no
 * clock, no allocation. It must not know keys, servers or sockets.
 *
 *  - layout.h: the switch of the paper, for `trib sparse hot`. Parameters are in registers. A
 * packet that needs a register several times has to go through the switch again (recirculation).
 * Libra, section 3.4 and Algorithm 1.
 *  - row_room.h: how many rows fit into an aggregator.
 */
#ifndef TRIB_SPARSE_LAYOUT_H
#define TRIB_SPARSE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

struct layout {
	uint32_t registers; /* 1 or more (m of the paper) */
	uint32_t room;      /* parameters that fit into a packet; 1 or more */
};

/*
 * Heat-based placement: the register of the parameter of rank r. Neighbours in heat, which often
 * occur together, are in different registers.
 */
static inline uint32_t layout_register(const struct layout *layout, uint32_t rank)
{
	return rank % layout->registers;
}

/* The baseline: a random register for each parameter, always the same for a seed. */
uint32_t layout_register_random(const struct layout *layout, uint32_t rank, uint64_t seed);

/* How many packets n gradients need if all packets are full. */
uint32_t layout_estimate(const struct layout *layout, uint32_t n);

/* Numbers of scratch for n gradients, for each function below. */
size_t layout_scratch(const struct layout *layout, uint32_t n);

/*
 * Algorithm 1: puts n gradients (at most 2^30) into packets. registers[i] is the register of
 * gradient i. packet_of[i] becomes the number of its packet. Returns the number of packets.
 *
 * A gradient goes into the first of layout_estimate packets that is not full and has no gradient of
 * its register. Gradients without such a packet fill packets behind these, without regard to
 * registers.
 *
 * It takes about linear time: packets that a register cannot use never become usable for it again.
 * So each register continues where it found a packet the last time, and full packets are skipped by
 * links that are shortened when they are followed.
 */
uint32_t layout_pack(const struct layout *layout, const uint32_t *registers, uint32_t n,
                     uint32_t *packet_of, uint32_t *scratch);

/* The baseline: packets in order of the gradients. */
uint32_t layout_pack_in_order(const struct layout *layout, uint32_t n, uint32_t *packet_of);

/*
 * Recirculations of all packets together. A packet needs one less than the largest number of its
 * gradients that are in one register.
 */
uint64_t layout_recirculations(const struct layout *layout, const uint32_t *registers, uint32_t n,
                               const uint32_t *packet_of, uint32_t packets, uint32_t *scratch);

#endif
