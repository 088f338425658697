/* SPDX-License-Identifier: Apache-2.0 */
/* The own QP fails, and is connected again: see splitter.h. */
#include "path/verbs/split_order.h"

void splitter_own_down(struct splitter *s)
{
	s->own_down = true;
}

static bool is_lost(const struct split_entry *entry)
{
	return entry->posted && !entry->done;
}

/* The first request behind all that the peer's QP is known to have executed: it goes in order. */
static uint64_t first_unknown(const struct splitter *s, uint64_t consumed)
{
	uint64_t first = s->head;

	for (uint64_t i = s->head; i < s->posted; i++) {
		const struct split_entry *entry = split_entry_of(s, i);

		if (is_lost(entry) && entry->request.consumes && entry->receive < consumed)
			first = i + 1;
	}
	return first;
}

bool splitter_own_up(struct splitter *s, unsigned own, uint64_t consumed)
{
	uint64_t unknown = first_unknown(s, consumed);
	bool well = true;

	for (uint64_t i = s->head; i < s->posted; i++) {
		struct split_entry *entry = split_entry_of(s, i);

		if (!is_lost(entry))
			continue;
		if (i < unknown && entry->request.op != SPLIT_READ)
			splitter_whole_done(s, i, SPLIT_OK);
		else
			entry->posted = false;
		well = well && entry->request.op != SPLIT_OTHER;
	}
	s->whole = s->head;
	s->own = own;
	s->own_down = false;
	return well;
}
