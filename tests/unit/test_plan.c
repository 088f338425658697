/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans: known clusters, every tree of small clusters, and properties of random ones. TRIB_SEED:
 * the seed of the random ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random_bits.h"
#include "plan/cluster/draw.h"
#include "plan/cluster/plan.h"
#include "plan_trees.h"
#include "short.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct plan_host hosts[TREES_HOSTS_MAX];
static char names[TREES_HOSTS_MAX][2][DRAW_NAME];
static struct forest forest;
static struct plan_verdict verdict;
static uint64_t seed = 1;

static trib_status plan(unsigned n, const struct plan_limits *limits, struct forest *out)
{
	size_t bytes = plan_work_bytes(n, limits);
	void *work = malloc(bytes);
	trib_status status;

	assert_non_null(work);
	status = plan_stripes(hosts, n, limits, work, bytes, out, &verdict);
	free(work);
	return status;
}

/* Equal workers h1, h2, ... and servers s1, s2, ... */
static unsigned alike(unsigned workers, unsigned servers, double bps, double cores)
{
	for (unsigned i = 0; i < workers + servers; i++) {
		bool is_worker = i < workers;

		snprintf(names[i][0], DRAW_NAME, "%c%u", is_worker ? 'h' : 's',
		         is_worker ? i + 1 : i - workers + 1);
		hosts[i] = (struct plan_host){ .name = names[i][0],
			                       .address = names[i][0],
			                       .in_bps = bps,
			                       .out_bps = bps,
			                       .idle_cores = cores,
			                       .rank = is_worker ? (int)i : -1,
			                       .may_aggregate = true };
	}
	return workers + servers;
}

static void near_to(double is, double should)
{
	if (!(fabs(is - should) <= 1e-6 * fabs(should)))
		fail_msg("%.9g is not %.9g", is, should);
}

/* The rate of the planned trees, computed from their text. */
static double rate_of(unsigned n, const struct plan_limits *limits)
{
	size_t bytes = plan_work_bytes(n, limits);
	void *work = malloc(bytes);
	double rate;

	assert_non_null(work);
	rate = plan_rate(hosts, n, limits, &forest, work, bytes);
	free(work);
	return rate;
}

static void check_forest(unsigned n, const struct plan_limits *limits)
{
	near_to(rate_of(n, limits), verdict.rate_bps);
	near_to(plain_forest_rate(hosts, n, limits, &forest), verdict.rate_bps);
	assert_true(forest.n_trees <= limits->trees);
	assert_true(verdict.rate_bps <= verdict.within_bps * (1 + 1e-6));
	assert_true(verdict.within_bps <= verdict.bound_bps * (1 + 1e-6));
}

/* ---- clusters whose best plan is known ---- */

static void test_known(void **state)
{
	static const struct {
		unsigned workers, servers;
		double bound, rate;
	} known[] = {
		{ 4, 4, 500e6, 500e6 }, /* as many servers as workers: the workers' links are the
		                           limit */
		{ 4, 2, 1250e6 / 3, 1250e6 / 3 }, /* R = 2 * 125 + 4 (500 - R) / 2 */
		{ 4, 0, 1000e6 / 3, 1000e6 / 3 }, /* as fast as a ring */
		{ 2, 0, 500e6, 500e6 },           /* two exchange halves */
		{ 4, 1, 1125e6 / 3, 1125e6 / 3 }, { 3, 3, 500e6, 500e6 },
	};
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		unsigned n = alike(known[i].workers, known[i].servers, 500e6, 4);

		assert_int_equal(plan(n, &limits, &forest), TRIB_OK);
		near_to(verdict.bound_bps, known[i].bound);
		near_to(verdict.rate_bps, known[i].rate);
		assert_int_equal(verdict.depth, 1);
		check_forest(n, &limits);
	}
}

static void test_text(void **state)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	char text[200];

	(void)state;
	assert_int_equal(plan(alike(4, 2, 500e6, 4), &limits, &forest), TRIB_OK);
	forest_print(&forest, text, sizeof(text));
	assert_string_equal(text, "0.300000*s1(0-3);0.300000*s2(0-3);0.100000*h1(0-3);"
	                          "0.100000*h2(0-3);0.100000*h3(0-3);0.100000*h4(0-3)");
}

