/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XAgg's k-ary trees and their candidates: the paper's own cluster, every tree of small clusters,
 * and properties of large ones. TRIB_SEED: the seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random_bits.h"
#include "plan/cluster/candidates.h"
#include "plan/cluster/draw.h"
#include "plan/stripes/kary.h"
#include "plan_trees.h"
#include "short.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOSTS_MAX 10000

static struct plan_host hosts[HOSTS_MAX];
static char names[HOSTS_MAX][2][DRAW_NAME];
static struct kary_node nodes[HOSTS_MAX];
static uint32_t leaf[HOSTS_MAX];
static struct kary kary = { .nodes = nodes, .leaf = leaf };
static struct forest forest;
static uint64_t seed = 1;

static void set(unsigned i, const char *name, double gbps, double cores, int rank, double round)
{
	snprintf(names[i][0], DRAW_NAME, "%s", name);
	hosts[i] = (struct plan_host){ .name = names[i][0],
		                       .address = names[i][0],
		                       .in_bps = gbps * 1e9,
		                       .out_bps = gbps * 1e9,
		                       .idle_cores = cores,
		                       .rank = rank,
		                       .may_aggregate = rank < 0,
		                       .round_s = round };
}

static trib_status plan(unsigned n, const struct plan_limits *limits, unsigned k, int root)
{
	size_t bytes = kary_work_bytes(n);
	void *work = malloc(bytes);
	trib_status status;

	assert_non_null(work);
	status = kary_plan(hosts, n, limits, k, root, work, bytes, &kary);
	free(work);
	return status;
}

static void expect_text(const char *text)
{
	char is[400];

	assert_int_equal(kary_forest(hosts, &kary, &forest), TRIB_OK);
	forest_print(&forest, is, sizeof(is));
	assert_string_equal(is, text);
}

/* Fig. 12: three slow workers, four fast ones, two idle servers and the parameter server. */
static unsigned paper(void)
{
	for (unsigned i = 0; i < 7; i++) {
		char name[8];

		snprintf(name, sizeof(name), "w%u", i + 1);
		set(i, name, i < 3 ? 40 : 100, 4, (int)i, i < 3 ? 2 : 1 + i / 100.0);
	}
	set(7, "s1", 100, 44, -1, 0);
	set(8, "s2", 100, 44, -1, 0);
	set(9, "ps", 100, 44, -1, 0);
	return 10;
}

static void test_paper(void **state)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;

	(void)state;
	/* Similar workers are together, and the root has one of them, as in the figure. */
	assert_int_equal(plan(paper(), &limits, 3, 9), TRIB_OK);
	expect_text("ps(2,s2(0-1,6),s1(3-5))");
	/* s1 receives three streams and a result, 25 Gb/s each. */
	assert_true(fabs(kary.rate_bps - 25e9) < 1);
	assert_int_equal(plan(10, &limits, 0, 9), TRIB_OK);
	assert_int_equal(kary.k, 3);
	assert_int_equal(plan(10, &limits, 0, KARY_CHOOSE), TRIB_OK);
}

/* A server has ceil(B / b - 1/2) children, at most k. With one child it is left out. */
static void test_children(void **state)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		char name[8];

		snprintf(name, sizeof(name), "w%u", i);
		set(i, name, 10, 1, (int)i, i);
	}
	set(8, "fast", 40, 16, -1, 0);  /* k = 4, so b = 10 */
	set(9, "half", 20, 16, -1, 0);  /* 2 children */
	set(10, "slow", 14, 16, -1, 0); /* ceil(1.4 - 0.5) = 1: left out */
	set(11, "root", 100, 16, -1, 0);
	assert_int_equal(plan(12, &limits, 4, 11), TRIB_OK);
	expect_text("root(6-7,half(4-5),fast(0-3))");
	hosts[10].in_bps = hosts[10].out_bps = 16e9; /* ceil(1.1) = 2 */
	assert_int_equal(plan(12, &limits, 4, 11), TRIB_OK);
	expect_text("root(slow(6-7),half(4-5),fast(0-3))");
}

