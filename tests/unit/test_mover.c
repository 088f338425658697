/* SPDX-License-Identifier: Apache-2.0 */
/* When a job that runs leaves a node, and when it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "control/mover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ull
#define START (100 * SECOND)

static const struct node_limits limits = { .dead_after = SECOND, .load = 0.9 };

static struct node *beat(struct nodes *nodes, const char *address, double load, uint64_t now)
{
	struct node_report report = { .name = "n", .cores = 4, .memory = 100 };
	struct node *node;

	report.link_bps = 1000000000;
	report.load = load;
	snprintf(report.address, sizeof(report.address), "%.*s", (int)sizeof(report.address) - 1,
	         address);
	node = nodes_beat(nodes, &report, now, NULL);
	node_watch(node, now, &limits);
	return node;
}

static struct mover mover_at(const struct nodes *nodes, uint64_t now)
{
	return (struct mover){ .nodes = nodes, .limits = &limits, .now = now, .exit_below = 0.1 };
}

/* Three ranks elsewhere, with this plan since START. */
static struct moving job(const char *plan, double rate)
{
	return (struct moving){ .wish = { .ranks = 3,
		                          .where = { "10.1.0.1", "10.1.0.2", "10.1.0.3" },
		                          .broken = plan },
		                .plan = plan,
		                .rate_bps = rate,
		                .made_at = START };
}

static void test_well(void **state)
{
	struct nodes nodes = { 0 };
	struct mover mover = mover_at(&nodes, START + 60 * SECOND);
	struct moving moving = job("a:1(0-2)", 1e9);
	char why[MOVE_WHY];
	struct node *node = beat(&nodes, "a:1", 0.5, mover.now);

	(void)state;
	beat(&nodes, "b:1", 0, mover.now);
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_NOT);
	/* One that is not in the plan is none of its business. */
	moving.plan = "b:1(0-2)";
	node->drained = true;
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_NOT);
	nodes_free(&nodes, NULL);
}

static void test_drained(void **state)
{
	struct nodes nodes = { 0 };
	struct mover mover = mover_at(&nodes, START); /* the plan is new: that does not matter */
	struct moving moving = job("a:1(0-2)", 1e9);
	char why[MOVE_WHY];
	struct node *node = beat(&nodes, "a:1", 0, START);

	(void)state;
	node->drained = true;
	assert_int_equal(node_state(node, START, &limits), NODE_DRAINED);
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_STAYS);
	assert_non_null(strstr(why, "no other"));
	beat(&nodes, "b:1", 0.99, START); /* slow, but another one */
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_LEAVES);
	assert_non_null(strstr(why, "drained"));
	node->drained = false;
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_NOT);
	nodes_free(&nodes, NULL);
}

static void test_loaded_lasts(void **state)
{
	struct nodes nodes = { 0 };
	struct mover mover = mover_at(&nodes, START + 60 * SECOND);
	struct moving moving = job("a:1(0-2)", 1e8);
	char why[MOVE_WHY];
	struct node *node = beat(&nodes, "a:1", 0.95, mover.now);

	(void)state;
	beat(&nodes, "b:1", 0, mover.now);
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_NOT);
	mover.now += MOVE_LASTED - 1;
	beat(&nodes, "a:1", 0.99, mover.now);
	beat(&nodes, "b:1", 0, mover.now);
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_NOT);
	mover.now++;
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_LEAVES);
	assert_non_null(strstr(why, "others use 99 % of its cores"));
	/* A moment of rest, and it counts anew. */
	beat(&nodes, "a:1", 0.2, mover.now);
	beat(&nodes, "a:1", 0.99, mover.now);
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_NOT);
	/* A new plan is left in peace. */
	mover.now += MOVE_LASTED;
	beat(&nodes, "a:1", 0.99, mover.now);
	beat(&nodes, "b:1", 0, mover.now);
	moving.made_at = mover.now - MOVE_REST + 1;
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_NOT);
	moving.made_at--;
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_LEAVES);
	nodes_free(&nodes, NULL);
}