/* One port for each worker: the switch of the papers. */
static void test_switch(void **state)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	unsigned n = alike(8, 1, 1e9, 8);

	(void)state;
	hosts[8].is_switch = true;
	assert_int_equal(plan(n, &limits, &forest), TRIB_OK);
	near_to(verdict.rate_bps, 1e9);
	assert_int_equal(forest.n_trees, 1);
	check_forest(n, &limits);
	/* Half of the cores that the ports need. Other hosts help with the rest. */
	hosts[8].idle_cores = 0.4;
	assert_int_equal(plan(n, &limits, &forest), TRIB_OK);
	assert_true(verdict.rate_bps > 0.7e9 && verdict.rate_bps < 1e9);
	check_forest(n, &limits);
}

static void test_multicast(void **state)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	unsigned n = alike(4, 1, 1e9, 8);

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		hosts[i].may_aggregate = false;
	hosts[4].in_bps = 4e9;
	assert_int_equal(plan(n, &limits, &forest), TRIB_OK);
	near_to(verdict.rate_bps, 0.25e9);
	assert_string_equal(verdict.limit, "s1's 1 Gb/s link out");
	limits.multicast = true;
	assert_int_equal(plan(n, &limits, &forest), TRIB_OK);
	near_to(verdict.rate_bps, 1e9);
	check_forest(n, &limits);
}

static void test_sentences(void **state)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	unsigned n = alike(4, 4, 1e9, 8);

	(void)state;
	hosts[2].in_bps = 500e6;
	assert_int_equal(plan(n, &limits, &forest), TRIB_OK);
	assert_string_equal(verdict.limit, "h3's 500 Mb/s link in");
	assert_non_null(strstr(verdict.bounded, "h3's 500 Mb/s link in"));
	near_to(verdict.rate_bps, 500e6);
	n = alike(4, 1, 40e9, 1);
	for (unsigned i = 0; i < 4; i++)
		hosts[i].may_aggregate = false;
	assert_int_equal(plan(n, &limits, &forest), TRIB_OK);
	assert_string_equal(verdict.limit, "s1's 1 idle cores");
	near_to(verdict.rate_bps, 10e9 / 4);
}

/* A job of one worker gets a plan as well. */
static void test_one_worker(void **state)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;

	(void)state;
	assert_int_equal(plan(alike(1, 1, 1e9, 2), &limits, &forest), TRIB_OK);
	assert_int_equal(forest.n_trees, 1);
	assert_string_equal(forest.trees[0].nodes[0].name, "h1");
	hosts[0].may_aggregate = false;
	assert_int_equal(plan(2, &limits, &forest), TRIB_OK);
	assert_string_equal(forest.trees[0].nodes[0].name, "s1");
}

static void test_limits(void **state)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	unsigned n = alike(64, 8, 1e9, 8);
	unsigned step = (unsigned)test_count("trees more each time", 5, 40);

	(void)state;
	for (limits.children = 4; limits.children <= 64;
	     limits.children *= test_is_short() ? 16 : 2)
		for (limits.trees = 1; limits.trees <= FOREST_TREES_MAX; limits.trees += step) {
			assert_int_equal(plan(n, &limits, &forest), TRIB_OK);
			check_forest(n, &limits);
		}
}

static void test_memory(void **state)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	unsigned n = alike(2, 2, 1e9, 8);

	(void)state;
	limits.model_bytes = 10 << 20;
	hosts[0].may_aggregate = hosts[1].may_aggregate = false;
	for (unsigned i = 2; i < 4; i++)
		hosts[i].memory_total = 100 << 20;
	hosts[2].memory_used = 71 << 20; /* 81 of 100 */
	hosts[3].memory_used = 70 << 20;
	assert_int_equal(plan(n, &limits, &forest), TRIB_OK);
	assert_int_equal(forest.n_trees, 1);
	assert_string_equal(forest.trees[0].nodes[0].name, "s2");
}

