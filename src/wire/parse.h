/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input from the network is hostile until it has passed wire_parse: length,
 * magic, type, checksum, and the form of each type's payload. What the values
 * mean for a job (cookie, epoch, child, position) is for the receiver to check,
 * and of DATA and RESULT the checksum too: only who knows whose they are can.
 */
#ifndef TRIB_WIRE_PARSE_H
#define TRIB_WIRE_PARSE_H

#include "wire/packet.h"

#include <stdbool.h>
#include <stddef.h>

enum wire_fault {
	WIRE_SOUND,
	WIRE_FAULT_LENGTH,  /* too short, too long, or not a multiple of 8 */
	WIRE_FAULT_MAGIC,   /* not ours, or another version */
	WIRE_FAULT_TYPE,    /* unknown type */
	WIRE_FAULT_CHECK,   /* corrupted */
	WIRE_FAULT_CONTENT, /* a field that no sender sets so */
	WIRE_FAULTS_END,
};

/* `data` is aligned to 8 bytes. A fragment that is sound has yet to pass wire_is_intact. */
enum wire_fault wire_parse(const void *data, size_t bytes);
/* The same for what wire_frame cut out of a stream: there is no checksum. */
enum wire_fault wire_parse_frame(const void *data, size_t bytes);

/* Is this DATA or RESULT what its sender sealed so? */
bool wire_is_intact(const struct wire_header *header, size_t bytes,
                    const struct wire_unsent *unsent);

/* Fills magic and check, the last thing before a datagram leaves. Not for fragments. */
void wire_seal(void *data, size_t bytes);
/* The same for DATA and RESULT. */
void wire_seal_fragment(void *data, size_t bytes, const struct wire_unsent *unsent);

const char *wire_fault_name(enum wire_fault fault);

static inline const void *wire_payload(const struct wire_control *control)
{
	return control + 1;
}

#endif
