/* SPDX-License-Identifier: Apache-2.0 */
/* The limit on packets in flight: heavy loss cuts it, and it grows back from any value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/in_flight.h"

/*
 * A sender that always has more to send. It fills the limit and reports when a report is due. All
 * reports of a turn are answered at its end.
 */
struct sender {
	struct flight flight;
	uint32_t stamp;
};

static void turn(struct sender *sender, double loss)
{
	struct flight *flight = &sender->flight;
	uint32_t first = sender->stamp + 1;
	uint64_t at[FLIGHT_MAX], before = flight->confirmed;

	while (!flight_is_full(flight)) {
		flight->launched++;
		if (flight_wants_report(flight, 1024)) {
			at[++sender->stamp - first] = flight->launched;
			flight_mark(flight, sender->stamp);
		}
	}
	flight_mark(flight, ++sender->stamp); /* after silence: one more report */
	at[sender->stamp - first] = flight->launched;
	for (uint32_t stamp = first; stamp <= sender->stamp; stamp++) {
		flight_confirm(flight, stamp,
		               (uint32_t)((double)(at[stamp - first] - before) * loss + 0.5));
		before = at[stamp - first];
	}
}

static void test_heavy_loss_cuts(void **state)
{
	struct sender sender = { .stamp = 0 };

	(void)state;
	flight_init(&sender.flight);
	turn(&sender, 0.1); /* the link's random loss */
	assert_true(sender.flight.limit >= FLIGHT_START);
	for (int i = 0; i < 100; i++)
		turn(&sender, 0.4);
	assert_int_equal(sender.flight.limit, FLIGHT_MIN);
}

/* With few packets in flight, each answer covers few packets. The limit must grow nonetheless. */
static void test_grows_back_from_the_least(void **state)
{
	struct sender sender = { .stamp = 0 };
	int turns = 0;

	(void)state;
	flight_init(&sender.flight);
	sender.flight.limit = FLIGHT_MIN;
	for (; sender.flight.limit < FLIGHT_START && turns < 1000; turns++)
		turn(&sender, 0);
	assert_true(turns < 60);
}

static void test_loss_at_the_least_is_seen(void **state)
{
	struct sender sender = { .stamp = 0 };

	(void)state;
	flight_init(&sender.flight);
	sender.flight.limit = 2 * FLIGHT_MIN;
	for (int i = 0; i < 20; i++)
		turn(&sender, 0.4);
	assert_int_equal(sender.flight.limit, FLIGHT_MIN);
}

/* Many reports at one moment do not displace those whose answers are still to come. */
static void test_reports_of_a_moment_are_one(void **state)
{
	struct flight flight;

	(void)state;
	flight_init(&flight);
	flight.launched = 100;
	flight_mark(&flight, 1);
	flight.launched = 200;
	for (unsigned i = 0; i < 4 * FLIGHT_MARKS; i++)
		flight_mark(&flight, 3);
	flight_confirm(&flight, 1, 0);
	assert_true(flight.confirmed == 100);
	flight_confirm(&flight, 3, 0);
	assert_true(flight.confirmed == 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heavy_loss_cuts),
		cmocka_unit_test(test_grows_back_from_the_least),
		cmocka_unit_test(test_loss_at_the_least_is_seen),
		cmocka_unit_test(test_reports_of_a_moment_are_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
