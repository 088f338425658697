/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of children, and what all lanes say of packets that do not fit. */
#ifndef TRIB_PLANE_LANE_CHILD_PACKETS_H
#define TRIB_PLANE_LANE_CHILD_PACKETS_H

#include "plane/lane/agg_lane.h"

/* The packet does not fit what is there: see child_calls_dispute(). */
void child_dispute(struct agg_lane *lane, const struct wire_header *header, uint32_t bytes,
                   const struct engine_view *there, uint64_t now);
/* Answers a REPORT: repeats what the child lacks, and says what is complete and missing. */
void child_take_report(struct thread *thread, struct agg_lane *lane,
                       const struct wire_control *header, const struct udp_address *from);

#endif
