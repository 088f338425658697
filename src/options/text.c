/* SPDX-License-Identifier: Apache-2.0 */
#include "options/text.h"

#include "base/byte_order_mark.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (64u << 20)
#define PIECE 65536u
#define XZ_MAGIC \
	"\xfd"   \
	"7zXZ"

static trib_status text_take(FILE *file, const char *path, char **text)
{
	size_t used = 0, got;

	do {
		char *more = realloc(*text, used + PIECE + 1);

		if (!more)
			return status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory for it", path);
		*text = more;
		used += got = fread(more + used, 1, PIECE, file);
		more[used] = 0;
		if (used >= sizeof(XZ_MAGIC) - 1 && !memcmp(more, XZ_MAGIC, sizeof(XZ_MAGIC) - 1))
			return status_fail(TRIB_ERR_CONFIG,
			                   "%s is compressed: use xz -dc %s | ... and read from -",
			                   path, path);
		/* A 0 would end the text, and what follows would be ignored silently. */
		if (memchr(more + used - got, 0, got))
			return status_fail(TRIB_ERR_CONFIG, "%s is not a text file", path);
		if (used > TEXT_MAX)
			return status_fail(TRIB_ERR_CONFIG, "%s has more than %u MB", path,
			                   TEXT_MAX >> 20);
	} while (got);
	return ferror(file) ? status_fail_errno("%s", path) : TRIB_OK;
}

trib_status text_read(const char *path, char **text)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "r") : stdin;
	trib_status status;
	size_t mark;

	*text = NULL;
	if (!file)
		return status_fail_errno("%s", path);
	status = text_take(file, path, text);
	if (file != stdin)
		fclose(file);
	if (status == TRIB_OK && *text && (mark = byte_order_mark(*text)))
		memmove(*text, *text + mark, strlen(*text + mark) + 1);
	return status;
}

trib_status text_fail(trib_status status, const char *path)
{
	return status_fail(status, "%s:%s", path, trib_last_error());
}
