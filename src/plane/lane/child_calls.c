/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/lane/child_calls.h"

#include "plane/core/failure.h"
#include "wire/call.h"

#include <stdarg.h>
#include <stdio.h>

/* The child if it is a rank; else the rank below it that has called. */
static const char *caller(const struct agg_lane *lane, unsigned child, char *out, size_t size)
{
	if (!lane->comm->children[child].join.height)
		return comm_describe_child(lane->comm, child, out, size);
	snprintf(out, size, "rank %u", lane->calls[child].rank);
	return out;
}

static void fail(struct agg_lane *lane, unsigned child, unsigned other)
{
	char one[120], two[120], theirs[WIRE_CALL_TEXT], others[WIRE_CALL_TEXT];

	comm_set_failed(lane->comm, TRIB_ERR_MISMATCH, child,
	                "ranks called different collectives: %s called %s, %s called %s, as call "
	                "#%u",
	                caller(lane, child, one, sizeof(one)),
	                wire_call_text(&lane->calls[child], theirs),
	                caller(lane, other, two, sizeof(two)),
	                wire_call_text(&lane->calls[other], others), lane->calls[child].number);
}

/* Two children agree on a call, but not on the calls before it: they are asked for those, one by
 * one. */
static void look_back(struct agg_lane *lane, unsigned child, unsigned other, uint64_t now)
{
	uint32_t number = lane->calls[child].number;
	char one[120], two[120];

	lane->earlier = number; /* plus 1, as in struct wire_status: the call before it */
	child_calls_dispute(
		lane, child, now,
		"ranks called different collectives: %s and %s have not made the same calls before "
		"call #%u",
		caller(lane, child, one, sizeof(one)), caller(lane, other, two, sizeof(two)),
		number);
}

void child_calls_take(struct agg_lane *lane, unsigned child, const struct wire_call *call,
                      uint64_t now)
{
	struct wire_call *mine = &lane->calls[child];

	*mine = *call;
	for (uint64_t left = mine->kind ? lane->comm->present : 0; left; left &= left - 1) {
		unsigned other = (unsigned)__builtin_ctzll(left);
		const struct wire_call *theirs = &lane->calls[other];

		if (!theirs->kind || theirs->number != mine->number)
			continue;
		if (!wire_call_is_same(theirs, mine)) {
			fail(lane, child, other);
			return;
		}
		if (theirs->before != mine->before)
			look_back(lane, child, other, now);
	}
	/* Reports that name the calls come much sooner than half of the time for silence. */
	if (lane->disputed_at &&
	    now > lane->disputed_at + (uint64_t)lane->comm->dead_after_ms * 500000)
		comm_set_failed(lane->comm, TRIB_ERR_MISMATCH, child, "%s", lane->dispute);
}

/* The first call that a child waits for; NULL: none. */
static const struct wire_call *first_open(const struct agg_lane *lane)
{
	const struct wire_call *first = NULL;

	for (uint64_t left = lane->comm->present; left; left &= left - 1) {
		const struct wire_call *call = &lane->calls[__builtin_ctzll(left)];

		if (call->kind && call->open &&
		    (!first || (int32_t)(call->number - first->number) < 0))
			first = call;
	}
	return first;
}

uint32_t child_calls_asked(const struct agg_lane *lane)
{
	const struct wire_call *first = first_open(lane);

	if (lane->earlier)
		return lane->earlier;
	if (!first || (lane->parent_asks && (int32_t)(lane->parent_asks - 1 - first->number) < 0))
		return lane->parent_asks;
	return first->number + 1;
}

struct wire_call child_calls_above(const struct agg_lane *lane)
{
	const struct wire_call *first = first_open(lane);

	for (uint64_t left = lane->parent_asks ? lane->comm->present : 0; left; left &= left - 1) {
		const struct wire_call *call = &lane->calls[__builtin_ctzll(left)];

		if (call->kind && call->number == lane->parent_asks - 1)
			return *call;
	}
	return first ? *first : (struct wire_call){ 0 };
}

void child_calls_dispute(struct agg_lane *lane, unsigned child, uint64_t now, const char *format,
                         ...)
{
	va_list args;

	if (!lane->disputed_at) {
		lane->disputed_at = now;
		va_start(args, format);
		vsnprintf(lane->dispute, sizeof(lane->dispute), format, args);
		va_end(args);
	}
	/* Only ranks that wait in a collective of libtributary say what they called. */
	if (!lane->comm->engine->calls)
		comm_set_failed(lane->comm, TRIB_ERR_MISMATCH, child, "%s", lane->dispute);
}
