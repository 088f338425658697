/* SPDX-License-Identifier: Apache-2.0 */
/* DATA of communicators whose engine is not dense: the engine decides, the carrier sends. */
#ifndef TRIB_PLANE_LANE_ENGINE_PACKETS_H
#define TRIB_PLANE_LANE_ENGINE_PACKETS_H

#include "plane/lane/agg_lane.h"

/* The lane's cells, where the kernel part does not have them. False: no memory. */
bool engine_lane_open(struct agg_lane *lane);
void engine_lane_close(struct agg_lane *lane);
/* The communicator's terms are settled, and its children are known. False: no memory. */
bool engine_lane_start(struct aggregator *aggregator, struct agg_lane *lane);
void engine_take_data(struct thread *thread, struct agg_lane *lane,
                      const struct wire_header *header, uint32_t bytes);

#endif
