/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/text/row_text.h"
#include "glm/text/number_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum row_verdict row_fail(struct glm_row *row, const char *says, ...)
{
	va_list args;

	va_start(args, says);
	vsnprintf(row->why, sizeof(row->why), says, args);
	va_end(args);
	return ROW_BAD;
}

struct row_quote row_quote(const char *from, const char *end)
{
	struct row_quote quote = { { 0 } };
	size_t room = sizeof(quote.text) - 4, n = (size_t)(end - from), i;

	for (i = 0; i < n && i < room; i++)
		quote.text[i] = from[i] >= ' ' && from[i] < 127 ? from[i] : '?';
	if (n > room)
		memcpy(quote.text + room, "...", 4);
	return quote;
}

const char *row_number_fault(int number_text)
{
	switch (number_text) {
	case NUMBER_NOT_FINITE:
		return "is not finite";
	case NUMBER_TOO_LARGE:
		return "is too large for a float";
	default:
		return "is not a number";
	}
}
