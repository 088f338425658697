/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse: the one place where hostile input becomes trusted. wire_parse checks length,
 * magic, type, checksum and the form of each type's payload. The receiver checks what the
 * values mean for a job: cookie, epoch, child, position. The receiver also verifies the
 * checksum of DATA and RESULT, because only it knows the communicator they should
 * belong to.
 */
#ifndef TRIB_WIRE_PARSE_H
#define TRIB_WIRE_PARSE_H

#include "wire/checksum.h"

#include <stdbool.h>
#include <stddef.h>

enum wire_fault {
	WIRE_SOUND,
	WIRE_FAULT_LENGTH,  /* too short, too long, or not a multiple of 8 */
	WIRE_FAULT_MAGIC,   /* not ours, or another version */
	WIRE_FAULT_TYPE,    /* unknown type */
	WIRE_FAULT_CHECK,   /* corrupted */
	WIRE_FAULT_CONTENT, /* a field has a value that no correct sender sets */
	WIRE_FAULTS_END,
};

/* `data` is aligned to 8 bytes. A sound fragment must still pass wire_is_intact. */
enum wire_fault wire_parse(const void *data, size_t bytes);
/* Parses a packet that wire_frame found in a stream: without a checksum. */
enum wire_fault wire_parse_frame(const void *data, size_t bytes);

/* Verifies the checksum of a DATA or RESULT for this communicator and position. */
static inline bool wire_is_intact(const struct wire_header *header, size_t bytes,
                                  const struct wire_unsent *unsent)
{
	return header->check == wire_check_fragment(header, bytes, unsent);
}

/* Fills magic and check of a finished packet. Not for DATA and RESULT. */
void wire_seal(void *data, size_t bytes);
/* Fills magic and check of a finished DATA or RESULT. */
static inline void wire_seal_fragment(void *data, size_t bytes, const struct wire_unsent *unsent)
{
	struct wire_header *header = data;

	header->magic = WIRE_MAGIC;
	header->check = wire_check_fragment(data, bytes, unsent);
}

static inline const void *wire_payload(const struct wire_control *control)
{
	return control + 1;
}

#endif
