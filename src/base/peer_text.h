/* SPDX-License-Identifier: Apache-2.0 */
/* Text that a peer has sent: it goes into logs, terminals and JSON, so it is cleaned first. */
#ifndef TRIB_BASE_PEER_TEXT_H
#define TRIB_BASE_PEER_TEXT_H

#include <stddef.h>

/*
 * Copies text of up to `most` bytes, which need not end with a zero. Bytes that are not printable
 * ASCII become '?'. `out` always ends with a zero. Returns `out`.
 */
char *peer_text(char *out, size_t room, const char *from, size_t most);
/* The same for a name: all but letters, digits and ".-_" become '_'. */
char *peer_name(char *out, size_t room, const char *from, size_t most);

#endif
