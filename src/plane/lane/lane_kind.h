/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a lane does for its engine. There are two entries: lanes of streams (plane/stream), and
 * lanes of engines that are entries of engine/engine_table.h with functions (engine_lane.h). All
 * other rooms call a lane through this table, and know the cells of neither.
 */
#ifndef TRIB_PLANE_LANE_LANE_KIND_H
#define TRIB_PLANE_LANE_LANE_KIND_H

#include "plane/lane/agg_lane.h"

struct lane_kind {
	/* Makes the cells, unless the kernel part has them. The communicator's terms are settled,
	   and its children are known. False: no memory. */
	bool (*open)(struct aggregator *aggregator, struct agg_lane *lane);
	void (*close)(struct agg_lane *lane);
	/* The thread takes the lane, or gives it up. */
	void (*begin)(struct thread *thread, struct agg_lane *lane);
	void (*end)(struct thread *thread, struct agg_lane *lane);
	void (*tick)(struct thread *thread, struct agg_lane *lane);
	/* lane->left has more children than before. */
	void (*leave)(struct agg_lane *lane);
	/* The 64-bit position of a packet: its checksum covers it. */
	uint64_t (*position)(const struct agg_lane *lane, const struct wire_header *header);
	/* Takes a DATA packet that was found intact. `bytes` is the length of its payload. */
	void (*take_data)(struct thread *thread, struct agg_lane *lane,
	                  const struct wire_header *header, uint32_t bytes);
	/* Notes what the report says beside what child_take_report() has noted. */
	void (*note_report)(struct thread *thread, struct agg_lane *lane,
	                    const struct wire_control *header);
	/* Children, as bits, that owe what the child of this report waits for. */
	uint64_t (*owed)(const struct agg_lane *lane, unsigned child,
	                 const struct wire_report *report);
	/* Sends what the child lacks, and completes the answer to its report. */
	void (*answer)(struct thread *thread, struct agg_lane *lane, unsigned child,
	               const struct wire_report *report, struct status_packet *packet);
	/* The report was answered. */
	void (*follow)(struct thread *thread, struct agg_lane *lane,
	               const struct wire_report *report);
	/* For counters: fragments below are over for all children, or for this one. */
	uint64_t (*low)(const struct agg_lane *lane);
	uint64_t (*done)(const struct agg_lane *lane, unsigned child);
};

#endif
