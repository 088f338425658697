/* SPDX-License-Identifier: Apache-2.0 */
#include "path/channel/messages.h"

#include <stdlib.h>
#include <string.h>

/* An empty bitmap of `words`; the old one is used if it is long enough. */
static bool bitmap_renew(uint64_t **map, size_t have, size_t words)
{
	if (have < words) {
		free(*map);
		*map = malloc(words * sizeof(**map));
		if (!*map)
			return false;
	}
	memset(*map, 0, words * sizeof(**map));
	return true;
}

bool outgoing_start(struct outgoing *out, const void *data, uint32_t bytes, uint32_t unit)
{
	uint32_t units = message_units(bytes, unit);
	size_t words = bitmap_words(units), have = out->words;

	out->words = 0;
	if (!bitmap_renew(&out->acked, have, words) || !bitmap_renew(&out->lost, have, words))
		return false;
	*out = (struct outgoing){ .data = data,
		                  .bytes = bytes,
		                  .units = units,
		                  .words = have > words ? have : words,
		                  .acked = out->acked,
		                  .lost = out->lost };
	return true;
}

void outgoing_free(struct outgoing *out)
{
	free(out->acked);
	free(out->lost);
}

static bool clear_lost(struct outgoing *out, uint32_t unit)
{
	if (!bitmap_get(out->lost, unit))
		return false;
	bitmap_clear(out->lost, unit);
	out->n_lost--;
	return true;
}

bool outgoing_acked(struct outgoing *out, uint32_t unit)
{
	if (bitmap_get(out->acked, unit))
		return false;
	bitmap_set(out->acked, unit);
	out->n_acked++;
	return clear_lost(out, unit);
}

bool outgoing_lost(struct outgoing *out, uint32_t unit)
{
	if (bitmap_get(out->acked, unit) || bitmap_get(out->lost, unit))
		return false;
	bitmap_set(out->lost, unit);
	if (!out->n_lost++ || unit < out->lost_from)
		out->lost_from = unit;
	return true;
}

struct chunk outgoing_take_lost(struct outgoing *out, uint32_t most)
{
	struct chunk chunk = { 0 };
	size_t first = bitmap_find(out->lost, out->units, out->lost_from, true);

	chunk.first = (uint32_t)first;
	for (; first < out->units && chunk.n < most && clear_lost(out, (uint32_t)first); first++)
		chunk.n++;
	out->lost_from = (uint32_t)first;
	return chunk;
}

uint32_t outgoing_finish(struct outgoing *out)
{
	uint32_t lost = out->n_lost;

	out->n_acked = out->next = out->units;
	out->n_lost = 0;
	return lost;
}

bool incoming_start(struct incoming *in, void *memory, uint32_t bytes, uint32_t unit)
{
	uint32_t units = message_units(bytes, unit);
	size_t words = bitmap_words(units), have = in->words;

	in->words = 0;
	if (!bitmap_renew(&in->came, have, words))
		return false;
	*in = (struct incoming){ .state = INCOMING_OPEN,
		                 .memory = memory,
		                 .bytes = bytes,
		                 .units = units,
		                 .words = have > words ? have : words,
		                 .came = in->came };
	return true;
}

void incoming_free(struct incoming *in)
{
	free(in->came);
}

bool incoming_take(struct incoming *in, uint32_t unit)
{
	if (bitmap_get(in->came, unit))
		return false;
	bitmap_set(in->came, unit);
	if (++in->n_came == in->units)
		in->state = INCOMING_WHOLE;
	return true;
}
