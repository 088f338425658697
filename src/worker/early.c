/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/stream_internal.h"

#include <stdlib.h>
#include <string.h>

/* A cell's. */
struct early {
	struct wire_header *packet; /* NULL: none; the payload lies behind it */
	uint32_t bytes;             /* of the payload */
	uint64_t position;
};

static struct early *early_of(struct stream *stream, uint64_t position)
{
	return &stream->early[position % stream->cells];
}

/* At most one a cell: what the window does not let be is not kept. */
bool early_keep(struct stream *stream, const struct wire_header *header, uint32_t bytes)
{
	uint64_t position = stream_position(stream, header);
	struct early *early;

	if (position < stream->next_base || position - stream->done >= stream->cells)
		return true;
	if (!stream->early && !(stream->early = calloc(stream->cells, sizeof(*stream->early))))
		return false;
	early = early_of(stream, position);
	if (early->packet && early->position >= stream->next_base)
		return true;
	free(early->packet); /* of a round that was another one here */
	early->packet = malloc(WIRE_HEADER + bytes);
	if (!early->packet)
		return false;
	early->bytes = bytes;
	early->position = position;
	memcpy(early->packet, header, WIRE_HEADER + bytes);
	return true;
}

bool early_take(struct stream *stream, const struct round *round, uint64_t now)
{
	uint64_t base = round->base, n = round_fragments(round);
	bool ok = true;

	if (!stream->early)
		return true;
	/* With the last of them the round may be over and gone. */
	for (uint64_t i = 0; i < n && i < stream->cells; i++) {
		struct early *early = early_of(stream, base + i);
		struct wire_header *packet = early->packet;

		if (!packet || early->position != base + i)
			continue;
		early->packet = NULL;
		ok &= stream_on_result(stream, packet, early->bytes, now);
		free(packet);
	}
	return ok;
}

void early_free(struct stream *stream)
{
	for (uint32_t i = 0; stream->early && i < stream->cells; i++)
		free(stream->early[i].packet);
	free(stream->early);
	stream->early = NULL;
}
