/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many cases a random test runs. TRIB_TEST_LONG: all, for `make soak`. TRIB_TEST_SHORT: a
 * thirtieth, for sanitizers, and for other planes and trees (meson.build). Neither: a third, for
 * `make test`. Exhaustive tests are not affected.
 */
#ifndef TRIB_TESTS_SHORT_H
#define TRIB_TESTS_SHORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline bool test_is_long(void)
{
	return getenv("TRIB_TEST_LONG") != NULL;
}

static inline bool test_is_short(void)
{
	return getenv("TRIB_TEST_SHORT") != NULL && !test_is_long();
}

/* The number of cases to run: all, or `fewer` in a short run, which is printed. */
static inline uint64_t test_count(const char *what, uint64_t all, uint64_t fewer)
{
	if (!test_is_short())
		return all;
	printf("short: %llu %s, not %llu\n", (unsigned long long)fewer, what,
	       (unsigned long long)all);
	return fewer;
}

/* Random cases: all in a long run, a thirtieth in a short run, a third otherwise; at least one. */
static inline uint64_t test_cases(const char *what, uint64_t all)
{
	return test_count(what, test_is_long() || all < 3 ? all : all / 3, all < 30 ? 1 : all / 30);
}

#endif
