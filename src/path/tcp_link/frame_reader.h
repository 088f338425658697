/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_reader: the messages of a TCP connection, each behind a head. Pure: the caller receives
 * into the memory that the reader names, so that a message is never copied.
 */
#ifndef TRIB_PATH_TCP_LINK_FRAME_READER_H
#define TRIB_PATH_TCP_LINK_FRAME_READER_H

#include "wire/path_packet.h"

#include <stddef.h>
#include <sys/uio.h>

enum frame_event {
	FRAME_MORE,  /* nothing is complete: receive more */
	FRAME_HEAD,  /* `head` is complete: call frame_reader_place, or end the connection */
	FRAME_WHOLE, /* the message of `head` is complete, in `whole` */
};

/* Zeroed memory waits for the first head. */
struct frame_reader {
	struct path_frame head; /* of the message that comes now */
	struct path_frame next; /* comes while the message does not */
	uint8_t *memory;        /* where it goes; NULL: a head comes */
	uint8_t *whole;         /* the last message that is complete */
	uint32_t got;           /* bytes of the head, or of the message */
};

/* Where the next bytes go. Returns how many parts. */
unsigned frame_reader_room(struct frame_reader *reader, struct iovec room[2]);
/* *bytes of them have come; what is left of them is not looked at yet. Call it until FRAME_MORE. */
enum frame_event frame_reader_take(struct frame_reader *reader, size_t *bytes);
/* The message goes to this memory of `head.bytes`. */
void frame_reader_place(struct frame_reader *reader, void *memory);

#endif
