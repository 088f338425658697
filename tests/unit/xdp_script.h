/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that are nearly right, made up from bytes, random or a fuzzer's:
 * what children and a parent send around the window, with bits flipped, fields
 * of other packets, lengths changed, sealed anew or not; and what the daemon
 * does between. Kernel and twin get each.
 */
#ifndef TRIB_TESTS_XDP_SCRIPT_H
#define TRIB_TESTS_XDP_SCRIPT_H

#include "xdp_rig.h"

#define SCRIPT_CHILDREN 3u
#define SCRIPT_CELLS 4u
#define SCRIPT_PAYLOAD 512u

struct script {
	struct rig *rig;
	uint8_t (*byte)(void *source);
	void *source;
	struct packet packet, other; /* the last one, for its fields */
};

/* A lane for scripts, with a way to each child and to a parent. */
void script_lane(struct rig *rig);
/* The lane is empty again, and the parent is there or not. */
void script_clear(struct rig *rig, bool has_parent);
/* One packet to both; they must agree. The verdict, as rig_agree. */
int script_step(struct script *script);
/* The bytes as a datagram: as they are, sealed, and as one of the lane's. */
void script_datagram(struct rig *rig, const uint8_t *data, uint32_t bytes);

#endif