static void refused(unsigned n, const struct plan_limits *limits, const char *says)
{
	assert_true(plan(n, limits, &forest) < 0);
	if (!strstr(trib_last_error(), says))
		fail_msg("\"%s\" does not say \"%s\"", trib_last_error(), says);
}

static void test_refuses(void **state)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT, wrong = limits;
	char small[16];

	(void)state;
	alike(3, 0, 1e9, 0);
	refused(3, &limits, "no host can aggregate");
	alike(3, 0, 1e9, 4);
	hosts[1].rank = 2;
	refused(3, &limits, "h2 and h3 both have rank 2");
	hosts[1].rank = 3;
	refused(3, &limits, "host h2 has rank 3");
	alike(0, 3, 1e9, 4);
	refused(3, &limits, "has a rank");
	alike(3, 0, 1e9, 4);
	hosts[2].in_bps = 0;
	refused(3, &limits, "host h3 has no rate in");
	hosts[2].in_bps = NAN;
	refused(3, &limits, "host h3 has no rate in");
	alike(3, 0, 1e9, NAN);
	refused(3, &limits, "idle cores");
	alike(3, 0, 1e9, 4);
	hosts[1].is_switch = true;
	refused(3, &limits, "h2 is a switch");
	refused(0, &limits, "hosts");
	alike(65, 0, 1e9, 4);
	refused(65, &limits, "64 ranks");
	wrong.trees = FOREST_TREES_MAX + 1;
	refused(3, &wrong, "trees");
	wrong = limits;
	wrong.children = 1;
	refused(3, &wrong, "children");
	assert_true(plan_stripes(hosts, 3, &limits, small, sizeof(small), NULL, &verdict) < 0);
}

/* ---- every possible tree ---- */

/* A small random cluster whose links and cores are limits. */
static unsigned draw_small(uint64_t *state, unsigned n)
{
	unsigned workers;

	draw_cluster(random_next(state), n, hosts, names);
	for (workers = 0; workers < n && hosts[workers].rank >= 0;)
		workers++;
	for (unsigned i = 0; i < n; i++)
		if (!draw_below(state, 3))
			hosts[i].idle_cores = hosts[i].in_bps / 1e10 * draw_below(state, 6);
	hosts[n - 1].idle_cores = 16;
	hosts[n - 1].may_aggregate = true;
	return workers;
}

/* One tree: the plan is the fastest of all trees. */
static void test_one_tree_is_best(void **state)
{
	unsigned rounds = (unsigned)test_cases("clusters", 200);
	uint64_t random = seed;

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (unsigned i = 0; i < rounds; i++) {
		struct plan_limits limits = PLAN_LIMITS_DEFAULT;
		unsigned n = 2 + i % 3;
		double best;

		draw_small(&random, n);
		limits.trees = 1;
		limits.multicast = i & 1;
		limits.children = 2 + draw_below(&random, 3);
		best = plain_best(hosts, n, &limits);
		if (plan(n, &limits, &forest) != TRIB_OK) {
			assert_true(best == 0);
			continue;
		}
		check_forest(n, &limits);
		if (!(verdict.rate_bps >= best * 0.999 && verdict.rate_bps <= best * 1.000001))
			fail_msg("cluster %u: %g, and the best tree has %g", i, verdict.rate_bps,
			         best);
	}
}

/* ---- random clusters ---- */

static void test_random(void **state)
{
	unsigned rounds = (unsigned)test_count("clusters", test_is_long() ? 600 : 200, 10);
	uint64_t random = seed;

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (unsigned i = 0; i < rounds; i++) {
		struct plan_limits limits = PLAN_LIMITS_DEFAULT;
		unsigned n = 2 + draw_below(&random, TREES_HOSTS_MAX - 1), workers = 0;
		double star;

		draw_cluster(random_next(&random), n, hosts, names);
		limits.multicast = i & 1;
		limits.trees = 1 + draw_below(&random, FOREST_TREES_MAX);
		for (unsigned j = 0; j < n; j++)
			workers += hosts[j].rank >= 0;
		if (workers > TREE_RANKS_MAX) {
			assert_int_equal(plan(n, &limits, NULL), TRIB_OK);
			continue;
		}
		assert_int_equal(plan(n, &limits, &forest), TRIB_OK);
		check_forest(n, &limits);
		star = verdict.star_bps;
		assert_true(verdict.rate_bps >= star * 0.999);
		assert_int_equal(verdict.trees, forest.n_trees);
	}
}

