/* SPDX-License-Identifier: Apache-2.0 */
/* Pacing: the rate is kept with few sleeps, although sleeps are long and end late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/pacer.h"

#define SECOND 1000000000ull
#define PACKET 1472u

struct ran {
	uint64_t bytes, sleeps, burst;
};

/* A sender that always has data, for a second. Its sleeps end `late`. */
static struct ran run(uint64_t rate, uint64_t late)
{
	struct pacer pacer = { .rate = rate };
	uint64_t now = SECOND, end = now + SECOND;
	struct ran ran = { 0 };

	pacer.free_at = now;
	while (now < end) {
		uint64_t burst = 0;

		while (pacer_free_at(&pacer) <= now) {
			pacer_sent(&pacer, now, PACKET);
			burst += PACKET;
		}
		ran.bytes += burst;
		ran.burst = burst > ran.burst ? burst : ran.burst;
		now = pacer_free_at(&pacer) + late;
		ran.sleeps++;
	}
	return ran;
}

static void test_keeps_rate(void **state)
{
	static const uint64_t rates[] = { 10000000, 100000000, 500000000, 1000000000, 10000000000 };

	(void)state;
	for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		for (uint64_t late = 0; late <= 400000; late += 50000) {
			struct ran ran = run(rates[i], late);
			double sent = (double)ran.bytes * 8 / (double)rates[i];

			assert_true(sent > 0.99 && sent < 1.01);
			/* One sleep for each batch, or one for each nap. */
			assert_true(ran.sleeps <= rates[i] / 8 / PACER_BATCH + 2100);
			assert_true(ran.burst * 8 <=
			            rates[i] / 1000 + 2 * 8 * (PACKET + PACER_BATCH));
		}
	}
}

#define ROOM 524288u

/* Like run, if the kernel holds packets until their time, in messages as a lane builds them. */
static struct ran run_ahead(uint64_t rate, uint64_t late, bool joins, uint64_t *last)
{
	struct pacer pacer;
	uint64_t now = SECOND, end = now + SECOND;
	uint64_t times[4096] = { 0 };
	struct ran ran = { 0 };
	uint32_t n = 0;

	pacer_start(&pacer, rate, 0, now);
	assert_true(pacer_go_ahead(&pacer, ROOM, 100));
	pacer.free_at = now;
	while (now < end) {
		uint32_t message = 0, together = pacer_message_bytes(&pacer, joins);
		uint64_t time = 0;

		while (pacer_free_at(&pacer) <= now) {
			pacer_sent(&pacer, now, PACKET);
			ran.bytes += PACKET;
			if (message && message + PACKET > together) {
				pacer_message(&pacer, now, time);
				times[n++ % 4096] = time;
				message = 0;
			}
			if (!message)
				time = pacer_time(&pacer, now);
			message += PACKET;
			/* Times are in order, and none is far ahead. */
			assert_true(time == 0 || time >= times[(n - 1) % 4096]);
			assert_true(pacer.leaves_at <= now + PACER_AHEAD_NS);
		}
		if (message) {
			pacer_message(&pacer, now, time);
			times[n++ % 4096] = time;
		}
		/* fq holds this many for a flow, each a message or a packet. */
		assert_true(times[(n - 100) % 4096] <= now);
		now = pacer_free_at(&pacer) + late;
		ran.sleeps++;
	}
	*last = pacer.leaves_at;
	return ran;
}

