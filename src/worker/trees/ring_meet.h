/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_meet: ranks that have neither an aggregator nor a controller find each other. Rank 0
 * listens on TCP at an address that all ranks know (TRIB_RENDEZVOUS). Every other rank connects,
 * says where it listens for the ring, and gets the list of all ranks.
 */
#ifndef TRIB_WORKER_TREES_RING_MEET_H
#define TRIB_WORKER_TREES_RING_MEET_H

#include "worker/comm/comm.h"

/* Fills in the seats of all ranks. The own seat is set. */
trib_status ring_meet(const struct comm_config *config, struct ring_seat *seats, uint64_t deadline);

#endif
