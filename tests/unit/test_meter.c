/* SPDX-License-Identifier: Apache-2.0 */
/* The rate of a path, as its sender measures it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/path_meter.h"

#define MS 1000000ull
#define BYTES 1250u /* of a packet: 10,000 bits */

/* A path with a rate in packets a millisecond, watched for some time. Asks every `each` ms. */
static void watch(struct meter *meter, uint64_t *now, uint64_t *confirmed, unsigned ms,
                  unsigned packets, unsigned each)
{
	for (unsigned i = 1; i <= ms; i++) {
		*now += MS;
		*confirmed += packets;
		meter_pressed(meter);
		if (i % each == 0)
			meter_confirmed(meter, *now, *confirmed, BYTES);
	}
}

static void near(uint64_t bps, double expect)
{
	assert_true((double)bps > 0.99 * expect && (double)bps < 1.01 * expect);
}

static void test_measures(void **state)
{
	struct meter meter = { 0 };
	uint64_t now = 5 * MS, confirmed = 777;

	(void)state;
	watch(&meter, &now, &confirmed, 19, 10, 1); /* too short to tell */
	assert_int_equal(meter.bps, 0);
	watch(&meter, &now, &confirmed, 40, 10, 1);
	near(meter.bps, 100e6);
	watch(&meter, &now, &confirmed, 1000, 23, 7); /* at any interval of answers */
	near(meter.bps, 230e6);
	watch(&meter, &now, &confirmed, 1000, 5, 3);
	near(meter.bps, 50e6);
}

/* A sender that waits for others, or has nothing to send, learns nothing of the path. */
static void test_hindered(void **state)
{
	struct meter meter = { 0 };
	uint64_t now = MS, confirmed = 0;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		watch(&meter, &now, &confirmed, 15, 10, 1);
		meter_hindered(&meter);
	}
	assert_int_equal(meter.bps, 0);
	watch(&meter, &now, &confirmed, 100, 10, 1);
	near(meter.bps, 100e6);
	meter_hindered(&meter);
	now += 1000 * MS; /* idle for a second, which is not the path's fault */
	watch(&meter, &now, &confirmed, 100, 10, 1);
	near(meter.bps, 100e6);
}

/* A sender below the path's rate does not learn how much more it could carry. */
static void test_not_pressed(void **state)
{
	struct meter meter = { 0 };
	uint64_t now = MS, confirmed = 0;

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		now += MS;
		confirmed += 3;
		meter_confirmed(&meter, now, confirmed, BYTES);
	}
	assert_int_equal(meter.bps, 0);
}

/* A few packets say nothing of a path. */
static void test_few(void **state)
{
	struct meter meter = { 0 };
	uint64_t now = MS, confirmed = 0;

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		watch(&meter, &now, &confirmed, 1, 1, 1);
		now += 19 * MS;
	}
	assert_int_equal(meter.bps, 0);
}

/* A slow path takes longer to measure. */
static void test_slow(void **state)
{
	struct meter meter = { 0 };
	uint64_t now = MS, confirmed = 0;

	(void)state;
	watch(&meter, &now, &confirmed, 200, 1, 1);
	near(meter.bps, 10e6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_measures),    cmocka_unit_test(test_hindered),
		cmocka_unit_test(test_not_pressed), cmocka_unit_test(test_few),
		cmocka_unit_test(test_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
