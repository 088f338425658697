/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls: what ranks have called, compared and in words. All ranks have to call the same
 * collectives in the same order. docs/wire/calls.md says how a disagreement is found.
 */
#ifndef TRIB_WIRE_CALL_H
#define TRIB_WIRE_CALL_H

#include "wire/packet.h"

#include <stdbool.h>
#include <stddef.h>

#define WIRE_CALL_TEXT 128 /* bytes of a call in words, with the terminating zero */

/* The signature: the same for calls that are the same, have one number and follow the same calls,
 * and most likely for no others. A rank may end a call before others begin it; only the number
 * tells it from the next. */
uint32_t wire_call_sign(const struct wire_call *call);
/* Do the ranks agree on the collective? Number, rank and earlier calls may differ. */
bool wire_call_is_same(const struct wire_call *a, const struct wire_call *b);
/* What to add to the words of two calls that do not fit: nothing if their words differ. */
const char *wire_call_hint(const struct wire_call *a, const struct wire_call *b);
/* "allreduce of 362 i64, sum" */
const char *wire_call_text(const struct wire_call *call, char text[WIRE_CALL_TEXT]);

#endif
