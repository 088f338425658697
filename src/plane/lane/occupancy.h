/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many communicators have sums in flight at once. The controller decides
 * which job has the turn at a shared aggregator. The aggregator only counts, as
 * a check that ranks keep to their turns.
 *
 * Each lane counts its cells that have some parts and not all. Threads meet
 * here only when that count leaves or reaches 0.
 */
#ifndef TRIB_PLANE_LANE_OCCUPANCY_H
#define TRIB_PLANE_LANE_OCCUPANCY_H

#include "plane/lane/agg_lane.h"

void occupancy_enter(struct aggregator *aggregator, struct comm *comm);
void occupancy_leave(struct aggregator *aggregator, struct comm *comm);
/* The lane is about to be freed. */
void occupancy_drop(struct aggregator *aggregator, struct agg_lane *lane);
/* The controller's fence: ends a communicator here, and answers. Thread 0 only. */
void occupancy_fence(struct thread *thread, const struct wire_control *header,
                     const struct udp_address *from);

#endif
