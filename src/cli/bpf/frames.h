/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of frames.bpf.c and the process that loads them both see. */
#ifndef TRIB_CLI_BPF_FRAMES_H
#define TRIB_CLI_BPF_FRAMES_H

#include "wire/packet.h"

#define FRAMES_CHILDREN 16u
#define FRAMES_FRONT 42u   /* Ethernet, IPv4, UDP */
#define FRAMES_BYTES 1512u /* ... and the packet, but for the first two, so that words remain */
#define FRAMES_BLOCK 32u   /* positions that one child sends before the next child does */

struct frames_settings {
	uint32_t children, interface;
	uint32_t window; /* packets under way */
};

struct frames_state {
	uint64_t sent;    /* packets */
	uint64_t first;   /* position of the first of them */
	uint64_t results; /* that have come back */
	uint64_t wrong;   /* of these */
	uint64_t lost, blocked_since;
	uint64_t sum;    /* a result's first word */
	uint64_t behind; /* how far acknowledgements are behind */
};

struct frames_template {
	uint16_t start, unused[3];
	uint64_t words[FRAMES_BYTES / 8];
};

#endif
