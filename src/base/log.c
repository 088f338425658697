/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = { "error", "warn", "notice", "info", "debug" };
static atomic_int current = LOG_NOTICE;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char prefix[64] = "tributary";

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&current, level, memory_order_relaxed);
}

int log_set_level_name(const char *name)
{
	for (int i = LOG_ERROR; i <= LOG_DEBUG; i++) {
		if (strcmp(name, names[i]) == 0) {
			log_set_level((enum log_level)i);
			return 0;
		}
	}
	return -1;
}

void log_set_prefix(const char *word)
{
	pthread_mutex_lock(&lock);
	snprintf(prefix, sizeof(prefix), "%s", word);
	pthread_mutex_unlock(&lock);
}

void log_line(enum log_level level, const char *format, ...)
{
	char line[1024];
	va_list args;

	if ((int)level > atomic_load_explicit(&current, memory_order_relaxed))
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	for (char *at = line; *at; at++) /* the line may quote a peer or a file */
		if ((unsigned char)*at < ' ' || *at == 127)
			*at = '?';
	pthread_mutex_lock(&lock);
	fprintf(stderr, "%s: %s: %s\n", prefix, names[level], line);
	pthread_mutex_unlock(&lock);
}
