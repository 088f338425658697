/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON to a stream: commas, quotes and line breaks are done here. A name
 * is NULL inside of a list. Objects in a list stand on a line each, and so do
 * the members of an object that has a name. A compact writer, for readers of
 * lines, puts no blanks and no line breaks. A line break ends what is outermost.
 */
#ifndef TRIB_OPTIONS_JSON_WRITER_H
#define TRIB_OPTIONS_JSON_WRITER_H

#include "base/status.h"

#include <stdbool.h>
#include <stdio.h>

#define JSON_DEPTH_MAX 8u

struct json_writer {
	FILE *out;
	bool is_compact;
	unsigned depth;
	char brackets[JSON_DEPTH_MAX];  /* that close what is open */
	bool filled[JSON_DEPTH_MAX];    /* something is in it already */
	bool has_lines[JSON_DEPTH_MAX]; /* its values stand on a line each */
};

/*
 * Finds out before a measurement whether the file, of JSON or of a plot, can be
 * written. NULL and "-" can.
 */
trib_status output_try(const char *path);

/* Begins the outermost object; "-" is the standard output. */
trib_status json_start(struct json_writer *json, const char *path);
/* Ends the outermost object and closes the file. */
trib_status json_finish(struct json_writer *json, const char *path);

void json_open_object(struct json_writer *json, const char *name);
void json_open_list(struct json_writer *json, const char *name);
/* Closes the object or list that was opened last. */
void json_close(struct json_writer *json);

/* `format` is printf's for a double. A number that is not finite becomes null. */
void json_put_number(struct json_writer *json, const char *name, const char *format, double value);
void json_put_count(struct json_writer *json, const char *name, unsigned long long value);
void json_put_bool(struct json_writer *json, const char *name, bool value);
/* NULL becomes null. */
void json_put_text(struct json_writer *json, const char *name, const char *text);
void json_put_numbers(struct json_writer *json, const char *name, const char *format,
                      const double *values, unsigned n);

#endif
