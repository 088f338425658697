/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results lost because too much is in flight, and results lost at random. The first kind nearly
 * stops; the second changes nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random_bits.h"
#include "path/window_probe.h"
#include "short.h"
#include "simnet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLIGHT 4096u /* packets in flight without other limits */
#define SECOND 1000000000ull

static double chance(uint64_t *random)
{
	return (double)(random_next(random) >> 11) / (double)(1ull << 53);
}

/* The fate of many results. */
struct path {
	struct window_probe window_probe;
	uint64_t random, position;
	uint64_t lost, capped; /* results lost; results received with a small window */
	uint64_t under;        /* sum of packets in flight */
};

/* Loses a quarter of the packets in flight beyond the ring, and a fraction of all at random. */
static void path_run(struct path *path, uint64_t results, uint32_t ring, double own)
{
	for (uint64_t i = 0; i < results; i++) {
		uint32_t under = path->window_probe.cap < FLIGHT ? path->window_probe.cap : FLIGHT;
		double beyond = under > ring ? (double)(under - ring) / under : 0;
		bool lost = chance(&path->random) < own ||
		            (beyond > 0 && chance(&path->random) < beyond / 4);

		path->lost += lost;
		path->capped += under < FLIGHT;
		path->under += under;
		if (path->position >= path->window_probe.until)
			window_probe_count(&path->window_probe, lost, path->position + under);
		path->position++;
	}
}

static void path_open(struct path *path, uint64_t seed)
{
	*path = (struct path){ .random = seed };
	window_probe_init(&path->window_probe);
}

