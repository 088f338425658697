/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/text/line_stream.h"

#include "base/byte_order_mark.h"

#include <stdlib.h>
#include <string.h>

#define LINE_ROOM (1u << 18)
#define LINE_LEAST 64u

trib_status line_stream_open(struct line_stream *lines, const char *path, uint64_t limit)
{
	*lines = (struct line_stream){ .limit = limit < LINE_LEAST ? LINE_LEAST : (size_t)limit };
	lines->room = lines->limit < LINE_ROOM ? lines->limit : LINE_ROOM;
	lines->buffer = malloc(lines->room + 1);
	if (!lines->buffer)
		return status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory for its lines", path);
	return byte_stream_open(&lines->bytes, path);
}

/* Room behind the bytes of an unfinished line. Without room, the line is as long as the limit. */
static trib_status room_make(struct line_stream *lines, size_t *free_bytes)
{
	if (lines->at) {
		memmove(lines->buffer, lines->buffer + lines->at, lines->n);
		lines->at = 0;
	}
	if (lines->n == lines->room && lines->room < lines->limit) {
		size_t more = lines->room > lines->limit / 2 ? lines->limit : 2 * lines->room;
		char *buffer = realloc(lines->buffer, more + 1);

		if (!buffer)
			return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a line of %zu MiB",
			                   more >> 20);
		lines->buffer = buffer;
		lines->room = more;
	}
	*free_bytes = lines->room - lines->n;
	return TRIB_OK;
}

/* Gives the bytes up to `length`, and goes on after `skip` more. */
static void line_give(struct line_stream *lines, struct line *line, size_t length, size_t skip)
{
	line->text = lines->buffer + lines->at;
	line->no_newline = !skip;
	lines->at += length + skip;
	lines->n -= length + skip;
	if (length && line->text[length - 1] == '\r')
		length--;
	line->text[length] = 0;
	line->length = length;
	/* After a line that was too long, the buffer may have more room than the limit. */
	line->too_long = length > lines->limit;
	lines->number++;
}

/* The beginning of a line that is too long stays in the buffer; the rest of the line is dropped. */
static trib_status line_drop(struct line_stream *lines, struct line *line)
{
	char piece[4096], *newline = NULL;
	size_t kept = lines->n < LINE_LEAST ? lines->n : LINE_LEAST;
	trib_status status;

	line_give(lines, line, lines->n, 0);
	line->too_long = true;
	line->length = kept;
	line->text[kept] = 0;
	while (!newline) {
		size_t got;

		if ((status = byte_stream_read(lines->bytes, piece, sizeof(piece), &got)) !=
		    TRIB_OK)
			return status;
		if (!got) {
			lines->end = true;
			return TRIB_OK;
		}
		newline = memchr(piece, '\n', got);
		if (newline) {
			/* The bytes of the next line come behind the kept ones. */
			lines->at = kept + 1;
			lines->n = got - (size_t)(newline + 1 - piece);
			if (lines->at + lines->n > lines->room) {
				char *buffer =
					realloc(lines->buffer, lines->at + sizeof(piece) + 1);

				if (!buffer)
					return status_fail(TRIB_ERR_NO_MEMORY,
					                   "no memory for a line");
				lines->buffer = buffer;
				lines->room = lines->at + sizeof(piece);
				line->text = buffer;
			}
			memcpy(lines->buffer + lines->at, newline + 1, lines->n);
		}
	}
	line->no_newline = false;
	return TRIB_OK;
}

/* The next line as it is in the file. */
static trib_status line_read(struct line_stream *lines, struct line *line, bool *more)
{
	size_t seen = 0, room = 0, got;
	trib_status status;

	*line = (struct line){ 0 };
	*more = true;
	for (;;) {
		char *begin = lines->buffer + lines->at;
		char *newline =
			lines->n > seen ? memchr(begin + seen, '\n', lines->n - seen) : NULL;

		if (newline) {
			line_give(lines, line, (size_t)(newline - begin), 1);
			return TRIB_OK;
		}
		seen = lines->n;
		if (lines->end) {
			*more = lines->n > 0;
			if (*more)
				line_give(lines, line, lines->n, 0);
			return TRIB_OK;
		}
		if ((status = room_make(lines, &room)) != TRIB_OK)
			return status;
		if (!room)
			return line_drop(lines, line);
		status = byte_stream_read(lines->bytes, lines->buffer + lines->n, room, &got);
		if (status != TRIB_OK)
			return status;
		lines->n += got;
		lines->end = !got;
	}
}

trib_status line_next(struct line_stream *lines, struct line *line, bool *more)
{
	trib_status status = line_read(lines, line, more);

	if (status == TRIB_OK && *more && lines->number == 1) {
		size_t mark = byte_order_mark(line->text);

		line->text += mark;
		line->length -= mark;
	}
	return status;
}

void line_stream_close(struct line_stream *lines)
{
	byte_stream_close(lines->bytes);
	free(lines->buffer);
	*lines = (struct line_stream){ 0 };
}
