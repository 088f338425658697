/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With TRIB_TEST_SHORT in the environment, as under sanitizers, the same lines
 * run on less. What all of it proves is proven by the build without them.
 */
#ifndef TRIB_TESTS_SHORT_H
#define TRIB_TESTS_SHORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline bool test_is_short(void)
{
	return getenv("TRIB_TEST_SHORT") != NULL;
}

/* How many of them this run does: all, or `fewer`, and then it says so. */
static inline uint64_t test_count(const char *what, uint64_t all, uint64_t fewer)
{
	if (!test_is_short())
		return all;
	printf("short: %llu %s, not %llu\n", (unsigned long long)fewer, what,
	       (unsigned long long)all);
	return fewer;
}

/* The same for those whose number need not be exact: a tenth. */
static inline uint64_t test_tenth(const char *what, uint64_t all)
{
	return test_count(what, all, all / 10);
}

#endif
