/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process of NCCL's plugin hears before and on a connection: handles, hellos, notes, and the
 * lengths of messages. Whatever counts as good can be used.
 */
#include "fuzz.h"
#include "common/greeting.h"
#include "link/link_stripes.h"

#include <string.h>

static void take_handle(const uint8_t *data, size_t size)
{
	uint8_t bytes[NCCL_HANDLE_BYTES] = { 0 }, again[NCCL_HANDLE_BYTES];
	struct handle handle, same;
	char text[64];

	memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
	if (handle_read(bytes, &handle) != TRIB_OK)
		return;
	demand(strlen(udp_text(&handle.address, text, sizeof(text))) > 0);
	handle_write(&handle, again);
	demand(handle_read(again, &same) == TRIB_OK && udp_same(&handle.address, &same.address));
}

static void take_hello(const uint8_t *data, size_t size)
{
	struct handle handle = { .kind = GREETING_LINK };
	struct hello hello = { 0 };

	memcpy(&hello, data, size < sizeof(hello) ? size : sizeof(hello));
	if (hello_check(&hello, &handle) == TRIB_OK)
		demand(hello.stripe < hello.stripes && hello.stripes <= STRIPES_MAX);
}

static void take_note(const uint8_t *data, size_t size)
{
	struct note note = { 0 };

	memcpy(&note, data, size < sizeof(note) ? size : sizeof(note));
	if (note_check(&note, NOTE_JOIN) == TRIB_OK)
		demand(memchr(note.text, 0, sizeof(note.text)));
}

/* The bytes of a peer, dealt to three streams. What is not wanted now stays with the kernel. */
static void take_streams(const uint8_t *data, size_t size)
{
	static uint8_t buffer[2][200000];
	struct stripes stripes;
	unsigned idle = 0;

	stripes_init(&stripes, 3, false);
	stripes_post(&stripes, buffer[0], sizeof(buffer[0]));
	stripes_post(&stripes, buffer[1], sizeof(buffer[1]));
	for (unsigned stream = 0; size && idle < stripes.n; stream = (stream + 1) % stripes.n) {
		struct iovec pieces[2];
		unsigned n = stripes_next(&stripes, stream, pieces);
		size_t bytes;

		idle = n ? 0 : idle + 1;
		if (!n)
			continue;
		demand(pieces[0].iov_len > 0);
		bytes = pieces[0].iov_len < size ? pieces[0].iov_len : size;
		memcpy(pieces[0].iov_base, data, bytes);
		data += bytes;
		size -= bytes;
		if (stripes_moved(&stripes, stream, bytes) != TRIB_OK)
			return;
	}
	for (unsigned i = 0; i < 2; i++)
		demand(!stripes_done(&stripes, i) ||
		       stripes_release(&stripes, i) <= sizeof(buffer[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	take_handle(data, size);
	take_hello(data, size);
	take_note(data, size);
	take_streams(data, size);
	return 0;
}
