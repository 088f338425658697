/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sharing: a rank's active part in sharing an aggregator with other jobs. turn_client.c is the
 * thread that speaks with the controller about turns; star_switch.c leaves one shared star and
 * joins the next. The rules are pure and live in worker/turns.
 *
 * The room owns the turn client's thread, struct star_switch, and the trunk of the shared star
 * while the thread holds `trunks_lock`. It must not touch failover or api.
 */
#ifndef TRIB_WORKER_SHARING_SHARING_H
#define TRIB_WORKER_SHARING_SHARING_H

#include "worker/comm/comm.h"

/* turn_client.c */
trib_status turn_client_start(struct trib_comm *comm);
/* Ends the thread: no request starts from then on. */
void turn_client_halt(struct trib_comm *comm);
/* Tells the controller that this rank has left, and frees the client. */
void turn_client_stop(struct trib_comm *comm);

/* star_switch.c; the caller holds `trunks_lock`. */
/* Does the next step of leaving or joining a shared star, without waiting; again at *wake. */
void star_switch_step(struct trib_comm *comm, uint64_t *wake);
/* The socket that the next step waits for; -1: none. */
int star_switch_fd(const struct trib_comm *comm);
/* Drops a star that is not joined yet. */
void star_switch_drop(struct trib_comm *comm);

#endif