static void test_keeps_rate_ahead(void **state)
{
	static const uint64_t rates[] = { 10000000, 100000000, 500000000, 1000000000, 10000000000 };
	uint64_t last;

	(void)state;
	for (unsigned i = 0; i < 2 * sizeof(rates) / sizeof(rates[0]); i++) {
		uint64_t rate = rates[i / 2];
		bool joins = i % 2;
		uint64_t packets = rate / 8 / PACKET;

		for (uint64_t late = 0; late <= 30000; late += 10000) {
			struct ran ran = run_ahead(rate, late, joins, &last);
			double sent = (double)ran.bytes * 8 / (double)rate;

			assert_true(sent > 0.99 && sent < 1.01);
			assert_true(last < 2 * SECOND + 2 * PACER_AHEAD_NS);
			/* One sleep lasts for half of what the kernel holds. */
			if (joins)
				assert_true(ran.sleeps <= rate / 8 / (ROOM / 2 - 2 * PACKET) + 510);
			else
				assert_true(ran.sleeps <= packets / 30 + 510);
		}
	}
	/* Far fewer sleeps than if the sender spaces packets itself. */
	for (unsigned i = 1; i < sizeof(rates) / sizeof(rates[0]); i++)
		assert_true(3 * run_ahead(rates[i], 0, true, &last).sleeps <
		            run(rates[i], 0).sleeps);
}

/* A late sender catches up, but not at once. */
static void test_late_ahead(void **state)
{
	uint64_t now = 100 * SECOND, first, at;
	struct pacer pacer;

	(void)state;
	pacer_start(&pacer, 80000000, 0, now); /* 1000 bytes: 0.1 ms */
	assert_true(pacer_go_ahead(&pacer, ROOM, 100));
	pacer_sent(&pacer, now, 1000); /* as after a long idle time */
	assert_int_equal(pacer_time(&pacer, now), 0);
	first = pacer.leaves_at;
	for (unsigned i = 1; i <= 50; i++) {
		pacer_sent(&pacer, now, 1000);
		at = pacer_time(&pacer, now);
		assert_int_equal(at, first + i * 50000);
	}
	assert_int_equal(first, now);
	/* When no limit is left, order is still kept. */
	pacer_given(&pacer, 0, 1, now);
	pacer.rate = 0;
	pacer_sent(&pacer, now, 1000);
	assert_int_equal(pacer_time(&pacer, now), at);
	assert_int_equal(pacer_free_at(&pacer), 0);
	assert_int_equal(pacer_message_bytes(&pacer, false), UINT32_MAX);
}

static void test_ahead_needs_room(void **state)
{
	struct pacer pacer;

	(void)state;
	pacer_start(&pacer, 1000, 0, SECOND);
	assert_false(pacer_go_ahead(&pacer, 0, 100));
	assert_false(pacer_go_ahead(&pacer, ROOM, 0));
	assert_false(pacer_go_ahead(&pacer, ROOM, 10));
	assert_int_equal(pacer.held_bytes, 0);
	assert_true(pacer_go_ahead(&pacer, ROOM, 12));
	assert_int_equal(pacer.held, 8);
	/* A packet that takes seconds is not sent seconds early. */
	pacer.free_at = SECOND;
	pacer_sent(&pacer, SECOND, 1000);
	assert_int_equal(pacer.leaves_at, SECOND);
	assert_int_equal(pacer_free_at(&pacer), 9 * SECOND - PACER_AHEAD_NS / 2);
}

/* Early wake-ups do not split batches: packets leave together. */
static void test_woken(void **state)
{
	struct pacer pacer = { .rate = 100000000, .free_at = SECOND };
	uint64_t bytes = 0, bursts = 0;

	(void)state;
	for (uint64_t now = SECOND; now < 2 * SECOND; now += 20000) {
		uint64_t before = bytes;

		for (; pacer_free_at(&pacer) <= now; bytes += PACKET)
			pacer_sent(&pacer, now, PACKET);
		bursts += bytes > before;
	}
	assert_in_range(bytes * 8, 99000000, 101000000);
	assert_in_range(bursts, 100, 2100);
}

static void test_no_limit(void **state)
{
	struct pacer pacer = { 0 };

	(void)state;
	pacer_sent(&pacer, 5, PACKET);
	assert_int_equal(pacer_free_at(&pacer), 0);
}

/* After a long pause at most a burst leaves at once. */
static void test_pause(void **state)
{
	struct pacer pacer = { .rate = 80000000 };
	unsigned n = 0;

	(void)state;
	for (; pacer_free_at(&pacer) <= 100 * SECOND; n++)
		pacer_sent(&pacer, 100 * SECOND, 1000);
	/* A packet takes 0.1 ms. The last one may begin as the burst ends. */
	assert_int_equal(n, PACER_BURST_NS / 100000 + 1);
}

