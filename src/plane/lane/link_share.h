/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sharing of the aggregator's link among lanes and their children (XAgg
 * §IV-C): which rate each child is given. child_rates.h decides which children
 * count as active.
 */
#ifndef TRIB_PLANE_LANE_LINK_SHARE_H
#define TRIB_PLANE_LANE_LINK_SHARE_H

#include "plane/lane/agg_lane.h"

#define RATE_UNIT 1024.0 /* bit/s of one unit of rates on the wire */

/* A new lane takes part from now on. Thread 0 only. */
void link_share_open(struct aggregator *aggregator, struct agg_lane *lane);
void link_share_close(struct aggregator *aggregator, struct agg_lane *lane);
/* The child has left. Thread 0 only. */
void link_share_leave(struct aggregator *aggregator, const struct comm *comm, unsigned child);
/* The child's first rate, as in a WELCOME. */
uint32_t link_share_first(struct aggregator *aggregator, const struct comm *comm, unsigned child);
/* The child's rate in bit/s; 0: no limit. */
double link_share_given(struct aggregator *aggregator, const struct agg_lane *lane, unsigned child);
/* Writes the child's rate into a STATUS. */
void link_share_fill(struct thread *thread, struct agg_lane *lane, unsigned child,
                     struct wire_status *status);
/* The rate to ask the parent for, as in a REPORT. */
uint32_t link_share_want(const struct thread *thread, const struct agg_lane *lane);
/* The parent's STATUS may bring another rate. */
bool link_share_from_parent(struct thread *thread, struct agg_lane *lane,
                            const struct wire_status *status);
/* Sends a STATUS to those children of the lane that know another rate. */
void link_share_tell(struct thread *thread, struct agg_lane *lane);
/* Reads the device's speed again, once a second. Thread 0 only. */
void link_share_check_device(struct aggregator *aggregator, uint64_t now);

/*
 * The caller holds the lock; both functions release it. They divide the link again, and
 * wake the other threads to tell their children. `by` is the calling thread's index;
 * THREADS_MAX wakes all.
 */
void link_share_update(struct aggregator *aggregator, unsigned by);
/* As link_share_update(). If the lane is idle, its children hear now what rate they begin with. */
void link_share_update_lane(struct thread *thread, struct agg_lane *lane);

#endif
