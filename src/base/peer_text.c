/* SPDX-License-Identifier: Apache-2.0 */
#include "base/peer_text.h"

#include <stdbool.h>
#include <string.h>

static bool is_printable(char c)
{
	return c >= ' ' && c <= '~';
}

static bool is_plain(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '.' || c == '-' || c == '_';
}

static char *copy(char *out, size_t room, const char *from, size_t most, bool (*good)(char c),
                  char other)
{
	size_t length = strnlen(from, most);

	if (length > room - 1)
		length = room - 1;
	for (size_t i = 0; i < length; i++)
		out[i] = good(from[i]) ? from[i] : other;
	out[length] = 0;
	return out;
}

char *peer_text(char *out, size_t room, const char *from, size_t most)
{
	return copy(out, room, from, most, is_printable, '?');
}

char *peer_name(char *out, size_t room, const char *from, size_t most)
{
	return copy(out, room, from, most, is_plain, '_');
}
