/* SPDX-License-Identifier: Apache-2.0 */
/* The MPI adapter's pure parts: which way a call takes, and sums of doubles with scales. */
#include "../../adapters/mpi/call_way.h"
#include "../../adapters/mpi/scaled_sum.h"

#include "base/random_bits.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define N 2000
#define RANKS SCALED_RANKS_MAX

static double values[RANKS][N], result[N];
static uint8_t classes[N], own[N];
static int64_t sums[N], integers[N];

/* What the ranks do together. False: some numbers have no class. */
static bool sum_all(unsigned ranks)
{
	memset(classes, 0, sizeof(classes));
	memset(sums, 0, sizeof(sums));
	for (unsigned r = 0; r < ranks; r++) {
		scaled_classes(values[r], N, own);
		for (size_t i = 0; i < N; i++)
			classes[i] = own[i] > classes[i] ? own[i] : classes[i];
	}
	if (!scaled_is_possible(classes, N))
		return false;
	for (unsigned r = 0; r < ranks; r++) {
		scaled_encode(values[r], classes, N, ranks, integers);
		for (size_t i = 0; i < N; i++)
			assert_false(__builtin_add_overflow(sums[i], integers[i], &sums[i]));
	}
	scaled_decode(sums, classes, N, ranks, result);
	return true;
}

static double draw(uint64_t *state, int spread)
{
	double value;

	*state = bits_mix(*state + RANDOM_STEP);
	value = ldexp((double)(*state >> 11), -53);
	*state = bits_mix(*state + RANDOM_STEP);
	return ldexp(*state & 1 ? value : -value, (int)(*state >> 33) % spread);
}

/* The bound of the header, against sums in long double, which has 64 bits. */
static void test_bound(void **state)
{
	const char *given = getenv("SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);

	(void)state;
	printf("SEED=%llu\n", (unsigned long long)seed);
	for (unsigned ranks = 1; ranks <= RANKS; ranks += 1 + ranks / 4) {
		double bits = 63 - ceil(log2(ranks));

		for (unsigned r = 0; r < ranks; r++)
			for (size_t i = 0; i < N; i++)
				values[r][i] = draw(&seed, 1 + (int)(i % 400));
		assert_true(sum_all(ranks));
		for (size_t i = 0; i < N; i++) {
			long double exact = 0;
			double most = 0, bound;

			for (unsigned r = 0; r < ranks; r++) {
				exact += values[r][i];
				most = fmax(most, fabs(values[r][i]));
			}
			bound = ranks * 16 * most * exp2(-bits) / 2;
			bound += fabs((double)exact) * 0x1p-53 + ranks * most * 0x1p-62;
			assert_true(fabsl(result[i] - exact) <= bound);
		}
	}
}

/* One rank has a number, all others 0: it stays as it is. Small whole numbers are exact. */
static void test_exact(void **state)
{
	uint64_t seed = 7;

	(void)state;
	memset(values, 0, sizeof(values));
	for (size_t i = 0; i < N; i++)
		values[i % RANKS][i] = draw(&seed, 300);
	assert_true(sum_all(RANKS));
	for (size_t i = 0; i < N; i++)
		assert_true(result[i] == values[i % RANKS][i]);
	for (unsigned r = 0; r < RANKS; r++)
		for (size_t i = 0; i < N; i++)
			values[r][i] = (double)((i + r) % 1000) - 300;
	assert_true(sum_all(RANKS));
	for (size_t i = 0; i < N; i++) {
		double exact = 0;

		for (unsigned r = 0; r < RANKS; r++)
			exact += values[r][i];
		assert_true(result[i] == exact);
	}
}

static void test_no_class(void **state)
{
	static const double none[] = {
		INFINITY, -INFINITY, NAN, 0x1p509, -0x1p600, 1e-320, 0x1p-508
	};
	static const double some[] = { 0, -0.0, 0x1.fffffffffffffp508, -0x1p-507, 1 };
	uint8_t class;

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		scaled_classes(&none[i], 1, &class);
		assert_int_equal(class, SCALED_NONE);
		assert_false(scaled_is_possible(&class, 1));
	}
	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
		double back;
		int64_t one;

		scaled_classes(&some[i], 1, &class);
		assert_true(scaled_is_possible(&class, 1));
		scaled_encode(&some[i], &class, 1, RANKS, &one);
		scaled_decode(&one, &class, 1, RANKS, &back);
		assert_true(back == some[i]);
	}
}

static void test_way(void **state)
{
	struct call_shape shape = { .is_predefined = true,
		                    .has_type = true,
		                    .has_op = true,
		                    .is_sum = true,
		                    .type = TRIB_I32,
		                    .count = 100000,
		                    .bytes = 400000,
		                    .ranks = 4 };

	(void)state;
	assert_int_equal(call_way(&shape, EXACT_ALL), WAY_SUM);
	shape.type = TRIB_F32;
	assert_int_equal(call_way(&shape, EXACT_ALL), WAY_MPI);
	assert_int_equal(call_way(&shape, EXACT_DOUBLE), WAY_SUM);
	shape.type = TRIB_F64;
	assert_int_equal(call_way(&shape, EXACT_ALL), WAY_SCALED);
	assert_int_equal(call_way(&shape, EXACT_DOUBLE), WAY_SCALED);
	assert_int_equal(call_way(&shape, EXACT_NONE), WAY_SUM);
	shape.is_sum = false;
	assert_int_equal(call_way(&shape, EXACT_ALL), WAY_SUM);
	shape.has_op = false;
	assert_int_equal(call_way(&shape, EXACT_NONE), WAY_MPI);
	shape.bytes = GATHER_BYTES / 4;
	assert_int_equal(call_way(&shape, EXACT_NONE), WAY_GATHER);
	shape.bytes++;
	assert_int_equal(call_way(&shape, EXACT_NONE), WAY_MPI);
	shape.least = shape.bytes + 1;
	shape.type = TRIB_I32;
	shape.has_op = true;
	assert_int_equal(call_way(&shape, EXACT_NONE), WAY_MPI);
	shape.least--;
	assert_int_equal(call_way(&shape, EXACT_NONE), WAY_SUM);
	shape.bytes = 4;
	shape.is_predefined = false;
	assert_int_equal(call_way(&shape, EXACT_NONE), WAY_MPI);
	shape.is_predefined = true;
	shape.bytes = 0;
	assert_int_equal(call_way(&shape, EXACT_NONE), WAY_MPI);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_no_class),
		cmocka_unit_test(test_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
