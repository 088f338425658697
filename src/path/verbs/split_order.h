/* SPDX-License-Identifier: Apache-2.0 */
/* split_order: which chunks and requests must not overtake each other. Pure. */
#ifndef TRIB_PATH_VERBS_SPLIT_ORDER_H
#define TRIB_PATH_VERBS_SPLIT_ORDER_H

#include "path/verbs/splitter.h"

static inline struct split_entry *split_entry_of(const struct splitter *s, uint64_t request)
{
	return &s->entries[request & (s->config.capacity - 1)];
}

/* Does no earlier chunk that is not done have bytes in common with this one? */
bool split_order_may_send(const struct splitter *s, uint64_t request, uint32_t offset,
                          uint32_t length);
/* May the request begin to send chunks, for all that earlier ones on the own QP do? */
bool split_order_may_begin(const struct splitter *s, uint64_t request);

#endif