/* With few servers, a higher k leaves less to the root, also beyond the paper's 5. */
static void test_above_five(void **state)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	char name[8];

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "w%u", i);
		set(i, name, 100, 1, (int)i, i);
	}
	set(20, "s", 100, 16, -1, 0);
	set(21, "root", 100, 16, -1, 0);
	/* The server has 10 children and a parent, the root 11 children: 100 / 11 each. */
	assert_int_equal(plan(22, &limits, 0, 21), TRIB_OK);
	assert_int_equal(kary.k, 10);
	assert_true(fabs(kary.rate_bps - 100e9 / 11) < 1);
	expect_text("root(10-19,s(0-9))");
	assert_int_equal(plan(22, &limits, 5, 21), TRIB_OK);
	assert_true(fabs(kary.rate_bps - 100e9 / 16) < 1);
	/* k is at most the limit on children. */
	limits.children = 13;
	assert_int_equal(plan(22, &limits, 0, 21), TRIB_OK);
	assert_int_equal(kary.k, 10);
	limits.children = 9;
	assert_true(plan(22, &limits, 0, 21) < 0);
	/* If the root is much faster than the server, it has all workers: k is their number. */
	limits.children = 64;
	set(21, "root", 4000, 400, -1, 0);
	assert_int_equal(plan(22, &limits, 0, 21), TRIB_OK);
	assert_int_equal(kary.k, 20);
	assert_int_equal(kary.n_nodes, 1);
	assert_true(fabs(kary.rate_bps - 100e9) < 1);
	/* Without another server every k gives that star. The smallest is chosen. */
	hosts[20].may_aggregate = false;
	assert_int_equal(plan(22, &limits, 0, 21), TRIB_OK);
	assert_int_equal(kary.k, KARY_MIN);
	/* With enough servers k = 2 is the fastest, but 2 to 4 may be too deep. */
	for (unsigned i = 20; i < 40; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		set(i, name, 100, 16, -1, 0);
	}
	assert_int_equal(plan(40, &limits, 0, KARY_CHOOSE), TRIB_OK);
	assert_int_equal(kary.k, 2);
	assert_int_equal(kary.depth, 5);
	limits.depth = 2;
	assert_int_equal(plan(40, &limits, 0, KARY_CHOOSE), TRIB_OK);
	assert_int_equal(kary.k, 5);
	assert_int_equal(kary.depth, 2);
}

static void test_candidates(void **state)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	uint32_t chosen[6];

	(void)state;
	set(0, "worker", 100, 40, 0, 0);
	set(1, "slow", 10, 40, -1, 0);
	set(2, "few-cores", 40, 3, -1, 0); /* 30 of 40 Gb/s */
	set(3, "full", 100, 40, -1, 0);
	set(4, "cores", 40, 8, -1, 0);
	set(5, "memory", 40, 8, -1, 0);
	hosts[0].may_aggregate = true;
	for (unsigned i = 0; i < 6; i++) {
		hosts[i].memory_total = 100;
		hosts[i].memory_used = 60;
	}
	hosts[3].memory_used = 71;
	hosts[5].memory_used = 50;
	limits.model_bytes = 10;
	assert_int_equal(candidates_select(hosts, 6, &limits, chosen), 3);
	assert_int_equal(chosen[0], 5);
	assert_int_equal(chosen[1], 4);
	assert_int_equal(chosen[2], 1);
	hosts[3].memory_used = 70;
	assert_int_equal(candidates_select(hosts, 6, &limits, chosen), 4);
	assert_int_equal(chosen[0], 3);
	hosts[3].memory_used = UINT64_MAX; /* an absurd value must not wrap round */
	assert_int_equal(candidates_select(hosts, 6, &limits, chosen), 3);
}

static void test_worth(void **state)
{
	struct candidates_round rounds[3] = { { 9, 1 }, { 4, 1 }, { 20, 1 } };

	(void)state;
	assert_false(candidates_worth(rounds, 3, 0.1)); /* 3 of 36 */
	rounds[0].transmission_s = 2;
	assert_true(candidates_worth(rounds, 3, 0.1)); /* 4 of 37 */
	assert_false(candidates_worth(rounds, 0, 0.1));
}

static void test_refuses(void **state)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;

	(void)state;
	paper();
	assert_true(plan(10, &limits, 1, 9) < 0);
	assert_true(plan(10, &limits, 65, 9) < 0);
	assert_true(plan(10, &limits, 2, 10) < 0);
	assert_true(plan(10, &limits, 2, 0) < 0); /* a worker that may not aggregate */
	assert_true(plan(7, &limits, 2, KARY_CHOOSE) < 0);
	assert_non_null(strstr(trib_last_error(), "no server can aggregate"));
}

/* ---- against every tree ---- */

