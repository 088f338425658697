/* SPDX-License-Identifier: Apache-2.0 */
#include "link_stripes.h"

#include <string.h>

#define HEADER_MARK 0x7274u /* the low 16 bits of a header; the length is above */
#define SIZE_BITS 48
#define SLICE_ALIGN 64u

void stripes_init(struct stripes *stripes, unsigned n, bool sends)
{
	memset(stripes, 0, sizeof(*stripes));
	stripes->n = n;
	stripes->sends = sends;
}

static struct stripe_message *message_of(struct stripes *stripes, uint64_t number)
{
	return &stripes->messages[number % NCCL_REQUESTS_MAX];
}

/* The slice of a stream. */
static uint64_t slice(uint64_t size, unsigned streams, unsigned stream, uint64_t *first)
{
	uint64_t used = size / STRIPE_LEAST, each;

	used = used < 1 ? 1 : used > streams ? streams : used;
	each = size / used / SLICE_ALIGN * SLICE_ALIGN;
	*first = stream * each;
	if (stream >= used)
		return 0;
	return stream == used - 1 ? size - *first : each;
}

static uint64_t header_bytes(unsigned stream)
{
	return stream == 0 ? STRIPE_HEADER : 0;
}

/* Is the length of the stream's message known? */
static bool is_known(const struct stripes *stripes, unsigned stream)
{
	return stripes->cursors[stream].message < stripes->known;
}

/* Goes on to the next message if the stream has moved its share of this one. */
static void settle(struct stripes *stripes, unsigned stream)
{
	struct stripe_cursor *cursor = &stripes->cursors[stream];

	while (is_known(stripes, stream)) {
		struct stripe_message *message = message_of(stripes, cursor->message);
		uint64_t first, bytes = slice(message->size, stripes->n, stream, &first);

		if (cursor->at < header_bytes(stream) + bytes)
			return;
		message->left--;
		cursor->message++;
		cursor->at = 0;
	}
}

int stripes_post(struct stripes *stripes, void *data, uint64_t bytes)
{
	unsigned index = stripes->posted % NCCL_REQUESTS_MAX;
	struct stripe_message *message = &stripes->messages[index];
	uint64_t header = bytes << (64 - SIZE_BITS) | HEADER_MARK;

	if (message->used || bytes >> SIZE_BITS)
		return -1;
	*message = (struct stripe_message){
		.data = data, .room = bytes, .size = bytes, .left = stripes->n, .used = true
	};
	memcpy(message->header, &header, sizeof(header));
	stripes->posted++;
	if (stripes->sends) {
		stripes->known = stripes->posted;
		for (unsigned i = 0; i < stripes->n; i++)
			settle(stripes, i);
	}
	return (int)index;
}

unsigned stripes_next(struct stripes *stripes, unsigned stream, struct iovec pieces[2])
{
	struct stripe_cursor *cursor = &stripes->cursors[stream];
	struct stripe_message *message = message_of(stripes, cursor->message);
	uint64_t head = header_bytes(stream), first, bytes;
	unsigned n = 0;

	if (cursor->message >= stripes->posted)
		return 0;
	if (cursor->at < head)
		pieces[n++] = (struct iovec){ message->header + cursor->at, head - cursor->at };
	if (!is_known(stripes, stream))
		return n;
	bytes = slice(message->size, stripes->n, stream, &first);
	if (cursor->at > head) {
		first += cursor->at - head;
		bytes -= cursor->at - head;
	}
	if (bytes)
		pieces[n++] = (struct iovec){ message->data + first, bytes };
	return n;
}

/* The header of a message has come. */
static trib_status learn_size(struct stripes *stripes, struct stripe_message *message)
{
	uint64_t header;

	memcpy(&header, message->header, sizeof(header));
	if ((header & 0xffff) != HEADER_MARK)
		return status_fail(TRIB_ERR_REFUSED, "the peer sent a malformed message");
	message->size = header >> (64 - SIZE_BITS);
	if (message->size > message->room)
		return status_fail(
			TRIB_ERR_MISMATCH, "the peer sent %llu bytes, but the buffer has %llu",
			(unsigned long long)message->size, (unsigned long long)message->room);
	stripes->known++;
	for (unsigned i = 1; i < stripes->n; i++)
		settle(stripes, i);
	return TRIB_OK;
}

trib_status stripes_moved(struct stripes *stripes, unsigned stream, uint64_t bytes)
{
	struct stripe_cursor *cursor = &stripes->cursors[stream];
	trib_status status = TRIB_OK;

	cursor->at += bytes;
	if (stream == 0 && !is_known(stripes, 0) && cursor->at == STRIPE_HEADER)
		status = learn_size(stripes, message_of(stripes, cursor->message));
	if (status == TRIB_OK)
		settle(stripes, stream);
	return status;
}

uint64_t stripes_release(struct stripes *stripes, unsigned index)
{
	stripes->messages[index].used = false;
	return stripes->messages[index].size;
}
