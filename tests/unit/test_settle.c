/* SPDX-License-Identifier: Apache-2.0 */
/* When a rate has settled: from when on it stays near its level. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/rates_halve.h"

#include <math.h>

#define near(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static void test_settles(void **state)
{
	const double bps[] = { 100, 100, 80, 60, 52, 50, 50, 49, 51, 50 };

	(void)state;
	near(settle_time(bps, 2, 10, 1, 50, 0.1, 0.05), 0.1);
	near(settle_time(bps, 2, 10, 2, 50, 0.1, 0.05), 0.1); /* 56 is off, 51 is not */
	near(settle_time(bps, 4, 10, 1, 50, 0.1, 0.05), 0);
	near(settle_mean(bps, 6, 10), 50);
	near(settle_mean(bps, 6, 6), 0);
	near(settle_lowest(bps, 2, 10), 49);
	near(settle_lowest(bps, 2, 2), 0);
}

static void test_does_not(void **state)
{
	const double up_and_down[] = { 100, 50, 50, 50, 20, 90 };

	(void)state;
	/* Off at the end: it has not settled, however good it was before. */
	assert_true(settle_time(up_and_down, 0, 6, 1, 50, 0.1, 1) < 0);
	near(settle_time(up_and_down, 0, 4, 1, 50, 0.1, 1), 1);
	near(settle_time(up_and_down, 0, 6, 2, 55, 0.1, 1), 4);
	/* One that is too short to say. */
	assert_true(settle_time(up_and_down, 4, 5, 2, 20, 0.1, 1) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settles),
		cmocka_unit_test(test_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
