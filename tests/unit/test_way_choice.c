/* SPDX-License-Identifier: Apache-2.0 */
/* Which way large vectors take: the pure part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random_bits.h"
#include "short.h"
#include "worker/ways/way_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 5
#define TRIAL (2 * WAY_TURNS) /* blocks of a trial of two ways */

static void test_classes(void **state)
{
	static const uint64_t lengths[] = { 16384, 65536, 65537, 262144, 262145, 1 << 30 };
	static const uint64_t from[] = { 16384, 16384, 65536, 65536, 262144, 16 << 20 };
	struct way_choice choice = { 0 };

	(void)state;
	assert_null(way_class_of(&choice, WAY_REDUCE, WAY_SHORTEST - 1, false, false));
	for (unsigned i = 0; i < sizeof(from) / sizeof(*from); i++)
		for (enum way_kind kind = 0; kind < WAY_KINDS; kind++) {
			struct way_class *class =
				way_class_of(&choice, kind, lengths[i], i < 2, false);

			assert_int_equal(class->ways, i < 2 ? 3 : 2);

			assert_int_equal(way_class_from(&choice, class), from[i]);
			assert_int_equal(way_class_kind(&choice, class), kind);
		}
	/* More than two ranks: a short allreduce may be summed at one of them. */
	choice = (struct way_choice){ 0 };
	assert_int_equal(way_class_of(&choice, WAY_ALLREDUCE, 65536, true, true)->ways, 4);
	assert_int_equal(way_class_of(&choice, WAY_ALLREDUCE, 65537, true, true)->ways, 3);
	assert_int_equal(way_class_of(&choice, WAY_REDUCE, 65536, true, true)->ways, 3);
	assert_int_equal(way_scaled(4000, 65536, 131072), 2001);
	assert_ptr_equal(way_class_of(&choice, 0, 65537, false, false),
	                 way_class_of(&choice, 0, 262144, false, false));
	assert_ptr_not_equal(way_class_of(&choice, 0, 65536, true, false),
	                     way_class_of(&choice, 1, 65536, true, false));
}

/* One call, which takes that long on each way. Gives its way. */
static enum way call(struct way_class *class, uint64_t through, uint64_t among, bool *settled)
{
	bool tries = way_is_trial(class);
	enum way way = way_take(class);

	*settled = false;
	if (tries) {
		way_note(class, way == WAY_AGGREGATOR ? through : among);
		*settled = way_turn(class) && way_settle(class);
	}
	return way;
}

/* A trial of `blocks` ends with `way`. */
static void expect_of(uint64_t bytes, unsigned block, uint64_t through, uint64_t among,
                      unsigned blocks, enum way way)
{
	struct way_choice choice = { 0 };
	struct way_class *class = way_class_of(&choice, WAY_ALLREDUCE, bytes, false, false);
	unsigned calls = blocks * block;
	bool settled;

	assert_int_equal(class->block, block);

	for (unsigned i = 1; i <= calls; i++) {
		assert_true(way_is_trial(class));
		assert_int_equal(call(class, through, among, &settled),
		                 (i - 1) / block % 2 ? WAY_RANKS : WAY_AGGREGATOR);
		assert_int_equal(settled, i == calls);
	}
	assert_false(way_is_trial(class));
	assert_int_equal(call(class, through, among, &settled), way);
	assert_int_equal(way_best(class, WAY_RANKS), block * among);
}

static void expect(uint64_t through, uint64_t among, unsigned blocks, enum way way)
{
	expect_of(16384, 32, through, among, blocks, way);
	expect_of(100000, 8, through, among, blocks, way);
	expect_of(2 << 20, 1, through, among, blocks, way);
}

static void test_trials(void **state)
{
	(void)state;
	expect(300, 100, 2 * WAY_LEAST, WAY_RANKS); /* far better: no third turn */
	expect(100, 300, 2 * WAY_LEAST, WAY_AGGREGATOR);
	expect(150, 100, TRIAL, WAY_RANKS);
	expect(100, 100, TRIAL, WAY_AGGREGATOR);
	expect(104, 100, TRIAL, WAY_AGGREGATOR); /* not clearly better */
	expect(106, 100, TRIAL, WAY_RANKS);
}

