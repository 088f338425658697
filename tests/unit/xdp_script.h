/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nearly valid packets, made from random bytes or a fuzzer's. They are what children and a parent
 * send around the window, with flipped bits, fields of other packets, changed lengths, sealed again
 * or not. Between them are actions of the daemon. Kernel and twin get each packet.
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
	struct packet packet, other; /* the last packet, for its fields */
};

/* Creates a lane for scripts, with a route to each child and to a parent. */
void script_lane(struct rig *rig);
/* Empties the lane. The parent is present or not. */
void script_clear(struct rig *rig, bool has_parent);
/* Gives one packet to both, which must agree. Returns the verdict of rig_agree. */
int script_step(struct script *script);
/* The bytes as a datagram: unchanged, sealed, and as one of the lane's. */
void script_datagram(struct rig *rig, const uint8_t *data, uint32_t bytes);

#endif
