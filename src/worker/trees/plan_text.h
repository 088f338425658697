/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a plan, put together from packets. Parts may come in any order, repeatedly, or not at
 * all. Pure.
 */
#ifndef TRIB_WORKER_TREES_PLAN_TEXT_H
#define TRIB_WORKER_TREES_PLAN_TEXT_H

#include "wire/packet.h"

#include <stdbool.h>
#include <string.h>

struct plan_text {
	uint32_t generation, bytes; /* of the plan whose parts have come; 0: none */
	uint32_t have;              /* a bit for each part that has come */
	char text[WIRE_PLAN_MAX];
};

_Static_assert(WIRE_PLAN_MAX / WIRE_PLAN_PART <= 32, "a bit for each part");

static inline uint32_t plan_text_parts(uint32_t bytes)
{
	return (bytes + WIRE_PLAN_PART - 1) / WIRE_PLAN_PART;
}

/* Takes a part, which is zero-terminated. True: `text` is complete, and zero-terminated. */
static inline bool plan_text_take(struct plan_text *plan, const struct wire_welcome *welcome,
                                  const char *part)
{
	uint32_t from = welcome->text_from, bytes = welcome->text_bytes, length;

	if (!welcome->generation || bytes >= WIRE_PLAN_MAX || from >= bytes ||
	    from % WIRE_PLAN_PART)
		return false;
	length = bytes - from < WIRE_PLAN_PART ? bytes - from : WIRE_PLAN_PART;
	if (strlen(part) != length)
		return false;
	if (plan->generation != welcome->generation || plan->bytes != bytes) {
		plan->generation = welcome->generation;
		plan->bytes = bytes;
		plan->have = 0;
	}
	memcpy(plan->text + from, part, length);
	plan->text[bytes] = '\0';
	plan->have |= 1u << from / WIRE_PLAN_PART;
	return plan->have == (1ull << plan_text_parts(bytes)) - 1;
}

#endif
