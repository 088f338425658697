/* SPDX-License-Identifier: Apache-2.0 */
/* byte_buffer: bytes that wait to be sent, or were received. It grows, and is consumed from the
 * front. Its data is 16-byte aligned as long as it is consumed in multiples of 16, and 8-byte
 * aligned for multiples of 8. */
#ifndef TRIB_SPARSE_WIRE_BYTE_BUFFER_H
#define TRIB_SPARSE_WIRE_BYTE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct byte_buffer {
	uint8_t *data;
	size_t first, used, room; /* bytes [first, used) are filled */
};

static inline size_t buffer_bytes(const struct byte_buffer *buffer)
{
	return buffer->used - buffer->first;
}

static inline uint8_t *buffer_front(const struct byte_buffer *buffer)
{
	return buffer->data + buffer->first;
}

/* Room for `n` more bytes behind those that are filled. False: no memory. */
static inline bool buffer_reserve(struct byte_buffer *buffer, size_t n)
{
	size_t held = buffer_bytes(buffer), room = buffer->room ? buffer->room : 4096;
	uint8_t *data;

	if (buffer->room - buffer->used >= n)
		return true;
	if (buffer->first && buffer->room - held >= n && buffer->first >= held) {
		memcpy(buffer->data, buffer_front(buffer), held);
		buffer->first = 0;
		buffer->used = held;
		return true;
	}
	while (room < held + n)
		room *= 2;
	data = malloc(room);
	if (!data)
		return false;
	if (held)
		memcpy(data, buffer_front(buffer), held);
	free(buffer->data);
	*buffer = (struct byte_buffer){ .data = data, .used = held, .room = room };
	return true;
}

static inline void buffer_consume(struct byte_buffer *buffer, size_t n)
{
	buffer->first += n;
	if (buffer->first == buffer->used)
		buffer->first = buffer->used = 0;
}

static inline void buffer_free(struct byte_buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct byte_buffer){ 0 };
}

#endif
