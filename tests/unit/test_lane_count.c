/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "worker/dense/lane_count.h"

static void few_cores_have_one_lane(void **state)
{
	(void)state;
	assert_int_equal(lanes_choose(0, 1, 1), 1);
	assert_int_equal(lanes_choose(0, 2, 1), 1);
	assert_int_equal(lanes_choose(0, 3, 1), 1);
}

static void more_cores_have_more(void **state)
{
	(void)state;
	assert_int_equal(lanes_choose(0, 4, 1), 2);
	assert_int_equal(lanes_choose(0, 8, 1), 4);
	assert_int_equal(lanes_choose(0, 256, 1), 4);
}

static void trees_share_them(void **state)
{
	(void)state;
	assert_int_equal(lanes_choose(0, 16, 2), 2);
	assert_int_equal(lanes_choose(0, 16, 3), 1);
	assert_int_equal(lanes_choose(0, 16, 16), 1);
	assert_int_equal(lanes_choose(0, 16, LANES_MAX), 1);
}

static void what_is_asked_for_holds_up_to_what_there_is(void **state)
{
	(void)state;
	assert_int_equal(lanes_choose(8, 1, 1), 8);
	assert_int_equal(lanes_choose(8, 1, 4), 8);
	assert_int_equal(lanes_choose(8, 1, 8), 4);
	assert_int_equal(lanes_choose(64, 1, 1), WIRE_LANES_MAX);
	assert_int_equal(lanes_choose(1, 64, 16), 1);
	assert_int_equal(lanes_choose(4, 64, LANES_MAX), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_cores_have_one_lane),
		cmocka_unit_test(more_cores_have_more),
		cmocka_unit_test(trees_share_them),
		cmocka_unit_test(what_is_asked_for_holds_up_to_what_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
