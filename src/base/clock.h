/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_BASE_CLOCK_H
#define TRIB_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000ull

/* Monotonic nanoseconds. */
static inline uint64_t clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* How long ago `then` was; 0: it lies ahead. */
static inline uint64_t clock_since(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

static inline struct timespec clock_span(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NSEC_PER_SEC),
		                  .tv_nsec = (long)(ns % NSEC_PER_SEC) };
}

#endif
