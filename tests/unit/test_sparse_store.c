/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table by key: found again after growth, within the memory that is promised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sparse/store/sparse_optimizer.h"
#include "sparse/store/sparse_store.h"
#include "short.h"

#include <string.h>

static struct sparse_table_options made(const char *optimizer, uint32_t width)
{
	trib_sparse_options given = TRIB_SPARSE_OPTIONS_INIT;
	struct sparse_table_options options;

	given.width = width;
	given.optimizer = optimizer;
	given.rate = 0.5;
	given.init = 1;
	assert_int_equal(sparse_table_options_take(&given, &options), TRIB_OK);
	return options;
}

static struct sparse_store *opened(const struct sparse_table_options *options)
{
	struct sparse_store *store;

	assert_int_equal(sparse_store_open(options, &store), TRIB_OK);
	return store;
}

static void test_rows(void **state)
{
	struct sparse_table_options options = made("sgd", 3);
	struct sparse_store *store = opened(&options);
	float first[3], values[3], gradient[3] = { 1, 2, 3 };

	(void)state;
	optimizer_values_begin(&options, 77, first);
	sparse_store_read(store, 77, values);
	assert_memory_equal(values, first, sizeof(first));
	assert_int_equal(sparse_store_rows(store), 0);
	assert_int_equal(sparse_store_find(store, 77), SPARSE_ROW_NONE);
	assert_int_equal(sparse_store_apply(store, 77, gradient), 0);
	sparse_store_read(store, 77, values);
	for (unsigned i = 0; i < 3; i++)
		assert_true(values[i] == first[i] - 0.5f * gradient[i]);
	assert_int_equal(sparse_store_row(store, 0), 1);
	assert_int_equal(sparse_store_find(store, 77), 0);
	assert_true(sparse_store_key(store, 0) == 77 && sparse_store_key(store, 1) == 0);
	sparse_store_heat_add(store, 1, 7);
	sparse_store_heat_add(store, 0, UINT32_MAX);
	sparse_store_heat_add(store, 0, 5);
	assert_int_equal(sparse_store_heat(store, 0), UINT32_MAX);
	assert_int_equal(sparse_store_heat(store, 1), 7);
	sparse_store_close(store);
}

/* Row i of a set of keys. Each set is a way in which keys of a job may look. */
static uint64_t key_of(unsigned set, uint64_t i)
{
	switch (set) {
	case 0:
		return i;
	case 1:
		return i << 32;
	case 2:
		return i * 0x9e3779b97f4a7c15ull;
	case 3:
		return UINT64_MAX - 1 - i * 4096;
	default:
		return i << 52 | i >> 12;
	}
}

static void one_set(unsigned set, uint32_t n)
{
	struct sparse_table_options options = made("momentum", 2);
	struct sparse_store *store = opened(&options);
	float first[2];

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(sparse_store_row(store, key_of(set, i)), i);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t key = key_of(set, i);

		assert_int_equal(sparse_store_find(store, key), i);
		assert_int_equal(sparse_store_row(store, key), i);
		assert_true(sparse_store_key(store, i) == key);
		optimizer_values_begin(&options, key, first);
		assert_memory_equal(sparse_store_floats(store, i), first, sizeof(first));
		assert_true(sparse_store_floats(store, i)[2] == 0);
	}
	for (uint32_t i = n; i < 2 * n; i++)
		assert_int_equal(sparse_store_find(store, key_of(set, i)), SPARSE_ROW_NONE);
	sparse_store_close(store);
}

static void test_keys(void **state)
{
	uint32_t n = (uint32_t)test_count("rows", 100000, 20000);

	(void)state;
	for (unsigned set = 0; set < 5; set++)
		one_set(set, n);
}

/* At no time more than 1.5 times the bytes of rows and state, once there are enough rows. */
static void test_memory(void **state)
{
	struct sparse_table_options options = made("sgd", 16);
	struct sparse_store *store = opened(&options);
	uint32_t n = (uint32_t)test_count("rows", 1000000, 200000);

	(void)state;
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(sparse_store_row(store, key_of(2, i)), i);
		if (i > 60000)
			assert_true(2 * sparse_store_bytes(store) <=
			            3 * sparse_store_floats_bytes(store));
	}
	assert_int_equal(sparse_store_floats_bytes(store), n * 64ull);
	sparse_store_close(store);
}

/* A row of the widest kind. */
static void test_wide(void **state)
{
	struct sparse_table_options options = made("adam", SPARSE_WIDTH_MAX);
	struct sparse_store *store = opened(&options);
	float *gradient = calloc(SPARSE_WIDTH_MAX, sizeof(*gradient));

	(void)state;
	assert_non_null(gradient);
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(sparse_store_apply(store, i, gradient), i);
	assert_int_equal(sparse_store_floats_per_row(store), 3 * SPARSE_WIDTH_MAX + 2);
	assert_true(sparse_store_floats(store, 49)[3 * SPARSE_WIDTH_MAX] == (float)0.9);
	free(gradient);
	sparse_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_wide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