static void test_memory_counts(void **state)
{
	struct nodes nodes = { 0 };
	struct mover mover = mover_at(&nodes, START + 60 * SECOND);
	struct moving moving = job("a:1(0-2)", 1e8);
	struct node *node = beat(&nodes, "a:1", 0, mover.now);
	char why[MOVE_WHY];

	(void)state;
	node->report.memory_used = 85;
	node_watch(node, mover.now - MOVE_LASTED, &limits);
	beat(&nodes, "b:1", 0, mover.now);
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_LEAVES);
	assert_non_null(strstr(why, "85 % of its memory"));
	nodes_free(&nodes, NULL);
}

/* Where all else is loaded too, or much slower, it stays. */
static void test_worth_it(void **state)
{
	struct nodes nodes = { 0 };
	struct mover mover = mover_at(&nodes, START + 60 * SECOND);
	struct moving moving = job("a:1(0-2)", 1e8);
	struct node *node = beat(&nodes, "a:1", 0.95, mover.now - MOVE_LASTED), *other;
	char why[MOVE_WHY];
	double third = 1e9 / 3; /* what one star of a server gives three ranks */

	(void)state;
	beat(&nodes, "a:1", 0.95, mover.now);
	other = beat(&nodes, "b:1", 0.95, mover.now);
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_STAYS);
	assert_non_null(strstr(why, "no other"));
	other = beat(&nodes, "b:1", 0, mover.now);
	other->drained = true;
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_STAYS);
	other->drained = false;
	moving.rate_bps = third / MOVE_GAIN / MOVE_LEFT * 1.01;
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_STAYS);
	assert_non_null(strstr(why, "slower"));
	moving.rate_bps = third / MOVE_GAIN / MOVE_LEFT * 0.99;
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_LEAVES);
	moving.rate_bps = 0; /* made by an earlier run of the controller */
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_LEAVES);
	nodes_free(&nodes, NULL);
}

/* What would be planned has no more trees and children than the next plan will have. */
static void test_limits_hold(void **state)
{
	struct nodes nodes = { 0 };
	struct mover mover = mover_at(&nodes, START + 60 * SECOND);
	/* Without a there is a star at each of b and c: two thirds of 1 Gb/s, or one with a limit.
	 */
	struct moving moving = job("a:1(0-2)", 1e9);
	struct node *node = beat(&nodes, "a:1", 0.95, mover.now - MOVE_LASTED);
	char why[MOVE_WHY];

	(void)state;
	beat(&nodes, "a:1", 0.95, mover.now);
	beat(&nodes, "b:1", 0, mover.now);
	beat(&nodes, "c:1", 0, mover.now);
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_LEAVES);
	mover.trees = 1;
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_STAYS);
	assert_non_null(strstr(why, "slower"));
	mover.trees = 2;
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_LEAVES);
	mover.children = 2; /* no stars then */
	assert_int_equal(mover_judge(&mover, &moving, node, why), MOVE_STAYS);
	nodes_free(&nodes, NULL);
}

/* Three ranks of which two have an aggregator beside them, and two servers; all of 1 Gb/s. */
static struct moving small_talk(struct nodes *nodes, const struct mover *mover, char *plan)
{
	struct plan_verdict verdict;
	const struct planner planner = {
		.nodes = nodes, .limits = &limits, .now = mover->now, .verdict = &verdict
	};
	struct moving moving = job("", 0);

	for (unsigned i = 1; i <= 4; i++) {
		char address[TREE_NAME_MAX];

		snprintf(address, sizeof(address), "10.%u.0.%u:7700", i <= 2 ? 1 : 2, i);
		beat(nodes, address, 0, mover->now);
	}
	moving.wish.broken = "";
	assert_int_equal(planner_plan(&planner, &moving.wish, plan), TRIB_OK);
	moving.plan = plan;
	moving.rate_bps = verdict.rate_bps;
	moving.since = mover->now - MOVE_REST;
	moving.share = 0.02;
	return moving;
}

