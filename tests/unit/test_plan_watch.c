/* SPDX-License-Identifier: Apache-2.0 */
/* What a controller's answer means for ranks that are about to join the trees of a plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/trees/plan_watch.h"

#define ANSWER(generation, members, waiting)                                                \
	"{\"controller\":true,\"job\":7,\"generation\":" generation ",\"members\":" members \
	",\"waiting\":" waiting "}"

static void test_given_up(void **state)
{
	(void)state;
	assert_false(plan_is_given_up(ANSWER("2", "15", "0"), 2));
	assert_true(plan_is_given_up(ANSWER("2", "15", "8"), 2));
	assert_true(
		plan_is_given_up(ANSWER("2", "18446744073709551615", "9223372036854775808"), 2));
	/* A process that waits to join is not a member. */
	assert_false(plan_is_given_up(ANSWER("2", "15", "16"), 2));
	assert_true(plan_is_given_up(ANSWER("2", "15", "24"), 2));
	/* There is a newer plan; or the controller has an old store and knows less than we do. */
	assert_true(plan_is_given_up(ANSWER("3", "15", "0"), 2));
	assert_false(plan_is_given_up(ANSWER("1", "15", "15"), 2));
	/* Texts without the fields. */
	assert_false(plan_is_given_up("", 2));
	assert_false(plan_is_given_up("{\"tribd\":1,\"generation\":\"x\"}", 2));
}

#define SILENT(generation, who) \
	"{\"controller\":true,\"generation\":" generation ",\"silent\":\"" who "\"}"

static void test_silent(void **state)
{
	char who[64] = "";

	(void)state;
	assert_true(plan_has_silent(SILENT("2", "10.0.0.1:7700"), 2, who, sizeof(who)));
	assert_string_equal(who, "10.0.0.1:7700");
	assert_false(plan_has_silent(SILENT("2", ""), 2, who, sizeof(who)));
	/* About another plan; about none; from a controller that does not report silent nodes. */
	assert_false(plan_has_silent(SILENT("3", "10.0.0.1:7700"), 2, who, sizeof(who)));
	assert_false(plan_has_silent(SILENT("0", "10.0.0.1:7700"), 0, who, sizeof(who)));
	assert_false(plan_has_silent(ANSWER("2", "15", "0"), 2, who, sizeof(who)));
	/* Longer than any address, or truncated. */
	assert_false(plan_has_silent(SILENT("2", "10.0.0.1:7700"), 2, who, 13));
	assert_true(plan_has_silent(SILENT("2", "10.0.0.1:7700"), 2, who, 14));
	assert_false(plan_has_silent("{\"generation\":2,\"silent\":\"10.0.0", 2, who, sizeof(who)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
