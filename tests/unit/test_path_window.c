/* SPDX-License-Identifier: Apache-2.0 */
/* How long a queue a window keeps, if threads are late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "path/path_window.h"

#define LEAST_NS 100000u /* 0.1 ms: the round trip without a queue */
#define PACKET_NS 12000u /* of a link of 1 Gb/s */

/* The queue, in ns, after many rounds of a path that sends all the time. */
static double queue_of(uint32_t target, uint64_t late)
{
	struct path_window window;
	uint64_t now = 0;

	path_window_init(&window, 0, target);
	for (uint64_t sequence = 1; sequence < 5000; sequence++) {
		uint64_t queue = (uint64_t)(window.packets * PACKET_NS);
		uint64_t rtt = queue > LEAST_NS ? queue : LEAST_NS;

		now += rtt;
		window.full = true;
		window.least = LEAST_NS;
		window.least_at = now;
		window.samples = WINDOW_SAMPLES;
		path_window_late(&window, late);
		path_window_ack(&window, 64, 0, rtt, sequence, sequence, now);
	}
	return window.packets * PACKET_NS - LEAST_NS;
}

static void test_late_threads(void **state)
{
	double prompt = queue_of(WINDOW_SHORT_NS, 0);

	(void)state;
	assert_true(prompt > 0.9 * WINDOW_SHORT_NS && prompt < 1.5 * WINDOW_SHORT_NS);
	assert_true(queue_of(WINDOW_SHORT_NS, 1500000) > prompt + 1000000);
	/* Never longer than the long target, whatever the peer says. */
	assert_true(queue_of(WINDOW_SHORT_NS, UINT64_MAX) <= 1.1 * queue_of(WINDOW_LONG_NS, 0));
	assert_true(queue_of(WINDOW_LONG_NS, UINT64_MAX) <= 1.1 * queue_of(WINDOW_LONG_NS, 0));
}

/* A thread that was late once keeps the queue longer for some hundred acknowledgements only. */
static void test_lateness_fades(void **state)
{
	struct path_window window;

	(void)state;
	path_window_init(&window, 0, WINDOW_SHORT_NS);
	path_window_late(&window, 3000000);
	assert_int_equal(window.late, 3000000);
	path_window_late(&window, 0);
	assert_in_range(window.late, 2500000, 2999999);
	for (unsigned i = 0; i < 300; i++)
		path_window_late(&window, 0);
	assert_in_range(window.late, 0, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_threads),
		cmocka_unit_test(test_lateness_fades),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
