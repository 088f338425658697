/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: what everything else stands on: statuses with sentences, the log, the
 * clock, settings, bitmaps. It knows nothing of networks or of aggregation.
 */
#ifndef TRIB_BASE_STATUS_H
#define TRIB_BASE_STATUS_H

#include "tributary.h"

/* Sets the calling thread's error sentence and returns `status`. */
trib_status status_fail(trib_status status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* As status_fail, with ": " and errno's words behind the sentence. */
trib_status status_fail_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
