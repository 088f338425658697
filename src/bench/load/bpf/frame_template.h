/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load/bpf owns the program that makes frames in the kernel, as load for an aggregator. It must
 * not touch sums. This header is the data that the program shares with the process that loads it.
 */
#ifndef TRIB_BENCH_LOAD_BPF_FRAME_TEMPLATE_H
#define TRIB_BENCH_LOAD_BPF_FRAME_TEMPLATE_H

#include "wire/packet.h"

#define FRAMES_CHILDREN 16u
#define FRAMES_FRONT 42u /* Ethernet, IPv4, UDP */
#define FRAMES_BYTES                                                                        \
	1512u /* the headers and the packet, without the first two bytes, so that words are \
	         aligned */
#define FRAMES_BLOCK 32u /* positions that one child sends before the next child does */

struct frames_settings {
	uint32_t children, interface;
	uint32_t window; /* packets in flight */
};

struct frames_state {
	uint64_t sent;    /* packets */
	uint64_t first;   /* position of the first of them */
	uint64_t results; /* packets that have come back */
	uint64_t wrong;   /* packets that came back with a wrong sum */
	uint64_t lost, blocked_since;
	uint64_t sum;    /* the first word of a result */
	uint64_t behind; /* distance of acknowledgements behind */
};

struct frames_template {
	uint16_t start, unused[3];
	uint64_t words[FRAMES_BYTES / 8];
};

#endif