/* A vector that fits slots has a third way, and a short allreduce of several ranks a fourth. The
 * ranks' own ways have to be faster than those through the aggregator. */
static void test_dense(void **state)
{
	static const struct {
		/* Through the aggregator, among ranks, by the dense engine, at one rank; 0: two
		 * ranks. */
		uint64_t took[WAYS];
		unsigned turns;
		enum way way;
	} cases[] = {
		{ { 300, 200, 100 }, WAY_TURNS, WAY_DENSE },
		{ { 300, 300, 100 }, WAY_LEAST, WAY_DENSE },
		{ { 100, 100, 100 }, WAY_TURNS, WAY_AGGREGATOR },
		{ { 100, 98, 97 }, WAY_TURNS, WAY_AGGREGATOR },
		{ { 300, 100, 150 }, WAY_TURNS, WAY_RANKS },
		{ { 100, 300, 300 }, WAY_LEAST, WAY_AGGREGATOR },
		{ { 300, 200, 300, 100 }, WAY_TURNS, WAY_ONE },
		{ { 300, 250, 300, 100 }, WAY_LEAST, WAY_ONE },
		{ { 300, 100, 300, 97 }, WAY_TURNS, WAY_RANKS },
		{ { 100, 300, 300, 97 }, WAY_TURNS, WAY_AGGREGATOR },
		{ { 100, 300, 90, 80 }, WAY_TURNS, WAY_ONE },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct way_choice choice = { 0 };
		bool several = cases[i].took[WAY_ONE];
		struct way_class *class =
			way_class_of(&choice, WAY_ALLREDUCE, 65536, true, several);
		unsigned calls = 0;
		bool settled = false;

		while (!settled) {
			way_note(class, cases[i].took[way_take(class)]);
			calls++;
			settled = way_turn(class) && way_settle(class);
		}
		assert_int_equal(class->ways, several ? 4 : 3);
		assert_int_equal(calls, cases[i].turns * class->ways * class->block);
		assert_int_equal(way_take(class), cases[i].way);
	}
}

/* Trials come back, ever more rarely, and notice that the network has changed. */
static void test_next_trials(void **state)
{
	struct way_choice choice = { 0 };
	struct way_class *class = way_class_of(&choice, WAY_REDUCE, 2 << 20, false, false);
	unsigned trials = 0, last = 0, gap = 0, tried = 0;
	bool settled;

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		bool tries = way_is_trial(class);
		enum way way = call(class, i < 50000 ? 300 : 100, 200, &settled);

		tried += tries;
		if (settled) {
			assert_true(i - last + TRIAL >= gap);
			assert_true(i - last <= 4 * WAY_KEEP_LONGEST);
			gap = class->keep == 2 * WAY_KEEP_FIRST ? 0 : i - last; /* 0: it changed */
			last = i;
			trials++;
		}
		if (!tries && i < 50000)
			assert_int_equal(way, WAY_RANKS);
		if (!tries && i > 50000 + 4 * WAY_KEEP_LONGEST)
			assert_int_equal(way, WAY_AGGREGATOR);
	}
	assert_in_range(trials, 20, 30);
	/* But for the first one and that after the change, one turn is a trial. */
	assert_in_range(tried, 2 * trials, 2 * trials + 2 * TRIAL);
}

/* Other programs make every other call longer, and the first one around the ring is slow. */
static void test_busy_machine(void **state)
{
	static const uint64_t longer[] = { 1, 1, 2, 4 };
	unsigned slow = 0, wrong = 0;
	bool settled;

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct way_choice choice = { 0 };
		struct way_class *class =
			way_class_of(&choice, WAY_ALLREDUCE, 2 << 20, false, false);
		uint64_t random = seed;

		for (unsigned i = 0; i < 400; i++) {
			uint64_t through = 270 * longer[random_next(&random) % 4];
			uint64_t among = 100 * longer[random_next(&random) % 4] + (i < 2) * 1000;

			slow += call(class, through, among, &settled) == WAY_AGGREGATOR;
		}
		wrong += class->way == WAY_AGGREGATOR;
	}
	print_message("%u of 80000 calls went the slow way; %u of 200 jobs keep it\n", slow, wrong);
	assert_true(slow < 80000 / 20 && wrong < 200 / 20);
}

