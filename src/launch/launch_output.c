/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/launch_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 16384u
#define LINE_BYTES (1u << 20) /* a longer line is handed on in pieces of this size */

/* Makes space for one read and a final zero. False: no memory. */
static bool stream_make_room(struct launch_stream *stream)
{
	size_t room = stream->used + READ_BYTES + 1;
	char *bytes;

	if (room <= stream->room)
		return true;
	room = room < 2 * stream->room ? 2 * stream->room : room;
	bytes = realloc(stream->bytes, room);
	if (!bytes)
		return false;
	stream->bytes = bytes;
	stream->room = room;
	return true;
}

static void stream_end(struct launch_stream *stream, launch_line *take, void *context)
{
	if (stream->used) {
		stream->bytes[stream->used] = '\0';
		take(context, stream->bytes);
	}
	free(stream->bytes);
	close(stream->fd);
	*stream = (struct launch_stream){ .fd = -1 };
}

static void stream_take_lines(struct launch_stream *stream, size_t from, launch_line *take,
                              void *context)
{
	char *line = stream->bytes, *end = stream->bytes + stream->used, *newline;

	for (char *p = stream->bytes + from; (newline = memchr(p, '\n', (size_t)(end - p)));) {
		*newline = '\0';
		/* Programs from Windows and progress bars end lines with "\r\n". */
		if (newline > line && newline[-1] == '\r')
			newline[-1] = '\0';
		take(context, line);
		p = line = newline + 1;
	}
	stream->used = (size_t)(end - line);
	if (stream->used >= LINE_BYTES) {
		*end = '\0';
		take(context, line);
		stream->used = 0;
	}
	memmove(stream->bytes, line, stream->used);
}

void launch_stream_read(struct launch_stream *stream, launch_line *take, void *context)
{
	size_t from = stream->used;
	ssize_t n;

	if (!stream_make_room(stream)) {
		stream_end(stream, take, context);
		return;
	}
	n = read(stream->fd, stream->bytes + from, READ_BYTES);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		stream_end(stream, take, context);
		return;
	}
	stream->used += (size_t)n;
	stream_take_lines(stream, from, take, context);
}

void launch_line_print(unsigned task, const char *label, const char *line, bool is_stderr)
{
	static const int colours[] = { 36, 33, 35, 32, 34, 31 };
	FILE *out = is_stderr ? stderr : stdout;
	const char *no_colour = getenv("NO_COLOR");

	/* Keeps the order of stdout and stderr. */
	fflush(is_stderr ? stdout : stderr);
	if (isatty(fileno(out)) && !(no_colour && *no_colour))
		fprintf(out, "\033[%dm[%s]\033[0m %s\n",
		        colours[task % (sizeof(colours) / sizeof(*colours))], label, line);
	else
		fprintf(out, "[%s] %s\n", label, line);
}
