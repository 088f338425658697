/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fails with a sentence. The sentence is kept by status.c, which is in libtributary:
 * libtributary-glm.so and libtributary-sparse.so have this file alone, so that
 * trib_last_error finds their sentences too.
 */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The text goes to a buffer first: an argument may be the sentence that is replaced. */

trib_status status_fail(trib_status status, const char *format, ...)
{
	char sentence[STATUS_SENTENCE];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	return trib_set_error(status, sentence);
}

trib_status status_fail_errno(const char *format, ...)
{
	int error = errno;
	char sentence[STATUS_SENTENCE];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	if (n >= 0 && (size_t)n < sizeof(sentence))
		snprintf(sentence + n, sizeof(sentence) - (size_t)n, ": %s", strerror(error));
	return trib_set_error(TRIB_ERR_SYSTEM, sentence);
}
