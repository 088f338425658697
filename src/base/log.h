/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log rules: log where the fault is found, say the exact cause and never a
 * guess. TRIB_LOG chooses the level: error, warn, notice (default), info, debug.
 */
#ifndef TRIB_BASE_LOG_H
#define TRIB_BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_NOTICE, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level);
/* Accepts the names above; returns 0, or -1 for an unknown name. */
int log_set_level_name(const char *name);
/* A word put before every line, e.g. "rank 3". */
void log_set_prefix(const char *prefix);
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_notice(...) log_line(LOG_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

#endif
