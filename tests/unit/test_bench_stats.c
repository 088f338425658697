/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "bench/report/samples.h"

#include <math.h>

static void near(double value, double expected)
{
	assert_true(fabs(value - expected) < 1e-12);
}

static void median_is_the_middle(void **state)
{
	double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 3, 2 }, one[] = { 7 };

	(void)state;
	near(stats_median(odd, 3), 2);
	near(stats_median(even, 4), 2.5);
	near(stats_median(one, 1), 7);
}

static void percentile_is_a_value_that_was_seen(void **state)
{
	double values[200];

	(void)state;
	for (unsigned i = 0; i < 200; i++)
		values[i] = i + 1;
	near(stats_percentile(values, 100, 99), 99);
	near(stats_percentile(values, 200, 99), 198);
	near(stats_percentile(values, 10, 99), 10);
	near(stats_percentile(values, 10, 50), 5);
	near(stats_percentile(values, 10, 0), 1);
	near(stats_percentile(values, 1, 99), 1);
}

static void slowest_rank_counts(void **state)
{
	const double samples[] = { 1, 5, 3, 2, 4, 6 }; /* three ranks, two iterations */
	double times[2];

	(void)state;
	assert_true(stats_slowest(samples, 3, 2, times));
	near(times[0], 4);
	near(times[1], 6);
}

static void ranks_have_a_mean(void **state)
{
	double samples[] = { 1, 5, 3, 2, 5, 8 }, times[2]; /* three ranks, two iterations */

	(void)state;
	assert_true(stats_mean(samples, 3, 2, times));
	near(times[0], 3);
	near(times[1], 5);
	samples[5] = NAN;
	assert_false(stats_mean(samples, 3, 2, times));
	assert_false(stats_mean(samples, 0, 2, times));
}

static void a_missing_sample_is_found(void **state)
{
	double samples[] = { 1, 5, 3, NAN }, times[2];

	(void)state;
	assert_false(stats_slowest(samples, 2, 2, times));
	samples[3] = 1;
	assert_true(stats_slowest(samples, 2, 2, times));
	assert_false(stats_slowest(samples, 0, 2, times));
}

static void runs_are_condensed(void **state)
{
	/* The medians of the runs are 2, 3 and 4; the median of all is 3. */
	const double times[] = { 1, 2, 3, 2, 3, 4, 3, 4, 10 };
	struct bench_stats stats;

	(void)state;
	stats_compute(times, 3, 3, &stats);
	assert_int_equal(stats.repeats, 3);
	near(stats.min, 1);
	near(stats.median, 3);
	near(stats.p99, 10);
	near(stats.spread, 2.0 / 3);
}

static void one_disturbed_run_changes_little(void **state)
{
	double times[300];
	struct bench_stats stats;

	(void)state;
	for (unsigned i = 0; i < 300; i++) /* the second run is a thousand times slower */
		times[i] = (i / 100 == 1 ? 1000 : 1) * (i % 100 + 1.0);
	stats_compute(times, 3, 100, &stats);
	near(stats.of_runs.p1, 1);
	near(stats.of_runs.median, 50.5);
	near(stats.of_runs.p99, 99);
	assert_true(stats.p99 > 90000);
}

static void one_run_has_no_spread(void **state)
{
	const double times[] = { 2, 1 };
	struct bench_stats stats;

	(void)state;
	stats_compute(times, 1, 2, &stats);
	near(stats.median, 1.5);
	near(stats.spread, 0);
}

static void no_runs_give_nothing(void **state)
{
	struct bench_stats stats = { .repeats = 5 };

	(void)state;
	stats_compute(NULL, 0, 10, &stats);
	assert_int_equal(stats.repeats, 0);
	near(stats.median, 0);
}

static void a_figure_has_a_range(void **state)
{
	const double values[] = { 4, NAN, 1, 2 };
	struct bench_range range;

	(void)state;
	stats_range(values, 4, &range);
	assert_int_equal(range.n, 3);
	near(range.median, 2);
	near(range.least, 1);
	near(range.most, 4);
	stats_range(values + 1, 1, &range);
	assert_int_equal(range.n, 0);
	stats_range(NULL, 0, &range);
	assert_int_equal(range.n, 0);
}

static void runs_are_compared_in_pairs(void **state)
{
	/* The ratio of the medians would be 3 / 2. */
	const double a[] = { 9, 3, 2, NAN }, b[] = { 3, 1, 2, 7 };
	struct bench_range range;

	(void)state;
	stats_ratio(a, b, 4, &range);
	assert_int_equal(range.n, 3);
	near(range.median, 3);
	near(range.least, 1);
	near(range.most, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(median_is_the_middle),
		cmocka_unit_test(percentile_is_a_value_that_was_seen),
		cmocka_unit_test(slowest_rank_counts),
		cmocka_unit_test(ranks_have_a_mean),
		cmocka_unit_test(a_missing_sample_is_found),
		cmocka_unit_test(runs_are_condensed),
		cmocka_unit_test(one_disturbed_run_changes_little),
		cmocka_unit_test(one_run_has_no_spread),
		cmocka_unit_test(no_runs_give_nothing),
		cmocka_unit_test(a_figure_has_a_range),
		cmocka_unit_test(runs_are_compared_in_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
