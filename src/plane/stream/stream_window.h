/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's cells under their locks, results that wait to leave, and news of the window. */
#ifndef TRIB_PLANE_STREAM_STREAM_WINDOW_H
#define TRIB_PLANE_STREAM_STREAM_WINDOW_H

#include "engine/cell_lock.h"
#include "plane/lane/agg_lane.h"

/* The kernel part may sum in the same cell. Held while a cell is judged, changed or sealed. */
static inline void stream_lane_lock(const struct agg_lane *lane, struct dense_cell *cell)
{
	if (lane->kernel)
		cell_lock(&cell->lock);
}

static inline void stream_lane_unlock(const struct agg_lane *lane, struct dense_cell *cell)
{
	if (lane->kernel)
		cell_unlock(&cell->lock);
}

/* Queues a result for one child, or for all with WIRE_ALL. False: no room for a repeat. */
bool stream_lane_queue(struct agg_lane *lane, uint64_t position, uint8_t child);
/* To all children: the window, and what is complete from `base` on. */
void stream_lane_tell(struct thread *thread, struct agg_lane *lane, uint64_t base, uint32_t bits);
/* To the multicast group only: children that hear it say so in their next report. */
void stream_lane_probe_group(struct thread *thread, struct agg_lane *lane);
/* To all children: the window, if it has moved far and no result is about to say so. */
void stream_lane_announce_low(struct thread *thread, struct agg_lane *lane);

#endif
