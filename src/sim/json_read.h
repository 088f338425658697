/* SPDX-License-Identifier: Apache-2.0 */
/* As much of JSON as is needed to read one: in order, without a tree. */
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

/* The next character that is no blank; '\0' at the end. */
char json_peek(struct json_reader *reader);
/* Takes a character that has to come; `what` is what was expected, for the error. */
trib_status json_take(struct json_reader *reader, char wanted, const char *what);
/* A member's name with its colon; one that does not fit `room` comes out empty. */
trib_status json_name(struct json_reader *reader, char *name, size_t room);
/*
 * A text without its quotes; one that does not fit `room` comes out empty. What is escaped and
 * cannot be shown becomes a blank, what no byte holds a question mark.
 */
trib_status json_text(struct json_reader *reader, char *text, size_t room);
trib_status json_number(struct json_reader *reader, double *value);
/* Any value, to be left alone. */
trib_status json_skip(struct json_reader *reader);
/*
 * Whether another element follows before `close`, which is taken. `first` is
 * true before the first one, and is set to false.
 */
trib_status json_more(struct json_reader *reader, char close, bool *first, bool *more);

#endif
