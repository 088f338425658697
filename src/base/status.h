/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base owns what everything else uses: statuses with sentences, the log, the clock,
 * settings, bitmaps. It must not touch networks or aggregation.
 */
#ifndef TRIB_BASE_STATUS_H
#define TRIB_BASE_STATUS_H

#include "tributary.h"

#define STATUS_SENTENCE 1024u /* bytes; a longer sentence is cut */

/*
 * Sets the calling thread's error sentence and returns `status`. An argument may be the sentence
 * before, trib_last_error().
 */
trib_status status_fail(trib_status status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* As status_fail; appends ": " and errno's text to the sentence. */
trib_status status_fail_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
