/* SPDX-License-Identifier: Apache-2.0 */
/* The measured throughput of a communicator, by the reports of its roots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/policy/throughput.h"

#include <math.h>
#include <string.h>

#define MS 1000000ull
#define SECOND (1000 * MS)
#define SILENT (3 * SECOND)
#define START (1000 * SECOND)
#define BEAT (250 * MS)

static bool near(double bps, double star_wanted, double by)
{
	return fabs(bps - star_wanted) <= by * star_wanted;
}

/* Reports of `trees` roots, each at its own times, at `bps` together; returns the end. */
static uint64_t go(struct throughput *throughput, unsigned trees, double bps, uint64_t from,
                   uint64_t to)
{
	for (; from < to; from += BEAT)
		for (unsigned i = 0; i < trees; i++) {
			uint64_t at = from + i * BEAT / trees, last = 0;

			for (unsigned k = 0; k < throughput->n; k++)
				if (throughput->trees[k].id == i + 1)
					last = at - throughput->trees[k].at;
			if (last)
				throughput_take(
					throughput, i + 1,
					throughput->trees[i].bytes +
						(uint64_t)(bps / 8 / trees * (double)last / 1e9),
					at, SILENT);
			else
				throughput_take(throughput, i + 1, 1000 * i, at, SILENT);
		}
	return from;
}

static void test_trees_add_up(void **state)
{
	struct throughput throughput = { 0 };
	uint64_t now = go(&throughput, 3, 300e6, START, START + SECOND);

	(void)state;
	assert_true(throughput_bps(&throughput, 3, now) == 0); /* too soon */
	now = go(&throughput, 3, 300e6, now, now + 5 * SECOND);
	assert_true(near(throughput_bps(&throughput, 3, now), 300e6, 0.01));
	assert_true(near(throughput_bps(&throughput, 1, now), 300e6, 0.01));
	assert_true(throughput_bps(&throughput, 4, now) == 0); /* one root has not reported */
	/* The rate follows within 2.5 s and one report. */
	now = go(&throughput, 3, 50e6, now, now + 2750 * MS);
	assert_true(near(throughput_bps(&throughput, 3, now), 50e6, 0.01));
	assert_true(throughput_bps(&throughput, 3, now + 4 * SECOND) ==
	            0); /* all roots are silent */
}

/* A node with the roots of two trees, one of which has a tenth of each vector. */
static void test_unlike_shares(void **state)
{
	struct throughput throughput = { 0 };
	uint64_t now = START;

	(void)state;
	for (uint64_t k = 0; k < 40; k++, now += BEAT) {
		throughput_take(&throughput, 1, k * 9000000, now, SILENT);
		throughput_take(&throughput, 2, k * 1000000, now, SILENT);
		throughput_take(&throughput, 2, k * 1000000, now, SILENT); /* reported twice */
	}
	assert_true(near(throughput_bps(&throughput, 2, now), 320e6, 0.001));
}

static void test_starts_again(void **state)
{
	struct throughput throughput = { 0 };
	uint64_t now = go(&throughput, 2, 100e6, START, START + 5 * SECOND);
	uint64_t other = throughput.trees[1].bytes;

	(void)state;
	assert_true(near(throughput_bps(&throughput, 2, now), 100e6, 0.01));
	/* A count that goes back makes the rate unknown. */
	throughput_take(&throughput, 1, 5, now, SILENT);
	assert_true(throughput_bps(&throughput, 2, now) == 0);
	now = go(&throughput, 2, 100e6, now + BEAT, now + 2 * SECOND);
	assert_true(near(throughput_bps(&throughput, 2, now), 100e6, 0.01));
	assert_true(throughput.trees[1].bytes > other);
	/* A root is gone: the rate is unknown until another root replaces it. */
	for (unsigned k = 0; k < 20; k++, now += BEAT)
		throughput_take(&throughput, 1, throughput.trees[0].bytes + 1000000, now, SILENT);
	assert_int_equal(throughput.n, 1);
	assert_true(throughput_bps(&throughput, 2, now) == 0);
	now = go(&throughput, 2, 100e6, now, now + 2 * SECOND);
	assert_true(near(throughput_bps(&throughput, 2, now), 100e6, 0.01));
}

