/* SPDX-License-Identifier: Apache-2.0 */
#include "path/tcp_link/frame_reader.h"

unsigned frame_reader_room(struct frame_reader *reader, struct iovec room[2])
{
	if (!reader->memory) {
		room[0] = (struct iovec){ (uint8_t *)&reader->next + reader->got,
			                  sizeof(reader->next) - reader->got };
		return 1;
	}
	room[0] = (struct iovec){ reader->memory + reader->got, reader->head.bytes - reader->got };
	room[1] = (struct iovec){ &reader->next, sizeof(reader->next) };
	return 2;
}

enum frame_event frame_reader_take(struct frame_reader *reader, size_t *bytes)
{
	size_t whole = reader->memory ? reader->head.bytes : sizeof(reader->next);
	size_t more = whole - reader->got < *bytes ? whole - reader->got : *bytes;

	reader->got += (uint32_t)more;
	*bytes -= more;
	if (reader->got < whole)
		return FRAME_MORE;
	reader->got = 0;
	if (reader->memory) {
		reader->whole = reader->memory;
		reader->memory = NULL;
		return FRAME_WHOLE;
	}
	reader->head = reader->next;
	return FRAME_HEAD;
}

void frame_reader_place(struct frame_reader *reader, void *memory)
{
	reader->memory = memory;
}
