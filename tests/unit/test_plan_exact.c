/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans compared with linear programs: over every tree of small clusters, and over the takes of
 * hosts in large ones. TRIB_SEED: the seed. Skipped if this build has no GLPK.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random_bits.h"
#include "cli/plan/plan_exact.h"
#include "plan/stripes/columns.h"
#include "plan/cluster/draw.h"
#include "plan_trees.h"
#include "short.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define HOSTS_MAX 256
#define CLOSE 0.97
#define SMALL 4 /* number of hosts, so that all trees can be tried */

static struct plan_host hosts[HOSTS_MAX];
static char names[HOSTS_MAX][2][DRAW_NAME];
static struct plan_verdict verdict;
static uint64_t seed = 1;

static void plan(unsigned n, const struct plan_limits *limits)
{
	size_t bytes = plan_work_bytes(n, limits);
	void *work = malloc(bytes);

	assert_non_null(work);
	if (plan_stripes(hosts, n, limits, work, bytes, NULL, &verdict) != TRIB_OK)
		fail_msg("%s", trib_last_error());
	free(work);
}

#ifdef HAVE_GLPK
#include <glpk.h>

struct columns {
	glp_prob *lp;
	const struct plan_limits *limits;
	unsigned n;
};

/* A tree is a column: its cost to each host's links and cores. */
static void column_add(void *context, const struct plain_tree *tree)
{
	static plain_load load;
	struct columns *columns = context;
	int rows[3 * HOSTS_MAX + 1], used = 0, at = glp_add_cols(columns->lp, 1);
	double values[3 * HOSTS_MAX + 1];

	plain_cost(hosts, columns->n, columns->limits->multicast, tree, load);
	for (unsigned i = 0; i < columns->n; i++)
		for (unsigned j = 0; j < 3; j++)
			if (load[i][j] > 0) {
				rows[++used] = (int)(3 * i + j) + 1;
				values[used] = load[i][j];
			}
	glp_set_col_bnds(columns->lp, at, GLP_LO, 0, 0);
	glp_set_obj_coef(columns->lp, at, 1);
	glp_set_mat_col(columns->lp, at, used, rows, values);
}

/* The best rate of all trees together. */
static double all_trees(unsigned n, const struct plan_limits *limits)
{
	struct columns columns = { glp_create_prob(), limits, n };
	double rate;

	glp_term_out(GLP_OFF);
	glp_set_obj_dir(columns.lp, GLP_MAX);
	glp_add_rows(columns.lp, 3 * (int)n);
	for (unsigned i = 0; i < n; i++) {
		const double has[] = { hosts[i].in_bps, hosts[i].out_bps,
			               hosts[i].idle_cores * limits->core_bps };

		for (unsigned j = 0; j < 3; j++)
			glp_set_row_bnds(columns.lp, (int)(3 * i + j) + 1, GLP_UP, 0, has[j] / 1e9);
	}
	plain_each(hosts, n, limits, column_add, &columns);
	assert_int_equal(glp_simplex(columns.lp, NULL), 0);
	rate = glp_get_obj_val(columns.lp) * 1e9;
	glp_delete_prob(columns.lp);
	return rate;
}

/* Column generation gives the same rate. */
static void check_columns(unsigned n, const struct plan_limits *limits, double trees)
{
	struct model_host caps[SMALL];
	uint32_t ranks[SMALL], order[SMALL];
	struct model model = {
		.hosts = hosts, .n = n, .caps = caps, .ranks = ranks, .order = order
	};
	struct shape_place places[SMALL * PLAN_TREES_MAX];
	struct shape shape = { .places = places, .places_max = SMALL * PLAN_TREES_MAX };
	double rate, sum = 0;
	uint64_t steps = 0;

	assert_int_equal(model_fill(&model, limits), TRIB_OK);
	rate = columns_fill(&model, &shape, &steps);
	for (unsigned t = 0; t < shape.n_trees; t++)
		sum += shape.trees[t].rate;
	assert_float_equal(rate / trees, 1, 1e-6);
	assert_float_equal(sum / trees, 1, 1e-6);
}

/*
 * The program over hosts is not below the program over trees, and not far above. Plans are close to
 * both.
 */
static void test_every_tree(void **state)
{
	unsigned rounds = (unsigned)test_cases("clusters", 120);
	double worst = 1, widest = 1;
	uint64_t random = seed;

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (unsigned i = 0; i < rounds; i++) {
		struct plan_limits limits = PLAN_LIMITS_DEFAULT;
		unsigned n = 2 + i % (SMALL - 1);
		double trees, exact;

		draw_cluster(random_next(&random), n, hosts, names);
		limits.multicast = i & 1;
		limits.trees = PLAN_TREES_MAX;
		trees = all_trees(n, &limits);
		assert_int_equal(exact_rate(hosts, n, &limits, &exact), TRIB_OK);
		plan(n, &limits);
		check_columns(n, &limits, trees);
		assert_true(exact >= trees * (1 - 1e-6));
		assert_true(verdict.bound_bps >= exact * (1 - 1e-6));
		assert_true(verdict.rate_bps <= trees * (1 + 1e-6));
		worst = fmin(worst, verdict.rate_bps / trees);
		widest = fmax(widest, exact / trees);
	}
	printf("%u clusters: plans have at least %.4f of the best of all trees; the program "
	       "of hosts is at most %.4f of it\n",
	       rounds, worst, widest);
	assert_true(worst >= CLOSE);
	assert_true(widest <= 1.03);
}
#else
static void test_every_tree(void **state)
{
	(void)state;
}
#endif

struct tally {
	unsigned n, close;
	double worst, sum;
};

