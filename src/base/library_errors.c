/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of libtributary-glm.so and libtributary-sparse.so. The sentence goes to libtributary,
 * where trib_last_error finds it. trib itself links src/base/status.c instead.
 */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ROOM 1024u

trib_status status_fail(trib_status status, const char *format, ...)
{
	char sentence[ROOM];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	return trib_set_error(status, sentence);
}

trib_status status_fail_errno(const char *format, ...)
{
	const char *why = strerror(errno);
	char sentence[ROOM];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	if (n >= 0 && (size_t)n < sizeof(sentence))
		snprintf(sentence + n, sizeof(sentence) - (size_t)n, ": %s", why);
	return trib_set_error(TRIB_ERR_SYSTEM, sentence);
}
