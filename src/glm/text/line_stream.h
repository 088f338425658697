/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_stream: a file line by line. Its buffer grows if a line is longer, up to a limit. A byte
 * order mark at the start of the file is left out.
 */
#ifndef TRIB_GLM_LINE_STREAM_H
#define TRIB_GLM_LINE_STREAM_H

#include "glm/text/byte_stream.h"

struct line {
	char *text; /* without newline and carriage return; text[length] is 0 */
	size_t length;
	bool no_newline; /* the file ends after this line */
	bool too_long;   /* longer than the limit: `text` has only its beginning */
};

struct line_stream {
	struct byte_stream *bytes;
	char *buffer;
	size_t room, limit; /* bytes; one byte more is there for the 0 */
	size_t at, n;       /* the bytes that are still to be given: buffer[at .. at + n) */
	bool end;
	uint64_t number; /* of the line that line_next gave last, from 1 */
};

/* `limit`: the longest line in bytes. */
trib_status line_stream_open(struct line_stream *lines, const char *path, uint64_t limit);

/*
 * The text stays until the next call. *more is false after the last line. An error has no file name
 * and no line number in it; the fault is in the line after `number`.
 */
trib_status line_next(struct line_stream *lines, struct line *line, bool *more);

void line_stream_close(struct line_stream *lines);

#endif
