/* SPDX-License-Identifier: Apache-2.0 */
/*
 * REPORT and STATUS end in bitmaps that are mostly empty: words at their end
 * that are 0 are not sent. Of a STATUS both bitmaps are cut alike. Programs
 * have whole structs; a packet is cut when it leaves, and made whole when it has
 * been parsed. Pure.
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

/* Cuts a whole REPORT or STATUS where it lies, before it is sealed; gives the bytes to send. */
uint32_t wire_cut(void *packet);

/*
 * What was parsed, of so many bytes: a REPORT or STATUS as a whole one, in
 * `room` if it was cut; any other packet as it is.
 */
const struct wire_control *wire_make_whole(const struct wire_control *control, size_t bytes,
                                           struct wire_whole *room);

#endif
