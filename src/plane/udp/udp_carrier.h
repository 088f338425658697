/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane/udp: the carrier with one datagram socket per thread. It owns batches in
 * and out of that socket, and the messages that results and sums leave in. What
 * packets mean is for plane/loop and the rooms below it.
 */
#ifndef TRIB_PLANE_UDP_UDP_CARRIER_H
#define TRIB_PLANE_UDP_UDP_CARRIER_H

#include "plane/lane/agg_lane.h"

extern const struct carrier carrier_udp;

/* results.c: fills thread->tx from the lane's queue. False: tx is full. */
bool results_send_udp(struct thread *thread, struct agg_lane *lane);
/* sums.c: fills thread->tx with sums for the parent. False: tx is full. */
bool sums_send_udp(struct thread *thread, struct agg_lane *lane);
/* copies.c: a packet of an engine for the children `to`; it leaves when the thread flushes. */
void copies_add(struct thread *thread, const struct agg_lane *lane, const void *packet,
                uint32_t bytes, uint64_t to);
void copies_flush(struct thread *thread);

#endif
