/* SPDX-License-Identifier: Apache-2.0 */
/* The profile of a job's steps, from its starts and waits alone. */
#include "worker/turns/step_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000ull
#define RANKS 4

static struct step_profile profile;
static uint64_t now, number;

/* A step: n requests 10 ms apart, then 5 ms of work, a wait of 20 ms, and 3 ms of other things. */
static void step(unsigned n, uint64_t bytes)
{
	uint64_t end = now;

	for (unsigned i = 0; i < n; i++) {
		now = end + 10 * MS * (i + 1);
		step_profile_post(&profile, number++, bytes + i, i == 0, now);
	}
	now += 5 * MS;
	for (unsigned i = 0; i < n; i++) {
		step_profile_wait(&profile, now);
		now += i ? 0 : 20 * MS;
		step_profile_waited(&profile, now);
	}
}

static int setup(void **state)
{
	(void)state;
	memset(&profile, 0, sizeof(profile));
	now = 1000 * MS;
	number = 0;
	return 0;
}

static struct wire_turn told;
static struct wire_turn_op ops[WIRE_TURN_OPS_MAX];

static unsigned tell(void)
{
	memset(&told, 0, sizeof(told));
	step_profile_tell(&profile, RANKS, number, false, now, &told, ops);
	return told.ops;
}

static void test_step(void **state)
{
	(void)state;
	step_profile_took(&profile, false, true, 1000000, 300 * MS);
	step_profile_took(&profile, true, true, 1000000, 240 * MS);
	step(3, 1000000);
	assert_int_equal(tell(), 0); /* one step says nothing */
	step(3, 1000000);
	assert_int_equal(tell(), 0); /* the second step has not ended before the third begins */
	step(3, 1000000);
	assert_int_equal(tell(), 3);
	assert_int_equal(told.base, 6);
	assert_int_equal(told.compute_us, 35000);
	assert_int_equal(told.age_us, 55000);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ops[i].start_us, 10000 * (i + 1));
	assert_in_range(ops[0].plain_us, 300000, 300200);
	assert_float_equal(step_profile_bytes_in(&profile, false, 3 * MS), 10000, 1);
	assert_in_range(ops[0].fast_us, 240000, 240200);
}

/* If the program has waited and nothing is in flight, the next step has begun. */
static void test_over(void **state)
{
	(void)state;
	step_profile_took(&profile, false, true, 1000000, 300 * MS);
	for (unsigned i = 0; i < 3; i++)
		step(3, 1000000);
	now += 7 * MS;
	memset(&told, 0, sizeof(told));
	step_profile_tell(&profile, RANKS, number, true, now, &told, ops);
	assert_int_equal(told.ops, 3);
	assert_int_equal(told.base, 9);
	assert_int_equal(told.age_us, 7000);
	/* The first of it is posted: the same is told. */
	step_profile_post(&profile, number++, 1000000, true, now += 3 * MS);
	step_profile_tell(&profile, RANKS, number, false, now, &told, ops);
	assert_int_equal(told.base, 9);
	assert_int_equal(told.age_us, 10000);
	/* It is over too, but nobody has waited for it. */
	step_profile_tell(&profile, RANKS, number, true, now, &told, ops);
	assert_int_equal(told.base, 9);
}

/* Two requests, `percent` of their usual times after the step's beginning; the second is open. */
static void half_step(unsigned percent)
{
	uint64_t end = now;

	for (unsigned i = 0; i < 2; i++) {
		now = end + 10 * MS * (i + 1) * percent / 100;
		step_profile_post(&profile, number++, 1000000 + i, i == 0, now);
	}
}

static void half_wait(unsigned percent)
{
	now += 20 * MS * percent / 100;
	step_profile_wait(&profile, now);
	step_profile_waited(&profile, now);
}

/* Steps vary: the mean of the last ones is told, at the pace of the present one. */
static void test_pace(void **state)
{
	static const unsigned varied[] = { 90, 110, 80, 120 };

	(void)state;
	step_profile_took(&profile, false, true, 1000000, 300 * MS);
	for (unsigned i = 0; i < 40; i++) {
		half_step(varied[i % 4]);
		half_wait(varied[i % 4]);
	}
	step_profile_tell(&profile, RANKS, number, true, now, &told, ops);
	assert_in_range(told.compute_us, 37000, 43000);
	assert_in_range(ops[1].start_us, 18500, 21500);
	half_step(70); /* it is early, and so will be its end */
	assert_int_equal(tell(), 2);
	assert_in_range(ops[1].start_us, 13900, 14100);
	assert_in_range(told.compute_us, 27000, 29000);
	half_wait(70);
	half_step(1000); /* something else has happened */
	assert_int_equal(tell(), 2);
	assert_in_range(told.compute_us, 66000, 80000);
}

/* Another size or number of requests: the profile is unknown until the step repeats. */
static void test_change(void **state)
{
	(void)state;
	step_profile_took(&profile, false, true, 1000000, 300 * MS);
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

/* Requests that end between starts do not end a step: only a wait does. */
static void test_gaps(void **state)
{
	(void)state;
	step_profile_took(&profile, false, true, 1000000, 300 * MS);
	for (unsigned s = 0; s < 3; s++) {
		for (unsigned i = 0; i < 5; i++)
			step_profile_post(&profile, number++, 1000000, true, now += 10 * MS);
		step_profile_wait(&profile, now += MS);
		step_profile_waited(&profile, now += MS);
	}
	assert_int_equal(tell(), 5);
}

static void test_long(void **state)
{
	(void)state;
	step_profile_took(&profile, false, true, 1000000, 300 * MS);
	for (unsigned i = 0; i < 3; i++)
		step(WIRE_TURN_OPS_MAX + 1, 1000000);
	assert_int_equal(tell(), 0); /* too many to report */
	for (unsigned i = 0; i < 3; i++)
		step(WIRE_TURN_OPS_MAX, 1000000);
	assert_int_equal(tell(), WIRE_TURN_OPS_MAX);
}

/* Queued requests count too. Impossible values are not reported. */
static void test_rates(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		step(1, 1000000);
	assert_int_equal(tell(), 0); /* no rate is known */
	assert_true(step_profile_bytes_in(&profile, false, MS) <= 0);
	step_profile_took(&profile, false, false, 1000000, 100 * MS);
	assert_int_equal(tell(), 1);
	assert_in_range(ops[0].plain_us, 100000, 100200);
	step_profile_took(&profile, false, true, 1000000, 300 * MS);
	step_profile_took(&profile, false, false, 1000000, 100 * MS);
	step_profile_took(&profile, false, true, 1000, 900 * MS); /* too small to tell anything */
	tell();
	assert_in_range(ops[0].plain_us, 300000, 300200);
	assert_in_range(ops[0].fast_us, 200000, 200200); /* not seen yet: what four can gain */
	step_profile_took(&profile, true, true, 1000000, 50 * MS);
	tell();
	assert_in_range(ops[0].fast_us, 166666, 166800); /* nor is a much higher gain possible */
	for (unsigned i = 0; i < 200; i++)
		step_profile_took(&profile, true, true, 1000000, 900 * MS);
	tell();
	assert_true(ops[0].fast_us < ops[0].plain_us); /* otherwise it would never be tried again */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_step, setup),
		cmocka_unit_test_setup(test_over, setup),
		cmocka_unit_test_setup(test_pace, setup),
		cmocka_unit_test_setup(test_change, setup),
		cmocka_unit_test_setup(test_gaps, setup),
		cmocka_unit_test_setup(test_long, setup),
		cmocka_unit_test_setup(test_rates, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