/* If workers' hosts may aggregate and there are enough cores, a ring is not faster. */
static void test_never_slower_than_ring(void **state)
{
	uint64_t random = seed;

	(void)state;
	for (unsigned workers = 2; workers <= 64; workers++) {
		struct plan_limits limits = PLAN_LIMITS_DEFAULT;
		unsigned n = alike(workers, draw_below(&random, 4), 10e9, 64);
		/* Few trees cannot divide many workers evenly. */
		double least = workers <= 16 ? 1 - 1e-9 : 0.99;

		if (workers % 3 == 0)
			for (unsigned i = 0; i < n; i++)
				hosts[i].in_bps = hosts[i].out_bps =
					1e9 * (1 + draw_below(&random, 10));
		assert_int_equal(plan(n, &limits, &forest), TRIB_OK);
		if (!(verdict.rate_bps >= verdict.ring_bps * least))
			fail_msg("%u workers: %g, and a ring has %g", workers, verdict.rate_bps,
			         verdict.ring_bps);
	}
}

/* With one more idle server, no plan is slower. */
static void test_more_is_no_less(void **state)
{
	unsigned rounds = (unsigned)test_cases("clusters", 100);
	uint64_t random = seed;

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		struct plan_limits limits = PLAN_LIMITS_DEFAULT;
		unsigned n = 3 + draw_below(&random, 30);
		double bound, rate;

		draw_cluster(random_next(&random), n, hosts, names);
		hosts[0].may_aggregate = true;
		if (hosts[n - 1].rank >= 0)
			continue;
		assert_int_equal(plan(n - 1, &limits, NULL), TRIB_OK);
		bound = verdict.bound_bps;
		rate = verdict.rate_bps;
		assert_int_equal(plan(n, &limits, NULL), TRIB_OK);
		assert_true(verdict.bound_bps >= bound * (1 - 1e-9));
		assert_true(verdict.rate_bps >= rate * 0.97);
	}
}

/* The work for 10,000 hosts is limited. The time is only printed. */
static void test_ten_thousand(void **state)
{
	unsigned n = 10000, rounds = (unsigned)test_cases("clusters", 20);
	struct plan_host *many = calloc(n, sizeof(*many));
	char(*called)[2][DRAW_NAME] = calloc(n, sizeof(*called));
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	size_t bytes = plan_work_bytes(n, &limits);
	void *work = malloc(bytes);

	(void)state;
	assert_true(many && called && work);
	for (unsigned i = 0; i < rounds; i++) {
		clock_t start = clock();

		draw_cluster(seed + i, n, many, called);
		assert_int_equal(plan_stripes(many, n, &limits, work, bytes, NULL, &verdict),
		                 TRIB_OK);
		printf("%u workers of %u hosts: %.4f of the bound, %llu steps, %.3f s\n",
		       verdict.workers, n, verdict.rate_bps / verdict.within_bps,
		       (unsigned long long)verdict.steps,
		       (double)(clock() - start) / CLOCKS_PER_SEC);
		assert_true(verdict.steps < 3000 * (uint64_t)n);
		assert_true(verdict.rate_bps >= 0.9 * verdict.within_bps);
	}
	free(many);
	free(called);
	free(work);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_switch),
		cmocka_unit_test(test_multicast),
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_one_worker),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_one_tree_is_best),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_never_slower_than_ring),
		cmocka_unit_test(test_more_is_no_less),
		cmocka_unit_test(test_ten_thousand),
	};

	if (getenv("TRIB_SEED"))
		seed = strtoull(getenv("TRIB_SEED"), NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
