/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failover: keeps a communicator alive when an aggregator dies. Only communicators with a
 * controller have it.
 *
 * When an aggregator is lost, all lanes go quiet. The failover thread asks the controller for
 * another plan, joins its trees, and recovers the requests that were in flight (recover.c). If a
 * lane suspects that an aggregator is dead, the thread asks the controller (suspicion.c). If the
 * plan has no trees, nothing is recovered, and the thread only keeps the controller informed.
 *
 * The room owns the failover thread and the replacement of trees. It must not touch api.
 */
#ifndef TRIB_WORKER_FAILOVER_FAILOVER_H
#define TRIB_WORKER_FAILOVER_FAILOVER_H

#include "worker/comm/comm.h"

/* Asks for plans and joins their trees until some work. `first`: no request is in flight. */
trib_status failover_find_trees(struct trib_comm *comm, bool first, uint64_t deadline);
trib_status failover_start(struct trib_comm *comm);
void failover_stop(struct trib_comm *comm);

/* suspicion.c: asks the controller whether it hears the aggregators. */
void suspicion_settle(struct trib_comm *comm);

/* ring_alive.c: tells the controller that this rank lives, until the communicator is over. */
void ring_tell_alive(struct trib_comm *comm);

/* recover.c: agrees with all ranks, in new trees, on what is missing, and posts that. */
trib_status recover_requests(struct trib_comm *comm, uint64_t deadline);

#endif