static uint64_t noisy(uint64_t *seed, uint64_t time)
{
	return time + random_next(seed) % (time / 4 + 1);
}

/*
 * Ranks that make the same calls take the same way in each of them, whatever their times are. If
 * one way is faster by more than the noise, all take it.
 */
static void round_of_ranks(uint64_t seed)
{
	struct way_choice ranks[RANKS];
	uint64_t times[WAYS];
	bool several = seed % 2;

	for (unsigned i = 0; i < WAYS; i++)
		times[i] = 1000 + random_next(&seed) % 100000;
	memset(ranks, 0, sizeof(ranks));
	for (unsigned i = 0; i < 1500; i++) {
		uint64_t bytes = WAY_SHORTEST << random_next(&seed) % 12, worst[WAYS] = { 0 };
		enum way_kind kind = random_next(&seed) % WAY_KINDS;
		enum way way = WAY_AGGREGATOR;
		bool tries = false, fits = bytes <= 65536;
		bool by_one = several && fits && kind == WAY_ALLREDUCE;
		uint64_t through =
			fits && times[WAY_DENSE] < times[0] ? times[WAY_DENSE] : times[0];
		uint64_t among = by_one && times[WAY_ONE] < times[WAY_RANKS] ? times[WAY_ONE]
		                                                             : times[WAY_RANKS];

		for (unsigned r = 0; r < RANKS; r++) {
			struct way_class *class =
				way_class_of(&ranks[r], kind, bytes, fits, several);
			bool mine_tries = way_is_trial(class);
			enum way mine = way_take(class);

			assert_true(r == 0 || (mine == way && tries == mine_tries));
			way = mine;
			tries = mine_tries;
			if (tries)
				way_note(class, noisy(&seed, times[way]));
			if (!tries && through > among * 4 / 3)
				assert_true(way_is_among(way));
			if (!tries && among > through * 5 / 4)
				assert_false(way_is_among(way));
			if (!tries && times[WAY_RANKS] > among * 5 / 4)
				assert_int_not_equal(way, WAY_RANKS);
			if (!tries && (!by_one || times[WAY_ONE] > among * 5 / 4))
				assert_int_not_equal(way, WAY_ONE);
			if (!tries && (!fits || times[WAY_DENSE] > times[0] * 5 / 4))
				assert_int_not_equal(way, WAY_DENSE);
			if (!tries && fits && times[0] > times[WAY_DENSE] * 4 / 3)
				assert_int_not_equal(way, WAY_AGGREGATOR);
		}
		for (unsigned r = 0; tries && r < RANKS; r++) {
			const uint64_t *turn =
				way_turn(way_class_of(&ranks[r], kind, bytes, fits, several));

			for (unsigned k = 0; turn && k < (by_one ? 4 : fits ? 3 : 2); k++)
				worst[k] = turn[k] > worst[k] ? turn[k] : worst[k];
		}
		for (unsigned r = 0; tries && r < RANKS; r++) {
			struct way_class *class =
				way_class_of(&ranks[r], kind, bytes, fits, several);

			if (way_turn(class)) {
				memcpy(way_turn(class), worst, class->ways * sizeof(*worst));
				way_settle(class);
			}
		}
	}
}

static void test_ranks_agree(void **state)
{
	const char *given = getenv("TRIB_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : 1;

	(void)state;
	for (uint64_t i = test_cases("seeds", 300); i; i--, seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		round_of_ranks(seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),      cmocka_unit_test(test_trials),
		cmocka_unit_test(test_dense),        cmocka_unit_test(test_next_trials),
		cmocka_unit_test(test_busy_machine), cmocka_unit_test(test_ranks_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