static void test_exit(void **state)
{
	struct nodes nodes = { 0 };
	struct mover mover = mover_at(&nodes, START + 60 * SECOND);
	char plan[PLAN_TEXT_MAX], why[MOVE_WHY];
	struct moving moving = small_talk(&nodes, &mover, plan);

	(void)state;
	assert_true(plan_has(plan, "10.2.0.3:7700"));
	assert_int_equal(mover_weigh(&mover, &moving, why), MOVE_LEAVES);
	assert_non_null(strstr(why, "takes 2.0 % of the step"));
	assert_non_null(strstr(why, "not worth"));
	/* Not at once, not in a new plan, not where it is switched off. */
	moving.since++;
	assert_int_equal(mover_weigh(&mover, &moving, why), MOVE_NOT);
	moving.since = 0;
	assert_int_equal(mover_weigh(&mover, &moving, why), MOVE_NOT);
	moving.since = mover.now - MOVE_REST;
	moving.made_at = mover.now - MOVE_REST + 1;
	assert_int_equal(mover_weigh(&mover, &moving, why), MOVE_NOT);
	moving.made_at = START;
	mover.exit_below = 0;
	assert_int_equal(mover_weigh(&mover, &moving, why), MOVE_NOT);
	mover.exit_below = 0.1;
	/* Not where it is unknown, or would be more than the limit without servers. */
	moving.share = -1;
	assert_int_equal(mover_weigh(&mover, &moving, why), MOVE_NOT);
	moving.share = 0.099;
	assert_int_equal(mover_weigh(&mover, &moving, why), MOVE_NOT);
	/* Nor once more, where it was wrong. */
	moving.share = 0.02;
	moving.has_tried = true;
	assert_int_equal(mover_weigh(&mover, &moving, why), MOVE_NOT);
	nodes_free(&nodes, NULL);
}

/* Without servers already, or with nothing else than the one that serves: nothing to give up. */
static void test_nothing_to_give_up(void **state)
{
	struct nodes nodes = { 0 };
	struct mover mover = mover_at(&nodes, START + 60 * SECOND);
	struct moving moving = job("10.9.0.1:7700(0-2)", 3e8);
	char why[MOVE_WHY];

	(void)state;
	beat(&nodes, "10.9.0.1:7700", 0, mover.now);
	moving.share = 0.001;
	moving.since = START;
	assert_int_equal(mover_weigh(&mover, &moving, why), MOVE_NOT);
	beat(&nodes, "10.1.0.2:7700", 0, mover.now);
	assert_int_equal(mover_weigh(&mover, &moving, why), MOVE_LEAVES);
	moving.plan = "10.1.0.2:7700(0-2)";
	assert_int_equal(mover_weigh(&mover, &moving, why), MOVE_NOT);
	nodes_free(&nodes, NULL);
}

/* It takes much more than was thought: servers come back, and stay. */
static void test_comes_back(void **state)
{
	struct nodes nodes = { 0 };
	struct mover mover = mover_at(&nodes, START + 60 * SECOND);
	char plan[PLAN_TEXT_MAX], why[MOVE_WHY];
	struct moving moving = small_talk(&nodes, &mover, plan);

	(void)state;
	moving.wish.frugal = true;
	assert_int_equal(mover_weigh(&mover, &moving, why), MOVE_NOT);
	moving.share = 0.15; /* more than the limit, but not much */
	assert_int_equal(mover_weigh(&mover, &moving, why), MOVE_NOT);
	moving.share = 0.21;
	assert_int_equal(mover_weigh(&mover, &moving, why), MOVE_LEAVES);
	assert_non_null(strstr(why, "are worth their use"));
	moving.wish.frugal = false;
	moving.has_tried = true;
	for (moving.share = 0; moving.share < 1; moving.share += 0.01)
		assert_int_equal(mover_weigh(&mover, &moving, why), MOVE_NOT);
	nodes_free(&nodes, NULL);
}

