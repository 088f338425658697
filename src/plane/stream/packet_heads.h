/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of a stream's fragments that leave. */
#ifndef TRIB_PLANE_STREAM_PACKET_HEADS_H
#define TRIB_PLANE_STREAM_PACKET_HEADS_H

#include "plane/lane/agg_lane.h"

/* Writes the header in front of a result; the caller seals it. `again`: it is a repeat. */
void result_head(const struct agg_lane *lane, const struct dense_cell *cell, uint8_t *packet,
                 bool again);
/* Writes the header in front of a sum for the parent; the caller seals it. */
void sum_head(const struct agg_lane *lane, const struct dense_cell *cell, uint8_t *packet);

#endif
