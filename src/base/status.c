/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char sentence[1024] = "no error";

trib_status status_fail(trib_status status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	return status;
}

trib_status status_fail_errno(const char *format, ...)
{
	int error = errno;
	va_list args;

	va_start(args, format);
	int n = vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	if (n >= 0 && (size_t)n < sizeof(sentence))
		snprintf(sentence + n, sizeof(sentence) - (size_t)n, ": %s", strerror(error));
	return TRIB_ERR_SYSTEM;
}

const char *trib_last_error(void)
{
	return sentence;
}

trib_status trib_set_error(trib_status status, const char *words)
{
	return status_fail(status, "%s", words);
}

const char *trib_status_name(trib_status status)
{
	switch (status) {
	case TRIB_OK:
		return "ok";
	case TRIB_IN_PROGRESS:
		return "in progress";
	case TRIB_ERR_ARGUMENT:
		return "wrong argument";
	case TRIB_ERR_CONFIG:
		return "wrong configuration";
	case TRIB_ERR_NO_MEMORY:
		return "no memory";
	case TRIB_ERR_SYSTEM:
		return "system error";
	case TRIB_ERR_TIMEOUT:
		return "timeout";
	case TRIB_ERR_PEER:
		return "peer lost";
	case TRIB_ERR_AGGREGATOR:
		return "aggregator lost";
	case TRIB_ERR_MISMATCH:
		return "mismatch between ranks";
	case TRIB_ERR_REFUSED:
		return "refused";
	case TRIB_ERR_CLOSED:
		return "closed";
	}
	return "unknown status";
}
