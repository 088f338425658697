/* SPDX-License-Identifier: Apache-2.0 */
/*
 * greeting: what processes tell each other before they have a connection. Pure: bytes in memory.
 *
 * A handle says where a process listens; NCCL carries it to the others. A hello is the first
 * message on a socket. The cookie of the handle proves that NCCL has told the caller. A note is
 * what nodes say while they agree on a collective communicator. All may be hostile. Little-endian.
 */
#ifndef TRIB_NCCL_GREETING_H
#define TRIB_NCCL_GREETING_H

#include "nccl_abi.h"

#include "path/udp.h"

#define GREETING_VERSION 1u
#define GREETING_COOKIE 16u
#define STRIPES_MAX 8u /* sockets of a connection */
#define NOTE_TEXT 232u

/* A link over sockets, a collective, a link over several paths. */
enum greeting_kind { GREETING_LINK = 1, GREETING_COLLECTIVE, GREETING_PATHS };

struct handle {
	enum greeting_kind kind;
	struct udp_address address;
	uint8_t cookie[GREETING_COOKIE];
	/* Names the attempt to connect, in the memory of the process that connects; 0: none yet. */
	uint64_t attempt;
};

struct hello {
	uint32_t magic;
	uint16_t version, kind;
	uint8_t cookie[GREETING_COOKIE];
	uint64_t caller;  /* random: the sockets of one connection have the same */
	uint16_t stripe;  /* number of the socket */
	uint16_t stripes; /* of the connection */
	uint32_t rank;    /* collective: of the caller */
};
_Static_assert(sizeof(struct hello) == 40, "no holes");

enum note_step { NOTE_READY = 1, NOTE_JOIN, NOTE_JOINED, NOTE_USE };

struct note {
	uint32_t magic;
	uint16_t step;
	uint16_t ok;
	uint64_t key;         /* NOTE_JOIN: of the communicator */
	char text[NOTE_TEXT]; /* if not ok: why */
	uint64_t unused;
};
_Static_assert(sizeof(struct note) == 256, "no holes");

void handle_write(const struct handle *handle, void *bytes);
/* An error says what is wrong with the handle. */
trib_status handle_read(const void *bytes, struct handle *handle);
/* Changes the attempt alone. */
void handle_set_attempt(void *bytes, uint64_t attempt);

void hello_write(struct hello *hello, const struct handle *handle);
/* Does the caller know the cookie, and is all of it possible? */
trib_status hello_check(const struct hello *hello, const struct handle *handle);

void note_write(struct note *note, enum note_step step, bool ok, const char *text);
/* An error if it is no note of this step. `text` of a good note ends with a zero and is printable.
 */
trib_status note_check(struct note *note, enum note_step step);

#endif