/* Two servers, three ranks of which one was seen to have a slow link; the plan counts on that. */
static struct moving slow_talk(struct nodes *nodes, const struct mover *mover, char *plan)
{
	struct plan_verdict verdict;
	const struct planner planner = {
		.nodes = nodes, .limits = &limits, .now = mover->now, .verdict = &verdict
	};
	struct moving moving = job("", 0);

	beat(nodes, "a:1", 0, mover->now);
	beat(nodes, "b:1", 0, mover->now);
	moving.wish.broken = "";
	moving.wish.measured[1] = 50e6;
	assert_int_equal(planner_plan(&planner, &moving.wish, plan), TRIB_OK);
	moving.plan = plan;
	moving.rate_bps = verdict.rate_bps;
	moving.links_at = START + SECOND;
	return moving;
}

/* The link was mended: trees that were as good as any for it are not any more. */
static void test_link_is_mended(void **state)
{
	struct nodes nodes = { 0 };
	struct mover mover = mover_at(&nodes, START + 60 * SECOND);
	char plan[PLAN_TEXT_MAX], why[MOVE_WHY];
	struct moving moving = slow_talk(&nodes, &mover, plan);

	(void)state;
	assert_true(moving.rate_bps > 49e6 && moving.rate_bps < 51e6);
	assert_string_equal(plan, "a:1(0-2)"); /* one star is enough for that */
	assert_int_equal(mover_reckon(&mover, &moving, why), MOVE_STAYS);
	moving.wish.measured[1] = 0;
	assert_int_equal(mover_reckon(&mover, &moving, why), MOVE_LEAVES);
	assert_non_null(strstr(why, "333 Mb/s in these trees, 667 in others"));
	/* Turns at another one change nothing. */
	moving.plan = "a:1(0-2)|c:1(0-2)";
	assert_int_equal(mover_reckon(&mover, &moving, why), MOVE_LEAVES);
	moving.plan = "a:1(0-2)";
	/* Not within the limits that plans have, where the gain is too small, or with a loaded
	 * node. */
	mover.trees = 1;
	assert_int_equal(mover_reckon(&mover, &moving, why), MOVE_STAYS);
	mover.trees = 0;
	moving.wish.measured[1] = MOVE_GAIN * 1e9 / 3 - 1e6;
	assert_int_equal(mover_reckon(&mover, &moving, why), MOVE_STAYS);
	moving.wish.measured[1] = MOVE_GAIN * 1e9 / 3 + 1e6;
	assert_int_equal(mover_reckon(&mover, &moving, why), MOVE_LEAVES);
	beat(&nodes, "b:1", 0.95, mover.now);
	assert_int_equal(mover_reckon(&mover, &moving, why), MOVE_STAYS);
	beat(&nodes, "b:1", 0, mover.now);
	/* Not at once, not in a new plan, not without news, nor where the plan is not of this run.
	 */
	moving.links_at = mover.now - MOVE_LASTED + 1;
	assert_int_equal(mover_reckon(&mover, &moving, why), MOVE_NOT);
	moving.links_at--;
	assert_int_equal(mover_reckon(&mover, &moving, why), MOVE_LEAVES);
	moving.made_at = mover.now - MOVE_REST + 1;
	assert_int_equal(mover_reckon(&mover, &moving, why), MOVE_NOT);
	moving.made_at = 0;
	assert_int_equal(mover_reckon(&mover, &moving, why), MOVE_NOT);
	moving.made_at = START;
	moving.links_at = 0;
	assert_int_equal(mover_reckon(&mover, &moving, why), MOVE_NOT);
	/* Trees of which an aggregator is gone are none to compare with. */
	moving.links_at = START + SECOND;
	moving.plan = "z:1(0-2)";
	assert_int_equal(mover_reckon(&mover, &moving, why), MOVE_STAYS);
	nodes_free(&nodes, NULL);
}

static uint64_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

/*
 * Loads that come and go for ten minutes: the job never goes to where it has just been
 * chased from, never moves twice within a plan's rest, and is in the end at work.
 */
