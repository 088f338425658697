/* SPDX-License-Identifier: Apache-2.0 */
/* Editors on Windows put a mark of three bytes before UTF-8 text. */
#ifndef TRIB_BASE_BYTE_ORDER_MARK_H
#define TRIB_BASE_BYTE_ORDER_MARK_H

#include <stddef.h>
#include <string.h>

/* The bytes of the mark at the start of a text; 0: there is none. */
static inline size_t byte_order_mark(const char *text)
{
	static const char mark[] = "\xef\xbb\xbf";

	return strncmp(text, mark, sizeof(mark) - 1) ? 0 : sizeof(mark) - 1;
}

#endif
