/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane/stream: lanes of streams (engine/dense.h). It owns their cells, the window
 * (stream_window), the results and sums that leave from the cells (stream_packets),
 * the answers to reports (stream_reports), the rates of children (child_rates), and
 * the way up to a parent (parent_lane).
 *
 * Carriers and the kernel part ask it for packets that may leave. It must not touch
 * sockets, and nobody else looks into a cell.
 */
#ifndef TRIB_PLANE_STREAM_STREAM_LANE_H
#define TRIB_PLANE_STREAM_STREAM_LANE_H

#include "plane/lane/lane_kind.h"

extern const struct lane_kind lane_of_stream;

/* stream_reports.c: the entries of the table that are about reports. */
void stream_lane_note_report(struct thread *thread, struct agg_lane *lane,
                             const struct wire_control *header);
uint64_t stream_lane_owed(const struct agg_lane *lane, unsigned child,
                          const struct wire_report *report);
void stream_lane_answer(struct thread *thread, struct agg_lane *lane, unsigned child,
                        const struct wire_report *report, struct status_packet *packet);

#endif