/* Never faster than the best of all trees. Prints how much slower. */
static void test_every_tree(void **state)
{
	unsigned rounds = (unsigned)test_count("clusters", 60, 3), n = 5;
	uint64_t random = seed;
	double worst = 1, sum = 0;

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (unsigned i = 0; i < rounds; i++) {
		struct plan_limits limits = PLAN_LIMITS_DEFAULT;
		struct plain_tree tree;
		double best;

		for (unsigned j = 0; j < n; j++) {
			char name[8];

			snprintf(name, sizeof(name), "%c%u", j < 3 ? 'w' : 's', j);
			set(j, name, 10 * (1 + draw_below(&random, 4)), 16, j < 3 ? (int)j : -1,
			    draw_below(&random, 100));
		}
		limits.multicast = i & 1;
		assert_int_equal(plan(n, &limits, 0, KARY_CHOOSE), TRIB_OK);
		assert_int_equal(kary_forest(hosts, &kary, &forest), TRIB_OK);
		assert_true(plain_from_tree(hosts, n, forest.trees, &tree));
		assert_null(plain_fault(hosts, n, &limits, &tree));
		assert_true(fabs(plain_forest_rate(hosts, n, &limits, &forest) - kary.rate_bps) <
		            1);
		best = plain_best(hosts, n, &limits);
		assert_true(kary.rate_bps <= best * (1 + 1e-9));
		worst = fmin(worst, kary.rate_bps / best);
		sum += kary.rate_bps / best;
	}
	printf("%u clusters: mean %.3f, least %.3f of the best tree\n", rounds, sum / rounds,
	       worst);
	assert_true(worst >= 0.5);
}

/* ---- large clusters ---- */

static void check_large(unsigned n, unsigned k, unsigned workers)
{
	static unsigned children[HOSTS_MAX];

	memset(children, 0, sizeof(children));
	for (unsigned r = 0; r < workers; r++) {
		assert_true(leaf[r] < kary.n_nodes);
		children[leaf[r]]++;
	}
	for (unsigned i = 0; i < kary.n_nodes; i++) {
		assert_true(nodes[i].host < n && hosts[nodes[i].host].rank < 0);
		/*
		 * Parents come later, and the last node is the root: no circles, and all nodes are
		 * connected.
		 */
		assert_true(i + 1 == kary.n_nodes ? nodes[i].parent == i : nodes[i].parent > i);
		if (nodes[i].parent != i)
			children[nodes[i].parent]++;
	}
	for (unsigned i = 0; i < kary.n_nodes; i++)
		assert_true(children[i] >= 2 && (children[i] <= k || i + 1 == kary.n_nodes));
}

/*
 * The best k: no k is faster, and none as fast has fewer aggregators, or as many with a smaller k.
 */
static void check_best(unsigned n, const struct plan_limits *limits)
{
	struct kary best = kary;

	assert_true(best.depth <= limits->depth);
	for (unsigned k = KARY_MIN; k <= KARY_MAX; k++) {
		if (plan(n, limits, k, KARY_CHOOSE) != TRIB_OK || kary.depth > limits->depth)
			continue;
		assert_true(kary.rate_bps <= best.rate_bps * (1 + 1e-9));
		if (kary.rate_bps < best.rate_bps * (1 - 1e-9))
			continue;
		assert_true(kary.n_nodes >= best.n_nodes);
		assert_true(kary.n_nodes > best.n_nodes || k >= best.k);
	}
}

static void test_large(void **state)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	uint64_t random = seed;
	clock_t start;

	(void)state;
	for (unsigned i = 0; i < HOSTS_MAX; i++) {
		char name[8];

		snprintf(name, sizeof(name), "%u", i);
		set(i, name, 80 + 10 * draw_below(&random, 3), 64, i < 4000 ? (int)i : -1,
		    draw_below(&random, 1000));
	}
	for (unsigned k = 2; k <= 9; k += test_is_short() ? 7 : 1) {
		assert_int_equal(plan(HOSTS_MAX, &limits, k, KARY_CHOOSE), TRIB_OK);
		check_large(HOSTS_MAX, k, 4000);
	}
	start = clock();
	assert_int_equal(plan(HOSTS_MAX, &limits, 0, KARY_CHOOSE), TRIB_OK);
	printf("%u hosts: k = %u, %u aggregators, %.1f Gb/s, %llu steps, %.3f s\n", HOSTS_MAX,
	       kary.k, kary.n_nodes, kary.rate_bps / 1e9, (unsigned long long)kary.steps,
	       (double)(clock() - start) / CLOCKS_PER_SEC);
	check_best(HOSTS_MAX, &limits);
	/* With fewer servers more values of k are tried, but each at most once. */
	for (unsigned n = HOSTS_MAX; n > 4100; n = (n + 4000) / 2) {
		assert_int_equal(plan(n, &limits, 0, KARY_CHOOSE), TRIB_OK);
		assert_true(kary.steps <= (uint64_t)KARY_MAX * 2 * n);
		check_best(n, &limits);
	}
}

