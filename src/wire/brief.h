/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brief: REPORT and STATUS end in bitmaps that are mostly zero. The sender cuts the zero
 * words at their end, and the receiver restores them after parsing. Both bitmaps of a
 * STATUS are cut to the same length. Pure.
 */
#ifndef TRIB_WIRE_BRIEF_H
#define TRIB_WIRE_BRIEF_H

#include "wire/packet.h"

#include <stddef.h>

#define WIRE_REPORT_LEAST ((uint32_t)offsetof(struct wire_report, missing))
#define WIRE_STATUS_LEAST ((uint32_t)offsetof(struct wire_status, missing))

/* A REPORT or STATUS that is whole. */
struct wire_whole {
	struct wire_control header;
	union {
		struct wire_report report;
		struct wire_status status;
	};
};

/* Cuts a whole REPORT or STATUS in place, before it is sealed. Returns the bytes to send. */
uint32_t wire_cut(void *packet);

/*
 * Restores a parsed packet of `bytes`: a REPORT or STATUS that was cut is completed in
 * `room`; any other packet is returned as it is.
 */
const struct wire_control *wire_make_whole(const struct wire_control *control, size_t bytes,
                                           struct wire_whole *room);

#endif
