/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_OPTIONS_JSON_H
#define TRIB_OPTIONS_JSON_H

#include <stdio.h>

/* Prints a JSON string with its quotes; `null` for NULL. */
static inline void json_print_text(FILE *out, const char *text)
{
	if (!text) {
		fputs("null", out);
		return;
	}
	fputc('"', out);
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		/* Bytes above ASCII are escaped too: the environment need not be UTF-8. */
		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p < 0x20 || *p >= 0x7f)
			fprintf(out, "\\u%04x", *p);
		else
			fputc(*p, out);
	}
	fputc('"', out);
}

#endif
