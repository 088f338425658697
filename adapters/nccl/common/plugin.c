/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin.h"

#include "base/clock.h"
#include "base/settings.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

char plugin_something;
static _Atomic(nccl_logger) logger_now;

void plugin_start(nccl_logger logger)
{
	nccl_logger none = NULL;

	atomic_compare_exchange_strong(&logger_now, &none, logger);
}

void plugin_log(int level, unsigned long flags, const char *format, ...)
{
	nccl_logger logger = atomic_load(&logger_now);
	char line[STATUS_SENTENCE + 128];
	va_list arguments;

	if (!logger)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	logger(level, flags, "tributary", 0, "NET/Tributary: %s", line);
}

int plugin_result(trib_status status)
{
	switch (status) {
	case TRIB_OK:
	case TRIB_IN_PROGRESS:
		return NCCL_SUCCESS;
	case TRIB_ERR_ARGUMENT:
		return NCCL_INVALID_ARGUMENT;
	case TRIB_ERR_CONFIG:
	case TRIB_ERR_MISMATCH:
		return NCCL_INVALID_USAGE;
	case TRIB_ERR_NO_MEMORY:
	case TRIB_ERR_SYSTEM:
		return NCCL_SYSTEM_ERROR;
	default:
		return NCCL_REMOTE_ERROR;
	}
}

int plugin_report(trib_status status, const char *what)
{
	if (status < 0)
		plugin_warn("%s: %s", what, trib_last_error());
	return plugin_result(status);
}

uint64_t plugin_timeout(void)
{
	double seconds = 30;

	if (setting_seconds(SETTING_TIMEOUT, &seconds) != TRIB_OK || !(seconds >= 0.1))
		seconds = 30;
	return (uint64_t)(seconds * (double)NSEC_PER_SEC);
}
