/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport: the threads of the lanes. A lane's thread takes rounds from its mailbox, moves
 * packets between the stream (dense) and the socket, and finishes requests.
 *
 * The room owns the lanes' threads and sockets. What a lane's thread does is a table of functions
 * (comm/lane_engine.h), an entry for each engine. How packets travel is another one
 * (lane_carrier.h): datagrams or a connection. The room reads and changes the communicator only
 * through comm; it must not touch trees, requests, sharing, failover or api. Whatever these have
 * to know is written into the communicator's state, and they are woken.
 */
#ifndef TRIB_WORKER_TRANSPORT_TRANSPORT_H
#define TRIB_WORKER_TRANSPORT_TRANSPORT_H

#include "worker/comm/comm.h"

/* A lane of the trunk, not open yet; NULL: no memory. */
struct lane *lane_make(struct trib_comm *comm, struct trunk *trunk);
trib_status lane_open(struct lane *lane);
/* Starts the thread. The trunk is joined, and the lane is in the communicator's list. */
trib_status lane_start(struct lane *lane);
/* Waits for the thread's end. The caller has set closing, stop_lanes or leaves. */
void lane_stop(struct lane *lane);
/* Frees the lane. */
void lane_close(struct lane *lane);

#endif
