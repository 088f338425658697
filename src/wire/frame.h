/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame: packets on a byte stream, one after the other. TCP has its own checksum, so the
 * field `check` carries the packet's length instead. A frame is therefore just a packet:
 * adjacent packets are sent without copying, and all stay aligned to 8 bytes if the
 * first one is.
 */
#ifndef TRIB_WIRE_FRAME_H
#define TRIB_WIRE_FRAME_H

#include "wire/parse.h"

#define WIRE_FRAME_START 8u /* bytes that hold magic and length */
#define WIRE_FRAME_MAX WIRE_PACKET_MAX

/* Replaces wire_seal on a stream. */
static inline void wire_seal_frame(void *data, uint32_t bytes)
{
	struct wire_header *header = data;

	header->magic = WIRE_MAGIC;
	header->check = bytes;
}

/*
 * Finds the frame at `data` (aligned to 8 bytes), of which `have` bytes have arrived.
 * WIRE_SOUND with *bytes 0: more must arrive. After a fault the stream is unreadable.
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