/* Steps of `step` ns whose last part communicates, at 100 Mb/s. */
static void steps(uint64_t step, double share, double *least, double *most, unsigned *unknown)
{
	struct throughput throughput = { 0 };
	double bytes = 0;

	*least = INFINITY;
	*most = 0;
	*unknown = 0;
	for (uint64_t t = 0; t < 40 * step + 60 * SECOND; t += BEAT) {
		double bps;

		if ((double)(t % step) >= (1 - share) * (double)step)
			bytes += 100e6 / 8 * (double)BEAT / 1e9;
		throughput_take(&throughput, 1, (uint64_t)bytes, START + t, SILENT);
		if (t < 20 * step)
			continue;
		bps = throughput_bps(&throughput, 1, START + t);
		*unknown += bps == 0;
		if (bps == 0)
			continue;
		*least = fmin(*least, bps);
		*most = fmax(*most, bps);
	}
}

/* Pauses within steps count, and none makes the rate unknown or far too low. */
static void test_long_steps(void **state)
{
	static const double shares[] = { 0.25, 0.5, 0.75 };

	(void)state;
	for (uint64_t step = SECOND; step <= 16 * SECOND; step *= 2)
		for (unsigned i = 0; i < 3; i++) {
			double least, most;
			unsigned unknown;

			steps(step, shares[i], &least, &most, &unknown);
			assert_int_equal(unknown, 0);
			assert_true(least > 0.6 * shares[i] * 100e6);
			assert_true(most < 1.6 * shares[i] * 100e6);
		}
}

/* If sums stand still for longer than before, the rate is unknown, and stays so for a while. */
static void test_stands_still(void **state)
{
	struct throughput throughput = { 0 };
	uint64_t now = go(&throughput, 1, 100e6, START, START + 5 * SECOND), since;

	(void)state;
	now = go(&throughput, 1, 0, now, now + SECOND);
	assert_true(near(throughput_bps(&throughput, 1, now), 100e6, 0.01));
	now = go(&throughput, 1, 0, now, now + 59 * SECOND);
	assert_true(throughput_bps(&throughput, 1, now) == 0);
	since = now;
	while (throughput_bps(&throughput, 1, now) == 0)
		now = go(&throughput, 1, 100e6, now, now + BEAT);
	assert_in_range(now - since, 20 * SECOND, 70 * SECOND);
	assert_true(near(throughput_bps(&throughput, 1, now), 100e6, 0.01));
}

/* Random reports: the rate is a number, and there are at most THROUGHPUT_TREES_MAX trees. */
static void test_hostile(void **state)
{
	static const uint64_t bytes[] = { 0, 1, 1ull << 62, INT64_MAX, 4096 };
	struct throughput throughput = { 0 };
	uint64_t random = 1, now = START;

	(void)state;
	for (unsigned k = 0; k < 300000; k++) {
		double bps;

		random = random * 6364136223846793005ull + 1442695040888963407ull;
		now += (random >> 40) % (k % 1000 < 900 ? MS : 2 * SECOND);
		throughput_take(&throughput, (random >> 20) % (k % 5000 < 2500 ? 3 : 200),
		                bytes[(random >> 50) % 5] + (random >> 55 & 1 ? k : 0),
		                now - (random >> 33) % SECOND, SILENT);
		assert_true(throughput.n <= THROUGHPUT_TREES_MAX);
		bps = throughput_bps(&throughput, 1, now);
		assert_true(isfinite(bps) && bps >= 0);
	}
	/* Old reports are forgotten. */
	throughput = (struct throughput){ 0 };
	for (unsigned k = 0; k < 10; k++, now += BEAT)
		throughput_take(&throughput, 1, k & 1 ? INT64_MAX : 0, now, SILENT);
	now = go(&throughput, 1, 100e6, now, now + 5 * SECOND);
	assert_true(near(throughput_bps(&throughput, 1, now), 100e6, 0.01));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trees_add_up), cmocka_unit_test(test_unlike_shares),
		cmocka_unit_test(test_starts_again), cmocka_unit_test(test_long_steps),
		cmocka_unit_test(test_stands_still), cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