static void tally_add(struct tally *tally, double ratio)
{
	tally->n++;
	tally->close += ratio >= CLOSE;
	tally->worst = fmin(tally->worst, ratio);
	tally->sum += ratio;
}

static void tally_print(const struct tally *tally, const char *of)
{
	printf("%u clusters, of %s: mean %.4f, least %.4f, %u within 3 %%\n", tally->n, of,
	       tally->sum / tally->n, tally->worst, tally->close);
}

/*
 * Random clusters of 2 to 256 hosts: with unlimited trees, and with the trees that a job may have.
 */
static void test_random(void **state)
{
	unsigned rounds = (unsigned)test_cases("clusters", 250);
	struct tally any = { .worst = 1 }, few = { .worst = 1 }, jobs = { .worst = 1 };
	uint64_t random = seed;

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (unsigned i = 0; i < rounds; i++) {
		struct plan_limits limits = PLAN_LIMITS_DEFAULT;
		unsigned n = 2 + draw_below(&random, HOSTS_MAX - 1);
		double exact;

		draw_cluster(random_next(&random), n, hosts, names);
		limits.multicast = i & 1;
		assert_int_equal(exact_rate(hosts, n, &limits, &exact), TRIB_OK);
		plan(n, &limits);
		assert_true(verdict.rate_bps <= exact * (1 + 1e-6));
		assert_true(verdict.bound_bps >= exact * (1 - 1e-6));
		tally_add(&few, verdict.rate_bps / fmin(exact, verdict.within_bps));
		if (verdict.workers <= TREE_RANKS_MAX)
			tally_add(&jobs, verdict.rate_bps / exact);
		limits.trees = PLAN_TREES_MAX;
		plan(n, &limits);
		assert_true(verdict.rate_bps <= exact * (1 + 1e-6));
		tally_add(&any, verdict.rate_bps / exact);
	}
	tally_print(&any, "the optimum, with up to 256 trees");
	tally_print(&few, "what 64 trees could do at best, with 64");
	tally_print(&jobs, "the optimum, with 64 trees and as many workers as a job may have");
	assert_int_equal(any.close, any.n);
	assert_int_equal(jobs.close, jobs.n);
	/*
	 * Compared with a bound that may be unreachable: nearly all are close, and none is far off.
	 */
	assert_true(few.close >= few.n * 0.99);
	assert_true(few.worst >= 0.95);
}

/*
 * Clusters for which plans were once more than 3 % below the optimum, of 20,000 (trib plan --random
 * HOSTS --seed SEED). In some, few hosts may aggregate. In others, many equal hosts may, and whole
 * children leave a little of each. In others, as many servers as workers may, so that 32 trees are
 * too few.
 */
static void test_hard(void **state)
{
	static const struct {
		unsigned n;
		uint64_t seed;
		unsigned trees;
	} hard[] = {
		{ 89, 3867213752u, 32 },  { 224, 3197662184u, 32 }, { 9, 1364478965u, 32 },
		{ 233, 688679220u, 32 },  { 217, 2545398327u, 32 }, { 170, 1285643972u, 32 },
		{ 188, 353124689u, 32 },  { 209, 2931207558u, 32 }, { 197, 2069114773u, 32 },
		{ 101, 3759920381u, 32 }, { 108, 852439584u, 32 },  { 194, 4012293310u, 32 },
		{ 197, 1368324516u, 32 }, { 170, 2185108299u, 32 }, { 124, 2294446468u, 64 },
		{ 172, 873969509u, 64 },  { 205, 3966397838u, 64 }, { 234, 1540015914u, 64 },
		{ 155, 3413739828u, 64 }, { 248, 200875694u, 64 },  { 255, 3427274366u, 64 },
	};
	const size_t all = sizeof(hard) / sizeof(hard[0]);
	size_t n = test_count("hard clusters", all, 2);
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;

	(void)state;
	for (size_t k = 0, i = 0; k < n; k++, i = k * all / n) {
		double exact;

		limits.trees = hard[i].trees;
		draw_cluster(hard[i].seed, hard[i].n, hosts, names);
		assert_int_equal(exact_rate(hosts, hard[i].n, &limits, &exact), TRIB_OK);
		plan(hard[i].n, &limits);
		printf("%u hosts, seed %llu: %.4f of the optimum with %u trees\n", hard[i].n,
		       (unsigned long long)hard[i].seed, verdict.rate_bps / exact, verdict.trees);
		assert_true(verdict.rate_bps >= CLOSE * exact);
	}
}

/*
 * 62 workers and 62 equal servers. In 62 stars a server does nothing but sum. In 32 trees, thirty
 * have two servers with 32 streams each, and two have one server with 62. No 32 trees are faster:
 * at a price of 1/992 for a tree and 15/992 for a server, a tree's cost equals its value.
 */
static void test_trees_are_few(void **state)
{
	struct plan_limits limits = PLAN_LIMITS_DEFAULT;

	(void)state;
	draw_cluster(2294446468u, 124, hosts, names);
	limits.trees = 32;
	plan(124, &limits);
	assert_float_equal(verdict.rate_bps / verdict.bound_bps, 30 / 32.0 + 2 / 62.0, 1e-6);
	assert_int_equal(verdict.trees, 32);
	limits.trees = 64;
	plan(124, &limits);
	assert_true(verdict.rate_bps >= CLOSE * verdict.bound_bps);
	assert_true(verdict.trees > 32 && verdict.trees <= 40); /* no more than needed */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_tree),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_hard),
		cmocka_unit_test(test_trees_are_few),
	};
	const char *given = getenv("TRIB_SEED");

	if (!exact_rate) {
		puts("skipped: this build has no GLPK (Debian: libglpk-dev)");
		return 77;
	}
	if (given)
		seed = strtoull(given, NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