/* ---- compared with the planner's single tree ---- */

/* Only servers aggregate, and all are nearly equal, so many rates are close to each other. */
static void draw_alike(uint64_t *random, unsigned n)
{
	unsigned workers = 2 + draw_below(random, n / 3 + 1);

	for (unsigned i = 0; i < n; i++) {
		double gbps = i < workers ? 100 : 100 + draw_below(random, 400) / 100.0;
		char name[DRAW_NAME];

		snprintf(name, sizeof(name), "h%u", i);
		set(i, name, gbps, 16, i < workers ? (int)i : -1, 0);
	}
}

static unsigned draw_hosts(uint64_t *random)
{
	unsigned n = 3 + draw_below(random, draw_below(random, 8) ? 150 : 1000);

	if (draw_below(random, 2))
		draw_cluster(random_next(random), n, hosts, names);
	else
		draw_alike(random, n);
	return n;
}

/* The value of a plan with its depth: see plan/stripes/stripes.c. */
static double value_of(double rate, unsigned depth)
{
	return rate * (1 - 0.002 * (depth - 1.0));
}

/* How many times as fast the planner's single tree is; 0: there is no k-ary tree. */
static double compare(unsigned n, struct plan_limits limits)
{
	struct plan_verdict one;
	trib_status status;
	size_t bytes;
	void *work;

	if (plan(n, &limits, 0, KARY_CHOOSE) != TRIB_OK)
		return 0;
	limits.trees = 1;
	bytes = plan_work_bytes(n, &limits);
	work = malloc(bytes);
	assert_non_null(work);
	status = plan_stripes(hosts, n, &limits, work, bytes, NULL, &one);
	free(work);
	assert_int_equal(status, TRIB_OK);
	if (one.rate_bps < kary.rate_bps * (1 - 1e-9) &&
	    (one.depth >= kary.depth ||
	     value_of(one.rate_bps, one.depth) < value_of(kary.rate_bps, kary.depth)))
		fail_msg("%u hosts: %.9g, %u deep, but with k = %u %.9g, %u deep", n, one.rate_bps,
		         one.depth, kary.k, kary.rate_bps, kary.depth);
	return one.rate_bps / kary.rate_bps;
}

/*
 * The controller never makes k-ary trees, and loses nothing. If it may make a single tree, that
 * tree is never slower, unless it is shallower, and then by no more than the cost of a level.
 */
static void test_planner_is_no_slower(void **state)
{
	/* A star that is 0.4 % slower than the best tree, which has two levels. */
	const struct {
		uint64_t seed;
		unsigned n;
	} hard[] = { { 1030204722833840191u, 18 }, { 13322954797756367199u, 23 } };
	unsigned rounds = (unsigned)test_cases("clusters", 1500), compared = 0, slower = 0;
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;
	uint64_t random = seed;
	double sum = 0;

	(void)state;
	for (unsigned i = 0; i < sizeof(hard) / sizeof(*hard); i++) {
		draw_cluster(hard[i].seed, hard[i].n, hosts, names);
		assert_true(compare(hard[i].n, limits) > 0);
	}
	for (unsigned i = 0; i < rounds; i++) {
		unsigned n = draw_hosts(&random);
		double times;

		limits.multicast = i & 1;
		limits.children = draw_below(&random, 4) ? 64 : 4 + draw_below(&random, 10);
		times = compare(n, limits);
		compared += times > 0;
		slower += times > 0 && times < 1 - 1e-9;
		sum += times;
	}
	printf("%u clusters: the planner's one tree is %.2f times as fast; %u are slower and "
	       "shallower\n",
	       compared, sum / compared, slower);
	assert_true(compared > rounds / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paper),
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_candidates),
		cmocka_unit_test(test_worth),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_every_tree),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_above_five),
		cmocka_unit_test(test_planner_is_no_slower),
	};

	if (getenv("TRIB_SEED"))
		seed = strtoull(getenv("TRIB_SEED"), NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
