/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets on a byte stream, one behind the other. A stream has its own
 * checksums, so the field `check` has the packet's length there: a frame is a
 * packet, packets that lie side by side leave as they lie, and all of them
 * stay aligned to 8 bytes where the first one is.
 */
#ifndef TRIB_WIRE_FRAME_H
#define TRIB_WIRE_FRAME_H

#include "wire/parse.h"

#define WIRE_FRAME_START 8u /* bytes that tell what a frame is */
#define WIRE_FRAME_MAX WIRE_PACKET_MAX

/* In place of wire_seal. */
static inline void wire_seal_frame(void *data, uint32_t bytes)
{
	struct wire_header *header = data;

	header->magic = WIRE_MAGIC;
	header->check = bytes;
}

/*
 * The frame that begins at `data`, which is aligned to 8 bytes, of which
 * `have` bytes are there. Sound, and *bytes 0: more has to come. A fault is
 * found with the first bytes, and the stream cannot be read on behind it.
 */
static inline enum wire_fault wire_frame(const void *data, size_t have, uint32_t *bytes)
{
	const struct wire_header *header = data;

	*bytes = 0;
	if (have < WIRE_FRAME_START)
		return WIRE_SOUND;
	if (header->magic != WIRE_MAGIC)
		return WIRE_FAULT_MAGIC;
	if (header->check < WIRE_HEADER || header->check > WIRE_FRAME_MAX || header->check % 8)
		return WIRE_FAULT_LENGTH;
	if (have >= header->check)
		*bytes = header->check;
	return WIRE_SOUND;
}

#endif
