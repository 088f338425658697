/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of a TCP connection between ranks. The first byte says how long pieces are; the rest
 * comes in such pieces. Nothing is written beyond the head or the message, and every byte counts
 * once.
 */
#include "fuzz.h"
#include "path/tcp_link/frame_reader.h"

#include <string.h>

#define LONGEST 5000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame_reader reader = { 0 };
	size_t piece = size ? 1 + (size_t)data[0] * 8 : 1, at = 1, whole = 0;
	uint8_t *memory = NULL;

	while (at < size) {
		struct iovec room[2];
		unsigned n = frame_reader_room(&reader, room);
		size_t left = 0;
		enum frame_event event;

		demand(n == (memory ? 2 : 1));
		for (unsigned i = 0; i < n && at < size; i++) {
			size_t part =
				room[i].iov_len < piece - left ? room[i].iov_len : piece - left;

			part = part < size - at ? part : size - at;
			memcpy(room[i].iov_base, data + at, part);
			at += part;
			left += part;
		}
		while ((event = frame_reader_take(&reader, &left)) != FRAME_MORE) {
			if (event == FRAME_WHOLE) {
				demand(reader.whole == memory);
				whole += sizeof(reader.head) + reader.head.bytes;
				free(memory);
				memory = NULL;
			} else if (!reader.head.bytes || reader.head.bytes > LONGEST) {
				return 0; /* the connection ends */
			} else {
				memory = malloc(reader.head.bytes);
				frame_reader_place(&reader, memory);
			}
		}
		demand(!left);
	}
	demand(whole <= size);
	free(memory);
	return 0;
}
