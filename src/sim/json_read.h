/* SPDX-License-Identifier: Apache-2.0 */
/* json_read: a small JSON reader: it reads values in order and builds no tree. */
#ifndef TRIB_SIM_JSON_READ_H
#define TRIB_SIM_JSON_READ_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

#define JSON_DEPTH_MAX 32u

struct json_reader {
	const char *at;
	unsigned line, depth;
};

trib_status json_fail(const struct json_reader *reader, const char *what);

/* The next non-blank character; '\0': the end. */
char json_peek(struct json_reader *reader);
/* Takes the expected character. `what` describes it in the error. */
trib_status json_take(struct json_reader *reader, char wanted, const char *what);
/* Reads a member's name and colon; a name that does not fit `room` becomes empty. */
trib_status json_name(struct json_reader *reader, char *name, size_t room);
/*
 * Reads a string without its quotes; one that does not fit `room` becomes empty. An escaped
 * control character becomes a blank, an escaped character above one byte a question mark.
 */
trib_status json_text(struct json_reader *reader, char *text, size_t room);
trib_status json_number(struct json_reader *reader, double *value);
/* Skips a value. */
trib_status json_skip(struct json_reader *reader);
/*
 * Does another element follow? If not, takes `close`. `first` is true before the first
 * element, and is set to false.
 */
trib_status json_more(struct json_reader *reader, char close, bool *first, bool *more);

#endif
