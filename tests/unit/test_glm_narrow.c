/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of 64-bit numbers in 32 bits: exact, or all workers know that they are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "glm/exchange/exchange.h"
#include "glm/exchange/narrow_sums.h"

#include <stdlib.h>
#include <string.h>

#define N 5u
#define WORKERS 4u

/* Sums vectors as an exchange does. True: read; *exact: the sums are right. */
static bool sum_all(int64_t data[WORKERS][N], bool *exact)
{
	uint32_t sum[N + 1] = { 0 };
	int32_t narrow[N + 1];
	int64_t result[N], right[N] = { 0 };
	bool is_read;

	for (unsigned w = 0; w < WORKERS; w++) {
		narrow_fill(data[w], N, narrow);
		for (unsigned i = 0; i <= N; i++)
			sum[i] += (uint32_t)narrow[i];
		for (unsigned i = 0; i < N; i++)
			right[i] += data[w][i];
	}
	memcpy(narrow, sum, sizeof(narrow));
	memset(result, 0x55, sizeof(result));
	is_read = narrow_read(narrow, N, result);
	*exact = !memcmp(result, right, sizeof(right));
	return is_read;
}

/* Numbers of up to `bits` bits, with both signs. */
static int64_t number(unsigned bits)
{
	uint64_t random = (uint64_t)rand() << 40 ^ (uint64_t)rand() << 20 ^ (uint64_t)rand();
	int64_t size = (int64_t)(bits ? random >> (64 - bits) : 0);

	return rand() % 2 ? size : -size;
}

static void sums_are_exact_or_refused(void **state)
{
	unsigned reads = 0, refusals = 0;

	(void)state;
	srand(7);
	for (unsigned round = 0; round < 100000; round++) {
		int64_t data[WORKERS][N];
		unsigned bits = (unsigned)rand() % 61;
		bool is_read, exact;

		for (unsigned w = 0; w < WORKERS; w++)
			for (unsigned i = 0; i < N; i++)
				data[w][i] = number(bits);
		is_read = sum_all(data, &exact);
		assert_true(!is_read || exact);
		assert_true(is_read || bits > 28); /* four of 2^28 fit */
		reads += is_read;
		refusals += !is_read;
	}
	assert_true(reads > 10000 && refusals > 10000);
}

static void borders(void **state)
{
	int64_t data[WORKERS][N] = { { 0 } };
	bool exact;

	(void)state;
	data[0][0] = INT32_MAX - 3 * 65536;
	assert_true(sum_all(data, &exact) && exact);
	data[0][0] = INT32_MIN + 3 * 65536;
	assert_true(sum_all(data, &exact) && exact);
	data[0][0] = INT32_MAX + 1ll;
	assert_false(sum_all(data, &exact));
	data[0][0] = INT64_MIN;
	assert_false(sum_all(data, &exact));
	/* The last 32 bits are small, and the number is not. */
	data[0][0] = 1ll << 40;
	assert_false(sum_all(data, &exact));
	/* Each fits alone, and the sum does not. */
	for (unsigned w = 0; w < WORKERS; w++)
		data[w][0] = 1 << 30;
	assert_false(sum_all(data, &exact));
	for (unsigned w = 0; w < WORKERS; w++)
		data[w][0] = -(1 << 29);
	assert_true(sum_all(data, &exact) && exact);
}

/* ---- the exchange ---- */

static unsigned sums, sums32;

/* The other worker has the same numbers. */
static trib_status twice(struct exchange *x, int64_t *data, size_t n)
{
	(void)x;
	sums++;
	for (size_t i = 0; i < n; i++)
		data[i] *= 2;
	return TRIB_OK;
}

static trib_status twice32(struct exchange *x, int32_t *data, size_t n)
{
	(void)x;
	sums32++;
	for (size_t i = 0; i < n; i++)
		data[i] = (int32_t)(2 * (uint32_t)data[i]);
	return TRIB_OK;
}

static void large_numbers_are_summed_again(void **state)
{
	static const struct glm_exchange table = { .sum = twice, .sum32 = twice32 };
	struct exchange x = { .ops = &table, .size = 2 };
	int64_t data[N] = { 1, -2, 3, -4, 1 << 29 };
	int32_t scratch[N + 1];

	(void)state;
	assert_int_equal(exchange_sum_small(&x, data, N, scratch), TRIB_OK);
	assert_true(data[1] == -4 && data[4] == 1 << 30);
	assert_int_equal(sums, 0);
	assert_int_equal(exchange_sum_small(&x, data, N, scratch), TRIB_OK);
	assert_true(data[1] == -8 && data[4] == 1ll << 31);
	assert_int_equal(sums, 1);
	/* 32 bits are not tried again. */
	assert_int_equal(sums32, 2);
	assert_int_equal(exchange_sum_small(&x, data, N, scratch), TRIB_OK);
	assert_true(data[1] == -16 && data[4] == 1ll << 32);
	assert_int_equal(sums32, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_exact_or_refused),
		cmocka_unit_test(borders),
		cmocka_unit_test(large_numbers_are_summed_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
