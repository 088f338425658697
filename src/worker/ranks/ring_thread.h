/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks: the channels (path/channel) between the ranks of a communicator. The room owns the ring's
 * thread and the channels of direct calls (direct_io.h). It must not touch lanes, trees, and the
 * rooms above: requests, failover, api.
 *
 * The ring's thread takes rounds from the ring's mailbox, and moves messages between the ring
 * (ring/ring.h) and two channels: one from the previous rank, one to the next.
 */
#ifndef TRIB_WORKER_RANKS_RING_THREAD_H
#define TRIB_WORKER_RANKS_RING_THREAD_H

#include "worker/comm/comm.h"

struct channel_listener;

/* Listens for the previous rank, on the address of the route to `towards`. *seat: where. */
trib_status ring_listen(const struct comm_config *config, const struct udp_address *towards,
                        struct channel_listener **listener, struct ring_seat *seat);
/* The communicator has a ring, which does not run yet. Takes the listener over, also if it fails.
 */
trib_status ring_open(struct trib_comm *comm, struct channel_listener *listener);
/* Starts the thread. It connects as soon as the seats of all ranks are known. */
trib_status ring_run(struct trib_comm *comm);
/* Waits for the thread's end. The caller has set closing or stop_ring. */
void ring_stop(struct trib_comm *comm);
void ring_close(struct trib_comm *comm);

#endif
