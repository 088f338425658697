/* SPDX-License-Identifier: Apache-2.0 */
/* The behaviour of a lane until it receives from its multicast group. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/group_probe.h"

#define START 1000000000ull

/* Few packets may leave until multicast is heard, then all. */
static void test_holds_until_heard(void **state)
{
	struct group_probe group_probe;

	(void)state;
	group_probe_start(&group_probe, START);
	assert_true(group_probe_waits(&group_probe, START));
	assert_false(group_probe_holds(&group_probe, START, GROUP_PROBE_FRAGMENTS - 1));
	assert_true(group_probe_holds(&group_probe, START, GROUP_PROBE_FRAGMENTS));
	assert_true(group_probe_by_group(&group_probe));
	assert_true(group_probe.is_heard);
	assert_false(group_probe_waits(&group_probe, START));
	assert_false(group_probe_holds(&group_probe, START, GROUP_PROBE_FRAGMENTS));
	assert_false(group_probe_failed(&group_probe, START + GROUP_PROBE_FOR));
}

/* If multicast is never heard, waiting ends by itself, and this is known. */
static void test_ends_in_vain(void **state)
{
	struct group_probe group_probe;

	(void)state;
	group_probe_start(&group_probe, START);
	assert_true(group_probe_holds(&group_probe, START + GROUP_PROBE_FOR - 1, UINT64_MAX));
	assert_false(group_probe_failed(&group_probe, START + GROUP_PROBE_FOR - 1));
	assert_false(group_probe_holds(&group_probe, START + GROUP_PROBE_FOR, UINT64_MAX));
	assert_true(group_probe_failed(&group_probe, START + GROUP_PROBE_FOR));
}

/* Without a multicast group nothing waits. */
static void test_no_group(void **state)
{
	const struct group_probe group_probe = { 0 };

	(void)state;
	assert_false(group_probe_waits(&group_probe, 0));
	assert_false(group_probe_holds(&group_probe, START, UINT64_MAX));
	assert_false(group_probe_failed(&group_probe, START));
}

/*
 * Occasional losses are repaired. A lane that gets only repaired results does not hear multicast
 * any more.
 */
static void test_falls_silent(void **state)
{
	struct group_probe group_probe = { 0 };

	(void)state;
	for (unsigned i = 0; i < 2 * GROUP_PROBE_ALONE; i++)
		assert_false(group_probe_alone(&group_probe)); /* it has never been heard */
	assert_true(group_probe_by_group(&group_probe));
	for (unsigned i = 0; i < 10 * GROUP_PROBE_ALONE; i++) {
		assert_false(group_probe_alone(&group_probe));
		if (i % (GROUP_PROBE_ALONE - 1) == 0)
			assert_false(group_probe_by_group(&group_probe));
	}
	assert_false(group_probe_by_group(&group_probe));
	for (unsigned i = 1; i < GROUP_PROBE_ALONE; i++)
		assert_false(group_probe_alone(&group_probe));
	assert_true(group_probe_alone(&group_probe));
	assert_false(group_probe.is_heard);
	assert_false(group_probe_waits(&group_probe, 0));
	assert_true(group_probe_by_group(&group_probe)); /* heard again */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holds_until_heard),
		cmocka_unit_test(test_ends_in_vain),
		cmocka_unit_test(test_no_group),
		cmocka_unit_test(test_falls_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