/* With random loss of any size, the window is almost never small. */
static void test_own_losses_change_nothing(void **state)
{
	static const double shares[] = { 0, 0.001, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.3 };
	uint64_t seeds = test_cases("seeds", 20);
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

/* A ring that overflows nearly stops doing so. Random loss does not hide it. */
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

/* If the ring does not overflow any more, the full window is allowed again. */
static void test_grows_back(void **state)
{
	struct path path;

	(void)state;
	path_open(&path, 3);
	path_run(&path, 100000, 100, 0);
	assert_true(path.window_probe.cap < 200);
	path_run(&path, 1000000, UINT32_MAX, 0);
	assert_int_equal(path.window_probe.cap, WINDOW_PROBE_NONE);
}

/* If the losses become random, the small window is given up soon. */
static void test_gives_up(void **state)
{
	struct path path;

	(void)state;
	path_open(&path, 5);
	path_run(&path, 100000, 100, 0);
	assert_int_equal(path.window_probe.state, WINDOW_PROBE_KEPT);
	path_run(&path, 20000, UINT32_MAX, 0.2);
	assert_int_equal(path.window_probe.cap, WINDOW_PROBE_NONE);
	assert_true(path.window_probe.rest > 0);
}

/* ---- streams and the engine, in a network with rings ---- */

#define COUNT 500000u
#define VECTORS 6u
#define SEEDS 4u /* several: the outcome of a probe in one run is chance */

struct outcome {
	double again; /* fraction of results sent again */
	uint64_t ns;
	bool open; /* the window is not limited at the end, at all workers */
};

static void sum_once(struct simnet *sim, unsigned workers, const uint32_t *in, uint32_t **out)
{
	for (unsigned w = 0; w < workers; w++) {
		struct round_spec spec = { .source = in,
			                   .target = out[w],
			                   .count = COUNT,
			                   .type = TRIB_U32,
			                   .op = TRIB_SUM,
			                   .from = WIRE_ALL,
			                   .to = WIRE_ALL };

		simnet_post(sim, w, &spec);
	}
	assert_true(simnet_run(sim, 600 * SECOND));
	for (unsigned w = 0; w < workers; w++)
		for (size_t i = 0; i < COUNT; i++)
			assert_int_equal(out[w][i], workers * in[i]);
}

/* The first vector does not count: it finds the losses. */
static struct outcome sum_many(const struct simnet_options *options, bool may_narrow)
{
	uint32_t *in = calloc(COUNT, sizeof(*in)), *out[SIM_WORKERS_MAX];
	struct simnet *sim = simnet_new(options);
	struct outcome outcome = { .open = true };
	uint64_t results = 0, repeats, start;

	assert_non_null(in);
	for (size_t i = 0; i < COUNT; i++)
		in[i] = (uint32_t)(i * 2654435761u);
	for (unsigned w = 0; w < options->workers; w++) {
		out[w] = calloc(COUNT, sizeof(**out));
		assert_non_null(out[w]);
		if (!may_narrow)
			simnet_stream(sim, w)->window_probe.rest = UINT32_MAX;
	}
	sum_once(sim, options->workers, in, out);
	repeats = simnet_repeats(sim);
	start = simnet_now(sim);
	for (unsigned i = 0; i < VECTORS; i++)
		sum_once(sim, options->workers, in, out);
	for (unsigned w = 0; w < options->workers; w++) {
		results += simnet_stream(sim, w)->next_base / (VECTORS + 1) * VECTORS;
		outcome.open &= simnet_stream(sim, w)->window_probe.cap == WINDOW_PROBE_NONE;
		free(out[w]);
	}
	outcome.again = (double)(simnet_repeats(sim) - repeats) / (double)results;
	outcome.ns = simnet_now(sim) - start;
	free(in);
	simnet_free(sim);
	return outcome;
}

static void outcomes_print(const char *what, const struct outcome *window_probe,
                           const struct outcome *wide)
{
	printf("%s: %.2f %% of results sent again, %.1f ms; with all under way %.2f %%, %.1f ms\n",
	       what, window_probe->again * 100, (double)window_probe->ns / 1e6, wide->again * 100,
	       (double)wide->ns / 1e6);
}

/*
 * A worker needs a quarter longer for a result than its link. 64 is a lane's part of a ring of 256.
 */
static void test_streams_with_rings(void **state)
{
	static const unsigned rings[] = { 64, 256 };
	uint64_t seeds = test_count("seeds, whose mean proves nothing", SEEDS, 1);

	(void)state;
	for (unsigned i = 0; i < (test_is_short() ? 1 : 2); i++) {
		double again = 0;

		for (unsigned seed = 1; seed <= seeds; seed++) {
			struct simnet_options options = { .workers = 3,
				                          .cells = 16384,
				                          .payload = 256,
				                          .ring = rings[i],
				                          .drain_ns = 2500,
				                          .seed = seed };
			struct outcome wide = sum_many(&options, false);
			struct outcome window_probe = sum_many(&options, true);

			outcomes_print(i ? "rings of 256" : "rings of 64", &window_probe, &wide);
			assert_true(wide.again > 0.1);
			again += window_probe.again / (double)seeds;
		}
		assert_true(again < 0.03 || test_is_short());
	}
}

static void test_streams_with_loss(void **state)
{
	static const double losses[] = { 0.01, 0.1 };
	uint64_t seeds = test_count("seeds, whose mean proves nothing", SEEDS, 1);

	(void)state;
	for (unsigned i = 0; i < (test_is_short() ? 1 : 2); i++) {
		uint64_t tried = 0, never = 0;

		for (unsigned seed = 1; seed <= seeds; seed++) {
			struct simnet_options options = { .workers = 3,
				                          .cells = 16384,
				                          .payload = 256,
				                          .loss = losses[i],
				                          .seed = seed };
			struct outcome wide = sum_many(&options, false);
			struct outcome window_probe = sum_many(&options, true);

			outcomes_print(i ? "a tenth lost" : "a hundredth lost", &window_probe,
			               &wide);
			assert_true(window_probe.open);
			tried += window_probe.ns;
			never += wide.ns;
		}
		assert_true((double)tried < 1.1 * (double)never || test_is_short());
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
