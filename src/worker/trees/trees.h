/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trees: how a communicator gets into its trees and out of them. It asks the controller for a
 * plan (plan_client.h), makes trunks and lanes from the plan's trees (trunks.c), joins the
 * aggregators (join.c), and says good-bye (goodbye.c).
 *
 * The room owns JOIN, BYE and ABORT packets and the talk with the controller about plans. Its
 * functions are called by one thread at a time: the user's while the communicator opens or
 * closes, failover's, or the turn client's with `trunks_lock`. It must not touch requests or
 * ledgers, nor the rooms above: sharing, failover, api.
 */
#ifndef TRIB_WORKER_TREES_TREES_H
#define TRIB_WORKER_TREES_TREES_H

#include "worker/comm/comm.h"

/* trunks.c: fills the trunks from the trees of the configuration; opens nothing. */
trib_status trunks_plan(struct trib_comm *comm);
/* Joins all trees, opens and starts all lanes. TRIB_IN_PROGRESS: as for comm_join. */
trib_status trunks_open(struct trib_comm *comm, uint64_t deadline);
/* Adds a lane to the trunk, open and not started. */
trib_status trunk_add_lane(struct trib_comm *comm, struct trunk *trunk);
/* Ends the lanes' threads. */
void trunks_stop(struct trib_comm *comm);
void trunks_close(struct trib_comm *comm);

/* route_wait.c: waits until there is a route, and a link, to `what` at the address. */
trib_status route_wait(struct trib_comm *comm, const struct udp_address *peer, const char *what,
                       uint64_t deadline);

/*
 * join.c: joins all trunks at once and waits for all ranks; each trunk has its first lane.
 * TRIB_IN_PROGRESS: the address that was asked is a controller's.
 */
trib_status comm_join(struct trib_comm *comm, uint64_t deadline);
/* Joins one more trunk without waiting; its first lane is open, not started. free() ends it. */
struct join_attempt;
trib_status join_begin(struct trib_comm *comm, struct trunk *trunk, double seconds,
                       struct join_attempt **out);
/* TRIB_OK: joined. TRIB_IN_PROGRESS: call again at *wake, or when the lane's socket is readable. */
trib_status join_step(struct join_attempt *attempt, uint64_t deadline, uint64_t *wake);

/* goodbye.c: sends BYE to all aggregators until they have heard it. No lane's thread runs. */
void comm_leave(struct trib_comm *comm);
/*
 * For one trunk, without waiting: trunk_say_bye sends a BYE. The other function says whether the
 * aggregator has heard it or is gone.
 */
void trunk_say_bye(struct trib_comm *comm, struct trunk *trunk);
bool trunk_hears_bye(struct trunk *trunk);
/* Tells the aggregators, and so the other ranks, why this rank has failed. Once. */
void comm_tell_failure(struct trib_comm *comm);
/* Tells the aggregators that this rank gives their trees up. To be repeated: packets get lost. */
void comm_tell_trees_lost(struct trib_comm *comm);

#endif