static void test_no_to_and_fro(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct nodes nodes = { 0 };
		char plan[PLAN_TEXT_MAX] = "", why[MOVE_WHY], names[6][TREE_NAME_MAX];
		struct plan_verdict verdict;
		uint64_t random = seed, made_at = START, moves = 0;
		double loads[6] = { 0 };

		for (uint64_t now = START; now < START + 600 * SECOND; now += SECOND / 2) {
			struct planner planner = { .nodes = &nodes,
				                   .limits = &limits,
				                   .now = now,
				                   .verdict = &verdict,
				                   .strict = false };
			struct mover mover = mover_at(&nodes, now);
			struct moving moving = job(plan, verdict.rate_bps);

			for (unsigned i = 0; i < 6; i++) {
				if (random_next(&random) % 40 == 0)
					loads[i] = (double)(random_next(&random) % 101) / 100;
				snprintf(names[i], sizeof(names[i]), "10.0.0.%u:7700", i + 1);
				beat(&nodes, names[i], loads[i], now);
			}
			if (!*plan) {
				moving.wish.broken = "";
				assert_int_equal(planner_plan(&planner, &moving.wish, plan),
				                 TRIB_OK);
				made_at = now;
				continue;
			}
			moving.made_at = made_at;
			for (unsigned i = 0; i < 6; i++) {
				struct node *node = nodes_find(&nodes, names[i]);

				if (mover_judge(&mover, &moving, node, why) != MOVE_LEAVES)
					continue;
				assert_true(now - made_at >= MOVE_REST);
				assert_true(now - node->loaded_since >= MOVE_LASTED);
				moving.wish.broken = "";
				assert_int_equal(planner_plan(&planner, &moving.wish, plan),
				                 TRIB_OK);
				assert_false(plan_has(plan, names[i]));
				made_at = now;
				moves++;
				break;
			}
		}
		assert_true(moves <= 600 / (MOVE_REST / SECOND));
		nodes_free(&nodes, NULL);
	}
}

/*
 * A rank sends all of its vector in whatever trees, and one that has no aggregator beside it sends
 * no more than that: where such a link turns out to be slow, no other trees are faster.
 */
static void test_slow_leaf_stays(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct nodes nodes = { 0 };
		struct mover mover = mover_at(&nodes, START + 60 * SECOND);
		struct planner planner = { .nodes = &nodes, .limits = &limits, .now = mover.now };
		struct moving moving = job("", 0);
		char plan[PLAN_TEXT_MAX], why[MOVE_WHY], address[TREE_NAME_MAX];
		uint64_t random = seed;

		/* Aggregators beside ranks 0 and 1, or 1 only, and servers; links of 1 to 10 Gb/s.
		 */
		for (unsigned i = 0; i < 6; i++) {
			if (random_next(&random) % 3 == 0)
				continue;
			snprintf(address, sizeof(address), "10.%u.0.%u:7700", i < 2 ? 1 : 2, i + 1);
			beat(&nodes, address, 0, mover.now)->report.link_bps =
				1000000000 * (1 + random_next(&random) % 10);
		}
		snprintf(address, sizeof(address), "10.2.0.9:7700");
		beat(&nodes, address, 0, mover.now);
		moving.wish.broken = "";
		assert_int_equal(planner_plan(&planner, &moving.wish, plan), TRIB_OK);
		moving.plan = plan;
		moving.links_at = START;
		moving.wish.measured[2] = (double)(random_next(&random) % 1000 + 1) * 1e6;
		assert_int_equal(mover_reckon(&mover, &moving, why), MOVE_STAYS);
		nodes_free(&nodes, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_well),           cmocka_unit_test(test_drained),
		cmocka_unit_test(test_loaded_lasts),   cmocka_unit_test(test_memory_counts),
		cmocka_unit_test(test_worth_it),       cmocka_unit_test(test_no_to_and_fro),
		cmocka_unit_test(test_exit),           cmocka_unit_test(test_nothing_to_give_up),
		cmocka_unit_test(test_comes_back),     cmocka_unit_test(test_limits_hold),
		cmocka_unit_test(test_link_is_mended), cmocka_unit_test(test_slow_leaf_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
