/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a job's steps, from its posts and waits alone. */
#include "worker/rhythm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000ull
#define RANKS 4

static struct rhythm rhythm;
static uint64_t now, number;

/* A step of n requests 10 ms apart; then 5 ms of work, a wait of 20 ms, and 3 ms of other things.
 */
static void step(unsigned n, uint64_t bytes)
{
	uint64_t end = now;

	for (unsigned i = 0; i < n; i++) {
		now = end + 10 * MS * (i + 1);
		rhythm_post(&rhythm, number++, bytes + i, i == 0, now);
	}
	now += 5 * MS;
	for (unsigned i = 0; i < n; i++) {
		rhythm_wait(&rhythm, now);
		now += i ? 0 : 20 * MS;
		rhythm_waited(&rhythm, now);
	}
}

static int setup(void **state)
{
	(void)state;
	memset(&rhythm, 0, sizeof(rhythm));
	now = 1000 * MS;
	number = 0;
	return 0;
}

static struct wire_turn told;
static struct wire_turn_op ops[WIRE_TURN_OPS_MAX];

static unsigned tell(void)
{
	memset(&told, 0, sizeof(told));
	rhythm_tell(&rhythm, RANKS, number, false, now, &told, ops);
	return told.ops;
}

static void test_step(void **state)
{
	(void)state;
	rhythm_took(&rhythm, false, true, 1000000, 300 * MS);
	rhythm_took(&rhythm, true, true, 1000000, 240 * MS);
	step(3, 1000000);
	assert_int_equal(tell(), 0); /* one step says nothing */
	step(3, 1000000);
	assert_int_equal(tell(), 0); /* nor has the second ended before the third begins */
	step(3, 1000000);
	assert_int_equal(tell(), 3);
	assert_int_equal(told.base, 6);
	assert_int_equal(told.compute_us, 35000);
	assert_int_equal(told.age_us, 55000);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ops[i].start_us, 10000 * (i + 1));
	assert_in_range(ops[0].plain_us, 300000, 300200);
	assert_float_equal(rhythm_bytes_in(&rhythm, false, 3 * MS), 10000, 1);
	assert_in_range(ops[0].fast_us, 240000, 240200);
}

/* When the program has waited and nothing is under way, the next step has begun. */
static void test_over(void **state)
{
	(void)state;
	rhythm_took(&rhythm, false, true, 1000000, 300 * MS);
	for (unsigned i = 0; i < 3; i++)
		step(3, 1000000);
	now += 7 * MS;
	memset(&told, 0, sizeof(told));
	rhythm_tell(&rhythm, RANKS, number, true, now, &told, ops);
	assert_int_equal(told.ops, 3);
	assert_int_equal(told.base, 9);
	assert_int_equal(told.age_us, 7000);
	/* The first of it is posted: the same is told. */
	rhythm_post(&rhythm, number++, 1000000, true, now += 3 * MS);
	rhythm_tell(&rhythm, RANKS, number, false, now, &told, ops);
	assert_int_equal(told.base, 9);
	assert_int_equal(told.age_us, 10000);
	/* It is over too, but nobody has waited for it. */
	rhythm_tell(&rhythm, RANKS, number, true, now, &told, ops);
	assert_int_equal(told.base, 9);
}

/* Another size, another number of requests: nothing is known until it comes again. */
static void test_change(void **state)
{
	(void)state;
	rhythm_took(&rhythm, false, true, 1000000, 300 * MS);
	for (unsigned i = 0; i < 3; i++)
		step(3, 1000000);
	assert_int_equal(tell(), 3);
	step(4, 1000000);
	step(4, 1000000);
	assert_int_equal(tell(), 0);
	step(4, 1000000);
	assert_int_equal(tell(), 4);
	step(4, 2000000);
	step(4, 2000000);
	assert_int_equal(tell(), 0);
}

/* Requests that end between posts do not end a step: only a wait does. */
static void test_gaps(void **state)
{
	(void)state;
	rhythm_took(&rhythm, false, true, 1000000, 300 * MS);
	for (unsigned s = 0; s < 3; s++) {
		for (unsigned i = 0; i < 5; i++)
			rhythm_post(&rhythm, number++, 1000000, true, now += 10 * MS);
		rhythm_wait(&rhythm, now += MS);
		rhythm_waited(&rhythm, now += MS);
	}
	assert_int_equal(tell(), 5);
}

static void test_long(void **state)
{
	(void)state;
	rhythm_took(&rhythm, false, true, 1000000, 300 * MS);
	for (unsigned i = 0; i < 3; i++)
		step(WIRE_TURN_OPS_MAX + 1, 1000000);
	assert_int_equal(tell(), 0); /* too many to be told */
	for (unsigned i = 0; i < 3; i++)
		step(WIRE_TURN_OPS_MAX, 1000000);
	assert_int_equal(tell(), WIRE_TURN_OPS_MAX);
}

/* What comes behind another one counts, and what cannot be is not told. */
static void test_rates(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		step(1, 1000000);
	assert_int_equal(tell(), 0); /* no rate is known */
	assert_true(rhythm_bytes_in(&rhythm, false, MS) <= 0);
	rhythm_took(&rhythm, false, false, 1000000, 100 * MS);
	assert_int_equal(tell(), 1);
	assert_in_range(ops[0].plain_us, 100000, 100200);
	rhythm_took(&rhythm, false, true, 1000000, 300 * MS);
	rhythm_took(&rhythm, false, false, 1000000, 100 * MS);
	rhythm_took(&rhythm, false, true, 1000, 900 * MS); /* too small to tell anything */
	tell();
	assert_in_range(ops[0].plain_us, 300000, 300200);
	assert_in_range(ops[0].fast_us, 200000, 200200); /* not seen yet: what four can gain */
	rhythm_took(&rhythm, true, true, 1000000, 50 * MS);
	tell();
	assert_in_range(ops[0].fast_us, 166666, 166800); /* nor can much more be */
	for (unsigned i = 0; i < 200; i++)
		rhythm_took(&rhythm, true, true, 1000000, 900 * MS);
	tell();
	assert_true(ops[0].fast_us < ops[0].plain_us); /* else it would never be tried again */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_step, setup),
		cmocka_unit_test_setup(test_over, setup),
		cmocka_unit_test_setup(test_change, setup),
		cmocka_unit_test_setup(test_gaps, setup),
		cmocka_unit_test_setup(test_long, setup),
		cmocka_unit_test_setup(test_rates, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
