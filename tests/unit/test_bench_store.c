/* SPDX-License-Identifier: Apache-2.0 */
/* What trib bench sparse-store measures, with few rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench/store/store_memory.h"

#define ROWS 150000u

static struct store_memory measured(const char *optimizer, int width)
{
	trib_sparse_options given = TRIB_SPARSE_OPTIONS_INIT;
	struct sparse_table_options options;
	struct store_memory memory;

	given.name = "test";
	given.width = width;
	given.optimizer = optimizer;
	assert_int_equal(sparse_table_options_take(&given, &options), TRIB_OK);
	assert_int_equal(store_memory_measure(&options, ROWS, &memory), TRIB_OK);
	return memory;
}

static void test_ratios(void **state)
{
	struct store_memory sgd = measured("sgd", 16), adam = measured("adam", 16);

	(void)state;
	assert_int_equal(sgd.needed, ROWS * 64ull);
	assert_int_equal(adam.needed, ROWS * (3 * 16 + 2) * 4ull);
	assert_true(sgd.counted > sgd.needed && 2 * sgd.counted <= 3 * sgd.needed);
	assert_true(adam.counted > adam.needed && 2 * adam.counted <= 3 * adam.needed);
	assert_true(sgd.most > 1 && sgd.most <= 1.5);
	/* All rows were written, so they are in memory. */
	assert_true(sgd.resident >= sgd.needed && adam.resident >= adam.needed);
}

/* Of narrow rows, keys and index are the larger part, and that is seen. */
static void test_narrow(void **state)
{
	struct store_memory narrow = measured("sgd", 2);

	(void)state;
	assert_true(narrow.counted > 2 * narrow.needed && narrow.most > 2);
	assert_true(narrow.resident > 2 * narrow.needed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ratios),
		cmocka_unit_test(test_narrow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
