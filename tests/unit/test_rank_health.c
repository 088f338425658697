/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks judged by their reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/policy/rank_health.h"

#include <math.h>
#include <string.h>

static void test_share(void **state)
{
	struct rank_sample samples[3] = { { .waits = 0.3 }, { .waits = 0.07 }, { .waits = 0.5 } };

	(void)state;
	assert_true(rank_health_share(samples, 3) == 0.07);
	assert_true(rank_health_share(samples, 1) == 0.3);
	samples[2].waits = -1; /* unknown */
	assert_true(rank_health_share(samples, 3) < 0);
	assert_true(rank_health_share(samples, 0) < 0);
}

/* XAgg's t1 + t2: computing, and sending over its own link. */
static void test_round(void **state)
{
	(void)state;
	assert_true(rank_health_round(-1, 50e6, 100e6) == 0);
	assert_true(fabs(rank_health_round(0.8, 50e6, 100e6) - 0.7) < 1e-9);
	assert_true(rank_health_round(0.8, 50e6, 100e6) > rank_health_round(0.8, 50e6, 200e6));
	assert_true(rank_health_round(0.2, 50e6, 100e6) > rank_health_round(0.8, 50e6, 100e6));
	assert_true(fabs(rank_health_round(0.8, 0, 100e6) - 0.2) < 1e-9);
	assert_true(fabs(rank_health_round(0.8, 300e6, 100e6) - 1.2) < 1e-9);
}

static void test_slow_link(void **state)
{
	struct rank_sample samples[3] = { { .carries_bps = 900e6 },
		                          { .carries_bps = 230e6 },
		                          { .carries_bps = 850e6 } };
	bool aggregates[3] = { false };
	double slow[3];

	(void)state;
	rank_health_slow(samples, 3, 500e6, aggregates, slow);
	assert_true(slow[0] == 0 && slow[1] == 230e6 && slow[2] == 0);
	/* Fast enough for the plan. */
	rank_health_slow(samples, 3, 300e6, aggregates, slow);
	assert_true(slow[1] == 0);
	/* Its link also carries an aggregator's traffic. */
	aggregates[1] = true;
	rank_health_slow(samples, 3, 500e6, aggregates, slow);
	assert_true(slow[1] == 0);
	aggregates[1] = false;
	/* The planned rate is unknown. */
	rank_health_slow(samples, 3, 0, aggregates, slow);
	assert_true(slow[1] == 0);
	/* All links are equal: the shared network is slow, not the links. */
	samples[0].carries_bps = samples[2].carries_bps = 250e6;
	rank_health_slow(samples, 3, 500e6, aggregates, slow);
	assert_true(slow[0] == 0 && slow[1] == 0 && slow[2] == 0);
	/* No other rank to compare with. */
	samples[0].carries_bps = samples[2].carries_bps = 0;
	rank_health_slow(samples, 3, 500e6, aggregates, slow);
	assert_true(slow[0] == 0 && slow[1] == 0 && slow[2] == 0);
}

/* Random reports: the fastest link is never slow, and slow rates are the reported ones. */
static void test_slow_random(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		struct rank_sample samples[8] = { 0 };
		bool aggregates[8];
		double slow[8], rate, most = 0;

		for (unsigned i = 0; i < 8; i++) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			samples[i].carries_bps = random >> 60 ? (double)(random >> 34) : 0;
			aggregates[i] = random >> 20 & 1;
			most = samples[i].carries_bps > most ? samples[i].carries_bps : most;
		}
		rate = (double)(random >> 33);
		rank_health_slow(samples, 8, rate, aggregates, slow);
		for (unsigned i = 0; i < 8; i++) {
			assert_true(slow[i] == 0 || slow[i] == samples[i].carries_bps);
			if (slow[i] > 0)
				assert_true(slow[i] < most && slow[i] < rate && !aggregates[i]);
		}
	}
}

static void test_late(void **state)
{
	(void)state;
	assert_true(rank_health_late(60e6, 0.9, 300e6));
	assert_false(rank_health_late(260e6, 0.9, 300e6));
	assert_true(rank_health_late(89e6, 0.5, 300e6));
	assert_false(rank_health_late(91e6, 0.5, 300e6));
	/* Not late if communication is rare, or if a value is unknown. */
	assert_false(rank_health_late(1e6, 0.19, 300e6));
	assert_false(rank_health_late(1e6, -1, 300e6));
	assert_false(rank_health_late(0, 0.9, 300e6));
	assert_false(rank_health_late(1e6, 0.9, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share),     cmocka_unit_test(test_round),
		cmocka_unit_test(test_slow_link), cmocka_unit_test(test_slow_random),
		cmocka_unit_test(test_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
