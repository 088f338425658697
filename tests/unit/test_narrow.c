/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results that are lost because too much is under way, and results that are
 * lost anyway: the first are hardly lost any more, the second change nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/narrow.h"
#include "short.h"
#include "simnet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLIGHT 4096u /* under way where nothing else counts */
#define SECOND 1000000000ull

static double chance(uint64_t *random)
{
	uint64_t z = (*random += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (double)((z ^ z >> 31) >> 11) / (double)(1ull << 53);
}

/* What became of many results. */
struct path {
	struct narrow narrow;
	uint64_t random, position;
	uint64_t lost, capped; /* results, and those that came while little might be under way */
	uint64_t under;        /* how much was, summed up */
};

/* Of what is under way beyond the ring a quarter is lost, and of all a share of the link's own. */
static void path_run(struct path *path, uint64_t results, uint32_t ring, double own)
{
	for (uint64_t i = 0; i < results; i++) {
		uint32_t under = path->narrow.cap < FLIGHT ? path->narrow.cap : FLIGHT;
		double beyond = under > ring ? (double)(under - ring) / under : 0;
		bool lost = chance(&path->random) < own ||
		            (beyond > 0 && chance(&path->random) < beyond / 4);

		path->lost += lost;
		path->capped += under < FLIGHT;
		path->under += under;
		if (path->position >= path->narrow.until)
			narrow_count(&path->narrow, lost, path->position + under);
		path->position++;
	}
}

static void path_open(struct path *path, uint64_t seed)
{
	*path = (struct path){ .random = seed };
	narrow_init(&path->narrow);
}

/* Whatever a link loses by itself, next to nothing is sent with little under way. */
static void test_own_losses_change_nothing(void **state)
{
	static const double shares[] = { 0, 0.001, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.3 };
	uint64_t seeds = test_tenth("seeds", 20);
	struct path path;

	(void)state;
	for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		for (uint64_t seed = 1; seed <= seeds; seed++) {
			path_open(&path, seed * 1000 + i);
			path_run(&path, 2000000, UINT32_MAX, shares[i]);
			if (shares[i] <= 0.01)
				assert_int_equal(path.capped, 0);
			assert_true(path.capped < 2000000 / 50);
		}
}

/* A ring that overflows does so hardly any more; a link's own losses do not hide it. */
static void test_ring_is_found(void **state)
{
	static const uint32_t rings[] = { 48, 64, 128, 256, 512, 1024 };
	static const double shares[] = { 0, 0.01, 0.05 };
	struct path path;

	(void)state;
	for (unsigned i = 0; i < sizeof(rings) / sizeof(rings[0]); i++)
		for (unsigned j = 0; j < sizeof(shares) / sizeof(shares[0]); j++) {
			path_open(&path, 7 * i + j);
			path_run(&path, 100000, rings[i], shares[j]);
			path.lost = path.under = 0;
			path_run(&path, 1000000, rings[i], shares[j]);
			assert_true((double)path.lost < (shares[j] + 0.025) * 1000000);
			assert_true(path.under / 1000000 >= (rings[i] < 512 ? rings[i] : 512) / 2);
		}
}

/* When it does not overflow any more, all is allowed again. */
static void test_grows_back(void **state)
{
	struct path path;

	(void)state;
	path_open(&path, 3);
	path_run(&path, 100000, 100, 0);
	assert_true(path.narrow.cap < 200);
	path_run(&path, 1000000, UINT32_MAX, 0);
	assert_int_equal(path.narrow.cap, NARROW_NONE);
}

/* Where the losses become the link's own, it is given up soon. */
static void test_gives_up(void **state)
{
	struct path path;

	(void)state;
	path_open(&path, 5);
	path_run(&path, 100000, 100, 0);
	assert_int_equal(path.narrow.state, NARROW_KEPT);
	path_run(&path, 20000, UINT32_MAX, 0.2);
	assert_int_equal(path.narrow.cap, NARROW_NONE);
	assert_true(path.narrow.rest > 0);
}

/* ---- streams and the engine, over a network with rings ---- */

#define COUNT 500000u
#define VECTORS 6u
#define SEEDS 4u /* one run of few is another's of many: what a trial meets is chance */

struct outcome {
	double again; /* results sent again, of all */
	uint64_t ns;
	bool open; /* at the end, at all workers */
};

static void sum_once(struct sim *sim, unsigned workers, const uint32_t *in, uint32_t **out)
{
	for (unsigned w = 0; w < workers; w++) {
		struct round_spec spec = { .source = in,
			                   .target = out[w],
			                   .count = COUNT,
			                   .type = TRIB_U32,
			                   .op = TRIB_SUM,
			                   .from = WIRE_ALL,
			                   .to = WIRE_ALL };

		sim_post(sim, w, &spec);
	}
	assert_true(sim_run(sim, 600 * SECOND));
	for (unsigned w = 0; w < workers; w++)
		for (size_t i = 0; i < COUNT; i++)
			assert_int_equal(out[w][i], workers * in[i]);
}

/* The first vector is not counted: it is where losses are found. */
static struct outcome sum_many(const struct sim_options *options, bool may_narrow)
{
	uint32_t *in = calloc(COUNT, sizeof(*in)), *out[SIM_WORKERS_MAX];
	struct sim *sim = sim_new(options);
	struct outcome outcome = { .open = true };
	uint64_t results = 0, repeats, start;

	assert_non_null(in);
	for (size_t i = 0; i < COUNT; i++)
		in[i] = (uint32_t)(i * 2654435761u);
	for (unsigned w = 0; w < options->workers; w++) {
		out[w] = calloc(COUNT, sizeof(**out));
		assert_non_null(out[w]);
		if (!may_narrow)
			sim_stream(sim, w)->narrow.rest = UINT32_MAX;
	}
	sum_once(sim, options->workers, in, out);
	repeats = sim_repeats(sim);
	start = sim_now(sim);
	for (unsigned i = 0; i < VECTORS; i++)
		sum_once(sim, options->workers, in, out);
	for (unsigned w = 0; w < options->workers; w++) {
		results += sim_stream(sim, w)->next_base / (VECTORS + 1) * VECTORS;
		outcome.open &= sim_stream(sim, w)->narrow.cap == NARROW_NONE;
		free(out[w]);
	}
	outcome.again = (double)(sim_repeats(sim) - repeats) / (double)results;
	outcome.ns = sim_now(sim) - start;
	free(in);
	sim_free(sim);
	return outcome;
}

static void outcomes_print(const char *what, const struct outcome *narrow,
                           const struct outcome *wide)
{
	printf("%s: %.2f %% of results sent again, %.1f ms; with all under way %.2f %%, %.1f ms\n",
	       what, narrow->again * 100, (double)narrow->ns / 1e6, wide->again * 100,
	       (double)wide->ns / 1e6);
}

/* A worker takes a quarter longer for a result than its link; 64 is a lane's part of a ring of 256.
 */
static void test_streams_with_rings(void **state)
{
	static const unsigned rings[] = { 64, 256 };
	uint64_t seeds = test_count("seeds", SEEDS, SEEDS / 2);

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		double again = 0;

		for (unsigned seed = 1; seed <= seeds; seed++) {
			struct sim_options options = { .workers = 3,
				                       .cells = 16384,
				                       .payload = 256,
				                       .ring = rings[i],
				                       .drain_ns = 2500,
				                       .seed = seed };
			struct outcome wide = sum_many(&options, false);
			struct outcome narrow = sum_many(&options, true);

			outcomes_print(i ? "rings of 256" : "rings of 64", &narrow, &wide);
			assert_true(wide.again > 0.1);
			again += narrow.again / (double)seeds;
		}
		assert_true(again < 0.03);
	}
}

static void test_streams_with_loss(void **state)
{
	static const double losses[] = { 0.01, 0.1 };
	uint64_t seeds = test_count("seeds", SEEDS, SEEDS - 1);

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t tried = 0, never = 0;

		for (unsigned seed = 1; seed <= seeds; seed++) {
			struct sim_options options = { .workers = 3,
				                       .cells = 16384,
				                       .payload = 256,
				                       .loss = losses[i],
				                       .seed = seed };
			struct outcome wide = sum_many(&options, false);
			struct outcome narrow = sum_many(&options, true);

			outcomes_print(i ? "a tenth lost" : "a hundredth lost", &narrow, &wide);
			assert_true(narrow.open);
			tried += narrow.ns;
			never += wide.ns;
		}
		assert_true((double)tried < 1.1 * (double)never);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_losses_change_nothing),
		cmocka_unit_test(test_ring_is_found),
		cmocka_unit_test(test_grows_back),
		cmocka_unit_test(test_gives_up),
		cmocka_unit_test(test_streams_with_rings),
		cmocka_unit_test(test_streams_with_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