/* The newest rate holds, below the user's own limit. */
static void test_given(void **state)
{
	struct pacer pacer = { 0 };

	(void)state;
	pacer_given(&pacer, 500, 0, SECOND); /* no rate was given yet */
	assert_int_equal(pacer.rate, 0);
	pacer_given(&pacer, 500, 2, SECOND);
	pacer_given(&pacer, 900, 1, SECOND);
	assert_int_equal(pacer.rate, 500);
	pacer_given(&pacer, 900, 3, SECOND);
	assert_int_equal(pacer.rate, 900);
	pacer_given(&pacer, 0, 4, SECOND);
	assert_int_equal(pacer.rate, 0);
	pacer.own = 700;
	pacer_given(&pacer, 900, 5, SECOND);
	assert_int_equal(pacer.rate, 700);
	pacer_given(&pacer, 600, UINT32_MAX, SECOND); /* older: stamps wrap */
	assert_int_equal(pacer.rate, 700);
	pacer_given(&pacer, 600, 6, SECOND);
	assert_int_equal(pacer.rate, 600);
	pacer_given(&pacer, 0, 7, SECOND);
	assert_int_equal(pacer.rate, 700);
}

/* A rate that is not confirmed any more expires, until it is confirmed again. */
static void test_stale(void **state)
{
	struct pacer pacer;

	(void)state;
	pacer_start(&pacer, 700, 500, SECOND);
	assert_int_equal(pacer.rate, 500);
	pacer_forget(&pacer, SECOND + PACER_STALE_NS);
	assert_int_equal(pacer.rate, 500);
	pacer_given(&pacer, 400, 3, 2 * SECOND);
	pacer_given(&pacer, 400, 3, 9 * SECOND); /* a repeated message keeps it alive */
	pacer_forget(&pacer, 9 * SECOND + PACER_STALE_NS);
	assert_int_equal(pacer.rate, 400);
	pacer_given(&pacer, 300, 2, 20 * SECOND); /* an older message does not */
	pacer_forget(&pacer, 20 * SECOND);
	assert_int_equal(pacer.rate, 700);
	pacer_given(&pacer, 400, 3, 21 * SECOND);
	assert_int_equal(pacer.rate, 400);
	/* A sender that never got a rate has none to lose. */
	pacer_start(&pacer, 0, 0, SECOND);
	pacer_forget(&pacer, 100 * SECOND);
	assert_int_equal(pacer.rate, 0);
	pacer_start(&pacer, 700, 0, SECOND);
	pacer_forget(&pacer, 100 * SECOND);
	assert_int_equal(pacer.rate, 700);
}

/* The rate that a sender asks for: the user's limit, or else its share. */
static void test_want(void **state)
{
	struct pacer pacer;
	double big, small;

	(void)state;
	pacer_start(&pacer, 300 * 1024, 0, 0);
	assert_int_equal(pacer_want(&pacer, 0.75, 1024), 300);
	pacer_start(&pacer, UINT64_MAX, 0, 0);
	assert_int_equal(pacer_want(&pacer, 0.75, 1024), UINT32_MAX);
	/* Without a limit: in proportion to the share, and far above any link's rate. */
	pacer_start(&pacer, 0, 0, 0);
	assert_int_equal(pacer_want(&pacer, 1, 1024), 0);
	big = pacer_want(&pacer, 0.99, 1024);
	small = pacer_want(&pacer, 0.01, 1024);
	assert_true(big / small > 98.999 && big / small < 99.001);
	assert_true(small * 1024 > 40e9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_want),
		cmocka_unit_test(test_keeps_rate),
		cmocka_unit_test(test_keeps_rate_ahead),
		cmocka_unit_test(test_late_ahead),
		cmocka_unit_test(test_ahead_needs_room),
		cmocka_unit_test(test_woken),
		cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_given),
		cmocka_unit_test(test_stale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
