/* SPDX-License-Identifier: Apache-2.0 */
#include "path/verbs/split_order.h"

static bool overlap(uint64_t a, uint32_t a_bytes, uint64_t b, uint32_t b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes;
}

/* Two READs change only local memory. All else changes or reads the memory of the peer. */
static bool conflict(const struct split_entry *a, uint32_t a_offset, uint32_t a_bytes,
                     const struct split_entry *b, uint32_t b_offset, uint32_t b_bytes)
{
	if (a->request.op == SPLIT_READ && b->request.op == SPLIT_READ)
		return overlap(a->request.local + a_offset, a_bytes, b->request.local + b_offset,
		               b_bytes);
	return overlap(a->remote + a_offset, a_bytes, b->remote + b_offset, b_bytes);
}

static bool is_before(const struct split_chunk *chunk, uint64_t request, uint32_t offset)
{
	return chunk->request < request || (chunk->request == request && chunk->offset < offset);
}

bool split_order_may_send(const struct splitter *s, uint64_t request, uint32_t offset,
                          uint32_t length)
{
	const struct split_entry *entry = split_entry_of(s, request);

	for (unsigned i = 0; i < s->top; i++) {
		const struct split_chunk *c = &s->chunks[i];

		if (c->state != CHUNK_FREE && !c->note && is_before(c, request, offset) &&
		    conflict(entry, offset, length, split_entry_of(s, c->request), c->offset,
		             c->length))
			return false;
	}
	return true;
}

bool split_order_may_begin(const struct splitter *s, uint64_t request)
{
	const struct split_entry *entry = split_entry_of(s, request);

	for (uint64_t i = s->head; i < request; i++) {
		const struct split_entry *earlier = split_entry_of(s, i);

		if (earlier->done)
			continue;
		if (entry->request.fence &&
		    (earlier->request.op == SPLIT_READ || earlier->request.op == SPLIT_OTHER))
			return false;
		if (earlier->split || earlier->request.op == SPLIT_SEND)
			continue;
		if (earlier->request.op == SPLIT_OTHER ||
		    conflict(entry, 0, entry->request.length, earlier, 0, earlier->request.length))
			return false;
	}
	return true;
}
