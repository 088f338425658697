/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse_lines.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void path_fail(const char *path, const char *why)
{
	fprintf(stderr, "%s: %s\n", path, why);
	exit(EXIT_FAILURE);
}

void lines_fail(const struct lines *lines, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s:%zu: ", lines->path, lines->number);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(EXIT_FAILURE);
}

static bool ends_in(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n > m && strcmp(path + n - m, end) == 0;
}

/* Starts `tool -dc` on the file. Without a shell, so any name of a file is safe. */
static void reader_start(struct lines *lines, const char *tool)
{
	int ends[2], input = fileno(lines->file);

	if (pipe(ends) != 0 || (lines->reader = fork()) < 0)
		path_fail(lines->path, strerror(errno));
	if (lines->reader == 0) {
		if (dup2(input, STDIN_FILENO) >= 0 && dup2(ends[1], STDOUT_FILENO) >= 0) {
			close(ends[0]);
			execlp(tool, tool, "-dc", (char *)NULL);
		}
		fprintf(stderr, "%s: cannot start %s: %s\n", lines->path, tool, strerror(errno));
		_exit(EXIT_FAILURE);
	}
	close(ends[1]);
	fclose(lines->file);
	lines->file = fdopen(ends[0], "r");
	if (!lines->file)
		path_fail(lines->path, strerror(errno));
}

void lines_open(struct lines *lines, const char *path)
{
	*lines = (struct lines){ .path = path, .file = fopen(path, "r") };
	if (!lines->file)
		path_fail(path, strerror(errno));
	if (ends_in(path, ".xz"))
		reader_start(lines, "xz");
	else if (ends_in(path, ".gz"))
		reader_start(lines, "gzip");
}

bool lines_next(struct lines *lines)
{
	ssize_t n = getline(&lines->text, &lines->room, lines->file);

	if (n < 0) {
		if (ferror(lines->file))
			path_fail(lines->path, strerror(errno));
		return false;
	}
	lines->number++;
	while (n > 0 && (lines->text[n - 1] == '\n' || lines->text[n - 1] == '\r'))
		lines->text[--n] = 0;
	if (strlen(lines->text) != (size_t)n)
		lines_fail(lines, "a zero byte in a line of text");
	return true;
}

/* A reader that failed has cut the text short: nobody may train on a part of a file. */
void lines_close(struct lines *lines)
{
	bool is_whole = feof(lines->file);
	int status = 0;

	fclose(lines->file);
	free(lines->text);
	if (lines->reader > 0 && waitpid(lines->reader, &status, 0) == lines->reader && is_whole &&
	    status != 0)
		path_fail(lines->path, "cannot be decompressed");
}

bool lines_find(const char *folder, const char *name, char *path, size_t room)
{
	static const char *const ends[] = { "", ".xz", ".gz" };

	for (int i = 0; i < 3; i++) {
		snprintf(path, room, "%s/%s%s", folder, name, ends[i]);
		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}
