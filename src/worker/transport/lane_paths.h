/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane_paths: the paths of lanes to the aggregator, if routers are on the way. Each lane sends from
 * an address and port of its own, so that the routers give the lanes different paths.
 *
 * A lane that hears nothing goes on from another address and port: its path may be cut. The
 * aggregator answers to where the newest report came from.
 */
#ifndef TRIB_WORKER_TRANSPORT_LANE_PATHS_H
#define TRIB_WORKER_TRANSPORT_LANE_PATHS_H

#include "worker/comm/comm.h"

/*
 * Finds paths for the lanes of the first trunk, before they are opened. If there are several, and
 * the user has not chosen the number of lanes, then there are as many lanes at least. It waits only
 * if routers are on the way.
 */
void lane_paths_find(struct trib_comm *comm);
/* Where a lane sends from; NULL: the kernel chooses. */
const struct udp_address *lane_paths_from(const struct lane *lane);

/*
 * If the aggregator is silent, the lane gets another path. True: it has one now, and must
 * report to the aggregator. For the thread that drives the lane.
 */
bool lane_paths_check(struct lane *lane, uint64_t now);
/* Has the aggregator been silent for so long that the path may be cut? */
bool lane_paths_is_silent(const struct lane *lane, uint64_t now);
/* Closes the sockets of paths that the lane has left. */
void lane_paths_forget(struct lane *lane);

#endif
