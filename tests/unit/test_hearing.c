/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane does until it hears its group. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/hearing.h"

#define START 1000000000ull

/* Little may leave until it is heard, and then all. */
static void test_holds_until_heard(void **state)
{
	struct hearing hearing;

	(void)state;
	hearing_start(&hearing, START);
	assert_true(hearing_waits(&hearing, START));
	assert_false(hearing_holds(&hearing, START, HEARING_FRAGMENTS - 1));
	assert_true(hearing_holds(&hearing, START, HEARING_FRAGMENTS));
	assert_true(hearing_by_group(&hearing));
	assert_true(hearing.is_heard);
	assert_false(hearing_waits(&hearing, START));
	assert_false(hearing_holds(&hearing, START, HEARING_FRAGMENTS));
	assert_false(hearing_was_in_vain(&hearing, START + HEARING_FOR));
}

/* Where it never is, that ends by itself, and is known. */
static void test_ends_in_vain(void **state)
{
	struct hearing hearing;

	(void)state;
	hearing_start(&hearing, START);
	assert_true(hearing_holds(&hearing, START + HEARING_FOR - 1, UINT64_MAX));
	assert_false(hearing_was_in_vain(&hearing, START + HEARING_FOR - 1));
	assert_false(hearing_holds(&hearing, START + HEARING_FOR, UINT64_MAX));
	assert_true(hearing_was_in_vain(&hearing, START + HEARING_FOR));
}

/* Where there is no group nothing is waited for. */
static void test_no_group(void **state)
{
	const struct hearing hearing = { 0 };

	(void)state;
	assert_false(hearing_waits(&hearing, 0));
	assert_false(hearing_holds(&hearing, START, UINT64_MAX));
	assert_false(hearing_was_in_vain(&hearing, START));
}

/* What it loses now and then comes again; one that gets nothing else does not hear it any more. */
static void test_falls_silent(void **state)
{
	struct hearing hearing = { 0 };

	(void)state;
	for (unsigned i = 0; i < 2 * HEARING_ALONE; i++)
		assert_false(hearing_alone(&hearing)); /* it has never been heard */
	assert_true(hearing_by_group(&hearing));
	for (unsigned i = 0; i < 10 * HEARING_ALONE; i++) {
		assert_false(hearing_alone(&hearing));
		if (i % (HEARING_ALONE - 1) == 0)
			assert_false(hearing_by_group(&hearing));
	}
	assert_false(hearing_by_group(&hearing));
	for (unsigned i = 1; i < HEARING_ALONE; i++)
		assert_false(hearing_alone(&hearing));
	assert_true(hearing_alone(&hearing));
	assert_false(hearing.is_heard);
	assert_false(hearing_waits(&hearing, 0));
	assert_true(hearing_by_group(&hearing)); /* and again */
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
