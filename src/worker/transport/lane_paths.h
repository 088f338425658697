/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane_paths: the paths of lanes to aggregators, if routers are on the way. Each lane sends from an
 * address and port of its own, so that the routers give the lanes different paths.
 *
 * A lane leaves a path on which it hears nothing: the path may be cut. It also leaves a path if
 * another one would carry clearly more (path/balance/places.h). Then it goes on from another
 * address and port. The aggregator answers to where the newest report came from, so results
 * move as well.
 */
#ifndef TRIB_WORKER_TRANSPORT_LANE_PATHS_H
#define TRIB_WORKER_TRANSPORT_LANE_PATHS_H

#include "worker/comm/comm.h"

/*
 * Finds paths to the aggregators, before lanes are opened. If there are several, and the user has
 * not chosen the number of lanes, then there are as many lanes at least, in all trees. It waits
 * only if routers are on the way.
 */
void lane_paths_find(struct trib_comm *comm);
/* Chooses the lane's path, and where it sends from. False: the kernel chooses. */
bool lane_paths_from(struct lane *lane, struct udp_address *from);

/* The lane begins. This and the following are for the thread that drives the lane. */
void lane_paths_start(struct lane *lane, uint64_t now);
/*
 * Does the lane leave its path? True: it has another one now, and must report to the aggregator.
 */
bool lane_paths_check(struct lane *lane, uint64_t now);
/* Has the aggregator been silent for so long that the path may be cut? */
bool lane_paths_is_silent(const struct lane *lane, uint64_t now);
/* Has the lane left a path, and not heard the aggregator since? */
bool lane_paths_is_lost(const struct lane *lane);
/* Closes the sockets of paths that the lane has left. */
void lane_paths_forget(struct lane *lane);

#endif
