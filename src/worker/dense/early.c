/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results that come before their round is posted here. This happens if this rank contributes
 * nothing to the round. A reliable path brings a result only once, so it has to be kept: at most
 * one for each cell of the window.
 */
#include "worker/dense/stream_internal.h"

#include <stdlib.h>
#include <string.h>

/* The result kept for a cell. */
struct early {
	struct wire_header *packet; /* with its payload; NULL: none */
	uint32_t bytes;             /* of the payload */
	uint64_t position;
};

static struct early *early_of(struct stream *stream, uint64_t position)
{
	return &stream->early[position % stream->cells];
}

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
	free(early->packet); /* of a position that has passed */
	early->packet = malloc(WIRE_HEADER + bytes);
	if (!early->packet)
		return false;
	early->bytes = bytes;
	early->position = position;
	memcpy(early->packet, header, WIRE_HEADER + bytes);
	return true;
}

struct wire_header *early_take(struct stream *stream, uint64_t position, uint32_t *bytes)
{
	struct early *early = early_of(stream, position);
	struct wire_header *packet = early->packet;

	if (!packet || early->position != position)
		return NULL;
	*bytes = early->bytes;
	early->packet = NULL;
	return packet;
}

void early_free(struct stream *stream)
{
	for (uint32_t i = 0; stream->early && i < stream->cells; i++)
		free(stream->early[i].packet);
	free(stream->early);
	stream->early = NULL;
}
