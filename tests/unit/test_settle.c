/* SPDX-License-Identifier: Apache-2.0 */
/* The time at which a rate has settled: from then on it stays near its level. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench/rates/rates_halve.h"

#include <math.h>

#define near(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static double settles(const double *bps, unsigned from, unsigned to, unsigned span, double level)
{
	struct settle how = { .span = span, .share = 0.1 };

	return settle_time(bps, from, to, &how, level, 0.05);
}

static void test_settles(void **state)
{
	const double bps[] = { 100, 100, 80, 60, 52, 50, 50, 49, 51, 50, 70, 50 };

	(void)state;
	near(settles(bps, 2, 10, 1, 50), 0.1);
	near(settles(bps, 2, 10, 2, 50), 0.1); /* 56 is off, 51 is not */
	near(settles(bps, 4, 10, 1, 50), 0);
	near(settles(bps, 0, 10, 1, 50), 0.2);
	/* Later values count too. */
	near(settles(bps, 0, 12, 1, 50), 0.55);
	near(settle_mean(bps, 6, 10), 50);
	near(settle_mean(bps, 6, 6), 0);
	near(settle_lowest(bps, 2, 10), 49);
	near(settle_lowest(bps, 2, 2), 0);
	near(settle_ripple(bps, 5, 10, 1, 50), 0.02);
	near(settle_ripple(bps, 5, 12, 1, 50), 0.4);
	near(settle_ripple(bps, 5, 12, 2, 50), 0.2);
	near(settle_ripple(bps, 5, 6, 2, 50), 0);
}

static void test_does_not(void **state)
{
	const double up_and_down[] = { 100, 50, 50, 20, 50, 90 };

	(void)state;
	assert_true(settles(up_and_down, 0, 6, 1, 50) < 0);
	near(settles(up_and_down, 0, 5, 1, 50), 0.2);
	near(settles(up_and_down, 0, 3, 1, 50), 0.05);
	assert_true(settles(up_and_down, 0, 4, 2, 50) < 0);
	/* A series that is too short. */
	assert_true(settles(up_and_down, 4, 5, 2, 50) < 0);
	assert_true(settles(up_and_down, 4, 4, 0, 50) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settles),
		cmocka_unit_test(test_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
