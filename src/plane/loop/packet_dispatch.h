/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane/loop: the loop of an aggregator's thread, and the one place where a
 * packet is given to the room that handles it. It owns the order of the work. It
 * must not do the work itself, nor name a carrier.
 */
#ifndef TRIB_PLANE_LOOP_PACKET_DISPATCH_H
#define TRIB_PLANE_LOOP_PACKET_DISPATCH_H

#include "plane/core/thread.h"

/* Takes a packet in which the parser found this fault, or none. False: dropped, and counted. */
bool packet_take(struct thread *thread, const struct wire_header *header, uint32_t bytes,
                 enum wire_fault fault, const struct udp_address *from);

#endif
