/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/stream_internal.h"

#include <stdlib.h>
#include <string.h>

struct early {
	uint32_t bytes; /* of the payload */
	uint32_t padding;
	struct wire_header header; /* the payload lies behind it */
};

static struct early **place_of(struct stream *stream, uint64_t position)
{
	return &stream->early[position % stream->cells];
}

/* At most one a cell: what the window does not let be is not kept. */
bool early_keep(struct stream *stream, const struct wire_header *header, uint32_t bytes)
{
	uint64_t position = wire_position(header);
	struct early *early;

	if (position < stream->next_base || position - stream->done >= stream->cells)
		return true;
	if (!stream->early && !(stream->early = calloc(stream->cells, sizeof(*stream->early))))
		return false;
	if (*place_of(stream, position))
		return true;
	early = malloc(sizeof(*early) + bytes);
	if (!early)
		return false;
	early->bytes = bytes;
	memcpy(&early->header, header, WIRE_HEADER + bytes);
	*place_of(stream, position) = early;
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
		struct early *early = *place_of(stream, base + i);

		if (!early || wire_position(&early->header) != base + i)
			continue;
		*place_of(stream, base + i) = NULL;
		ok &= stream_on_result(stream, &early->header, early->bytes, now);
		free(early);
	}
	return ok;
}

void early_free(struct stream *stream)
{
	for (uint32_t i = 0; stream->early && i < stream->cells; i++)
		free(stream->early[i]);
	free(stream->early);
	stream->early = NULL;
}
