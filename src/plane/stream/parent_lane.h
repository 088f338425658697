/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's way up: packets to and from the parent, around engine/uplink.h. */
#ifndef TRIB_PLANE_STREAM_PARENT_LANE_H
#define TRIB_PLANE_STREAM_PARENT_LANE_H

#include "plane/lane/agg_lane.h"

bool parent_lane_open(struct aggregator *aggregator, struct agg_lane *lane);
void parent_lane_close(struct agg_lane *lane);
/* The thread takes the lane, or gives it up. */
void parent_lane_begin(struct thread *thread, struct agg_lane *lane);
void parent_lane_end(struct thread *thread, struct agg_lane *lane);
/* The lane whose parent has sent this packet, or NULL. */
struct agg_lane *parent_lane_find(const struct thread *thread, const struct wire_control *header);
void parent_lane_take(struct thread *thread, struct agg_lane *lane,
                      const struct wire_control *header);
/* Takes a RESULT. False: no parent of this thread sent it; the drop is counted. */
bool parent_lane_take_result(struct thread *thread, const struct wire_header *header,
                             uint32_t bytes, const struct udp_address *from);
/* A child has reported: its question may have to go on to the parent. */
void parent_lane_follow(struct thread *thread, struct agg_lane *lane,
                        const struct wire_report *report);
/* Many sums have gone up: asks the parent which of them have arrived. */
void parent_lane_report_sums(struct thread *thread, struct agg_lane *lane);
void parent_lane_tick(struct thread *thread, struct agg_lane *lane);
/* Reports to the parent at once: the lane has become active or idle. */
void parent_lane_report_now(struct thread *thread, struct agg_lane *lane);
/* Makes the next report to the parent due. */
void parent_lane_report_soon(struct agg_lane *lane);
/* The header of a packet to the parent. */
struct wire_control parent_lane_header(const struct agg_lane *lane, uint8_t type);
void parent_lane_send_abort(struct thread *thread, struct agg_lane *lane);
/* The part of a fragment's checksum that is not sent, for packets to and from the parent. */
struct wire_unsent parent_lane_unsent(const struct agg_lane *lane, uint64_t position);

#endif
