/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a lane: thread 0 makes it, hands it to its thread, and takes it back. */
#ifndef TRIB_PLANE_LANE_LANE_HANDOVER_H
#define TRIB_PLANE_LANE_LANE_HANDOVER_H

#include "plane/lane/agg_lane.h"

/* NULL: no memory. */
struct agg_lane *agg_lane_new(struct aggregator *aggregator, struct comm *comm, unsigned index);
void agg_lane_free(struct agg_lane *lane);
/* Thread 0: hands a lane to its thread. `lane` NULL: the thread gives up the lane of this id. */
void lane_handover_post(struct thread *thread, unsigned id, struct agg_lane *lane);
/* The thread itself: takes and gives up the lanes that were posted. */
void lane_handover_read(struct thread *thread);
/* The thread ends: gives up all lanes. */
void lane_handover_drop_all(struct thread *thread);

#endif
