/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `trib bench sparse` without processes and networks. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "bench/sparse/link_bytes.h"
#include "bench/sparse/push_lines.h"

#include <string.h>

#define MOST 3

static void samples_are_read(void **state)
{
	unsigned iteration;
	double seconds, share;

	(void)state;
	assert_true(push_sample_read("SAMPLE 3 0.25 0.5", &iteration, &seconds, &share));
	assert_int_equal(iteration, 3);
	assert_true(seconds == 0.25 && share == 0.5);
}

static void other_lines_are_not_samples(void **state)
{
	static const char *const lines[] = { "",
		                             "BEGIN",
		                             "SAMPLE",
		                             "SAMPLE 3 0.25",
		                             "SAMPLE x 1 1",
		                             "SAMPLE 1 0 0",
		                             "SAMPLE 1 -1 0" };
	unsigned iteration;
	double seconds, share;

	(void)state;
	for (unsigned i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_false(push_sample_read(lines[i], &iteration, &seconds, &share));
}

static void figures_of_workers_are_summed(void **state)
{
	struct push_figures figures = { 0 };

	(void)state;
	assert_true(push_figures_read("FIGURES 100 60 10 1 4000 7000 30", &figures));
	assert_true(push_figures_read("FIGURES 50 20 5 0 1000 6000 31", &figures));
	assert_false(push_figures_read("FIGURES 50 20 5 0 1000 6000", &figures));
	assert_true(push_figures_read(
		"{\"tribd\":\"s1\",\"switch_recirculations\":12,\"switch_packets\":48}", &figures));
	assert_true(figures.rows == 150 && figures.hot_rows == 80 && figures.packets == 15);
	assert_true(figures.repeats == 1 && figures.server_bytes == 5000);
	assert_true(figures.step_bytes == 6000 && figures.hot_set == 31);
	assert_true(figures.recirculations == 12 && figures.switch_packets == 48);
}

static void figures_of_runs_are_summed(void **state)
{
	struct push_figures sum = { 0 };
	struct push_figures one = { .rows = 100,
		                    .hot_rows = 60,
		                    .packets = 10,
		                    .repeats = 1,
		                    .server_bytes = 4000,
		                    .step_bytes = 7000,
		                    .hot_set = 30,
		                    .switch_packets = 48,
		                    .recirculations = 12,
		                    .added_bytes = 500,
		                    .kernel_bytes = 400 };

	(void)state;
	push_figures_add(&sum, &one);
	one.step_bytes = 6000;
	push_figures_add(&sum, &one);
	assert_true(sum.rows == 200 && sum.hot_rows == 120 && sum.packets == 20);
	assert_true(sum.repeats == 2 && sum.server_bytes == 8000);
	assert_true(sum.step_bytes == 6000 && sum.hot_set == 30); /* of the last run */
	assert_true(sum.switch_packets == 96 && sum.recirculations == 24);
	assert_true(sum.added_bytes == 1000 && sum.kernel_bytes == 800);
}

static void losses_are_a_list(void **state)
{
	double losses[MOST];
	unsigned n;

	(void)state;
	assert_int_equal(push_losses_parse("0,0.001,0.5", losses, MOST, &n), TRIB_OK);
	assert_int_equal(n, 3);
	assert_true(losses[0] == 0 && losses[1] == 0.001 && losses[2] == 0.5);
}

static void wrong_losses_are_refused(void **state)
{
	static const char *const lists[] = { "1",   "-0.1",    "x",       "0.1,,0.2",
		                             "0,0", "0,nan,1", "0,1e-1x", "0,0.1,0.2,0.3" };
	double losses[MOST];
	unsigned n;

	(void)state;
	for (unsigned i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		assert_int_equal(push_losses_parse(lists[i], losses, MOST, &n), TRIB_ERR_ARGUMENT);
}

static void bytes_of_all_links_but_loopback_are_summed(void **state)
{
	const char *text = "Inter-|   Receive                          |  Transmit\n"
			   " face |bytes    packets errs drop |bytes    packets\n"
			   "    lo: 1000000      10    0    0  1000000      10\n"
			   "  eth0: 1500       3    0    0      700       4\n"
			   "  eth1:2500       3    0    0      700       4\n";

	(void)state;
	assert_true(link_bytes_parse(text) == 4000);
	assert_true(link_bytes_parse("") == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_are_read),
		cmocka_unit_test(other_lines_are_not_samples),
		cmocka_unit_test(figures_of_workers_are_summed),
		cmocka_unit_test(figures_of_runs_are_summed),
		cmocka_unit_test(losses_are_a_list),
		cmocka_unit_test(wrong_losses_are_refused),
		cmocka_unit_test(bytes_of_all_links_but_loopback_are_summed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
