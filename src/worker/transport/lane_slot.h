/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot lanes: small vectors, driven by the thread that waits for them. Who holds
 * comm->slot_driver drives all of them: it takes rounds from the mailboxes, sends and receives. A
 * user's thread drives while it waits, so nothing is handed to another thread. The lanes' own
 * threads drive when no user does, and send heartbeats.
 */
#ifndef TRIB_WORKER_TRANSPORT_LANE_SLOT_H
#define TRIB_WORKER_TRANSPORT_LANE_SLOT_H

#include "worker/comm/comm.h"

/* As lane_start(), of a lane whose aggregator runs the slot engine. */
trib_status lane_slot_start(struct lane *lane);
/* The lane's thread has ended. */
void lane_slot_close(struct lane *lane);

/* Sends what was just posted, unless another thread is about to. */
void lane_slot_push(struct trib_comm *comm);
/* Takes what has come, and sends what is due, unless another thread does. */
void lane_slot_poll(struct trib_comm *comm);
/*
 * Drives the lanes until the request has ended, or something else has to be waited for. It may
 * return early: the caller waits for the request in any case. Takes and gives the time: looking at
 * the clock is a part of what a small call costs.
 */
uint64_t lane_slot_drive(struct trib_comm *comm, const struct trib_request *request, uint64_t now,
                         uint64_t deadline);

#endif
