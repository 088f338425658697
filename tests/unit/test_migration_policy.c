/* SPDX-License-Identifier: Apache-2.0 */
/* When a running job leaves a node, and when it stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "control/policy/migration_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ull
#define START (100 * SECOND)

static const struct node_limits limits = { .dead_after = SECOND, .load = 0.9 };

static struct node *heartbeat(struct nodes *nodes, const char *address, double load, uint64_t now)
{
	struct node_report report = { .name = "n", .cores = 4, .memory = 100 };
	struct node *node;

	report.link_bps = 1000000000;
	report.load = load;
	snprintf(report.address, sizeof(report.address), "%.*s", (int)sizeof(report.address) - 1,
	         address);
	node = nodes_heartbeat(nodes, &report, now, NULL);
	node_watch(node, now, &limits);
	return node;
}

static struct migration_policy policy_at(const struct nodes *nodes, uint64_t now)
{
	return (struct migration_policy){
		.nodes = nodes, .limits = &limits, .now = now, .exit_below = 0.1
	};
}

/* Three ranks elsewhere, with this plan since START. */
static struct running_plan job(const char *plan, double rate)
{
	return (struct running_plan){ .wish = { .ranks = 3,
		                                .where = { "10.1.0.1", "10.1.0.2", "10.1.0.3" },
		                                .broken = plan },
		                      .plan = plan,
		                      .rate_bps = rate,
		                      .made_at = START };
}

static void test_well(void **state)
{
	struct nodes nodes = { 0 };
	struct migration_policy policy = policy_at(&nodes, START + 60 * SECOND);
	struct running_plan running = job("a:1(0-2)", 1e9);
	char why[MIGRATION_WHY_MAX];
	struct node *node = heartbeat(&nodes, "a:1", 0.5, policy.now);

	(void)state;
	heartbeat(&nodes, "b:1", 0, policy.now);
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_NONE);
	/* A node outside of the plan does not matter. */
	running.plan = "b:1(0-2)";
	node->drained = true;
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_NONE);
	nodes_free(&nodes, NULL);
}

static void test_drained(void **state)
{
	struct nodes nodes = { 0 };
	struct migration_policy policy =
		policy_at(&nodes, START); /* a new plan leaves a drained node, too */
	struct running_plan running = job("a:1(0-2)", 1e9);
	char why[MIGRATION_WHY_MAX];
	struct node *node = heartbeat(&nodes, "a:1", 0, START);

	(void)state;
	node->drained = true;
	assert_int_equal(node_state(node, START, &limits), NODE_DRAINED);
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_STAY);
	assert_non_null(strstr(why, "no other"));
	heartbeat(&nodes, "b:1", 0.99, START); /* slow, but there is another node */
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_LEAVE);
	assert_non_null(strstr(why, "drained"));
	node->drained = false;
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_NONE);
	nodes_free(&nodes, NULL);
}

static void test_loaded_lasts(void **state)
{
	struct nodes nodes = { 0 };
	struct migration_policy policy = policy_at(&nodes, START + 60 * SECOND);
	struct running_plan running = job("a:1(0-2)", 1e8);
	char why[MIGRATION_WHY_MAX];
	struct node *node = heartbeat(&nodes, "a:1", 0.95, policy.now);

	(void)state;
	heartbeat(&nodes, "b:1", 0, policy.now);
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_NONE);
	policy.now += MIGRATION_LASTED_NS - 1;
	heartbeat(&nodes, "a:1", 0.99, policy.now);
	heartbeat(&nodes, "b:1", 0, policy.now);
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_NONE);
	policy.now++;
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_LEAVE);
	assert_non_null(strstr(why, "others use 99 % of its cores"));
	/* If the load ends for a moment, its time counts from the start again. */
	heartbeat(&nodes, "a:1", 0.2, policy.now);
	heartbeat(&nodes, "a:1", 0.99, policy.now);
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_NONE);
	/* A new plan is left alone. */
	policy.now += MIGRATION_LASTED_NS;
	heartbeat(&nodes, "a:1", 0.99, policy.now);
	heartbeat(&nodes, "b:1", 0, policy.now);
	running.made_at = policy.now - MIGRATION_REST_NS + 1;
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_NONE);
	running.made_at--;
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_LEAVE);
	nodes_free(&nodes, NULL);
}

static void test_memory_counts(void **state)
{
	struct nodes nodes = { 0 };
	struct migration_policy policy = policy_at(&nodes, START + 60 * SECOND);
	struct running_plan running = job("a:1(0-2)", 1e8);
	struct node *node = heartbeat(&nodes, "a:1", 0, policy.now);
	char why[MIGRATION_WHY_MAX];

	(void)state;
	node->report.memory_used = 85;
	node_watch(node, policy.now - MIGRATION_LASTED_NS, &limits);
	heartbeat(&nodes, "b:1", 0, policy.now);
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_LEAVE);
	assert_non_null(strstr(why, "85 % of its memory"));
	nodes_free(&nodes, NULL);
}

/* If all other nodes are loaded too, or much slower, the job stays. */
static void test_worth_it(void **state)
{
	struct nodes nodes = { 0 };
	struct migration_policy policy = policy_at(&nodes, START + 60 * SECOND);
	struct running_plan running = job("a:1(0-2)", 1e8);
	struct node *node = heartbeat(&nodes, "a:1", 0.95, policy.now - MIGRATION_LASTED_NS),
		    *other;
	char why[MIGRATION_WHY_MAX];
	double third = 1e9 / 3; /* rate of three ranks with one star at a server */

	(void)state;
	heartbeat(&nodes, "a:1", 0.95, policy.now);
	other = heartbeat(&nodes, "b:1", 0.95, policy.now);
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_STAY);
	assert_non_null(strstr(why, "no other"));
	other = heartbeat(&nodes, "b:1", 0, policy.now);
	other->drained = true;
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_STAY);
	other->drained = false;
	running.rate_bps = third / MIGRATION_GAIN_MIN / MIGRATION_LOADED_RATE * 1.01;
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_STAY);
	assert_non_null(strstr(why, "slower"));
	running.rate_bps = third / MIGRATION_GAIN_MIN / MIGRATION_LOADED_RATE * 0.99;
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_LEAVE);
	running.rate_bps = 0; /* made by an earlier run of the controller */
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_LEAVE);
	nodes_free(&nodes, NULL);
}

/* The compared plan respects the limits of trees and children. */
static void test_limits_hold(void **state)
{
	struct nodes nodes = { 0 };
	struct migration_policy policy = policy_at(&nodes, START + 60 * SECOND);
	/* Without a there is a star at each of b and c: two thirds of 1 Gb/s, or one with a limit.
	 */
	struct running_plan running = job("a:1(0-2)", 1e9);
	struct node *node = heartbeat(&nodes, "a:1", 0.95, policy.now - MIGRATION_LASTED_NS);
	char why[MIGRATION_WHY_MAX];

	(void)state;
	heartbeat(&nodes, "a:1", 0.95, policy.now);
	heartbeat(&nodes, "b:1", 0, policy.now);
	heartbeat(&nodes, "c:1", 0, policy.now);
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_LEAVE);
	policy.trees = 1;
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_STAY);
	assert_non_null(strstr(why, "slower"));
	policy.trees = 2;
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_LEAVE);
	policy.children = 2; /* no stars then */
	assert_int_equal(migration_judge_node(&policy, &running, node, why), MIGRATION_STAY);
	nodes_free(&nodes, NULL);
}

/* Three ranks of which two have an aggregator beside them, and two servers; all of 1 Gb/s. */
static struct running_plan small_talk(struct nodes *nodes, const struct migration_policy *policy,
                                      char *plan)
{
	struct plan_verdict verdict;
	const struct planner planner = {
		.nodes = nodes, .limits = &limits, .now = policy->now, .verdict = &verdict
	};
	struct running_plan running = job("", 0);

	for (unsigned i = 1; i <= 4; i++) {
		char address[TREE_NAME_MAX];

		snprintf(address, sizeof(address), "10.%u.0.%u:7700", i <= 2 ? 1 : 2, i);
		heartbeat(nodes, address, 0, policy->now);
	}
	running.wish.broken = "";
	assert_int_equal(planner_plan(&planner, &running.wish, plan), TRIB_OK);
	running.plan = plan;
	running.rate_bps = verdict.rate_bps;
	running.since = policy->now - MIGRATION_REST_NS;
	running.share = 0.02;
	return running;
}

static void test_exit(void **state)
{
	struct nodes nodes = { 0 };
	struct migration_policy policy = policy_at(&nodes, START + 60 * SECOND);
	char plan[PLAN_TEXT_MAX], why[MIGRATION_WHY_MAX];
	struct running_plan running = small_talk(&nodes, &policy, plan);

	(void)state;
	assert_true(plan_has(plan, "10.2.0.3:7700"));
	assert_int_equal(migration_judge_servers(&policy, &running, why), MIGRATION_LEAVE);
	assert_non_null(strstr(why, "takes 2.0 % of a step"));
	assert_non_null(strstr(why, "not worth"));
	/* Not at once, not in a new plan, and not if switched off. */
	running.since++;
	assert_int_equal(migration_judge_servers(&policy, &running, why), MIGRATION_NONE);
	running.since = 0;
	assert_int_equal(migration_judge_servers(&policy, &running, why), MIGRATION_NONE);
	running.since = policy.now - MIGRATION_REST_NS;
	running.made_at = policy.now - MIGRATION_REST_NS + 1;
	assert_int_equal(migration_judge_servers(&policy, &running, why), MIGRATION_NONE);
	running.made_at = START;
	policy.exit_below = 0;
	assert_int_equal(migration_judge_servers(&policy, &running, why), MIGRATION_NONE);
	policy.exit_below = 0.1;
	/* Not if the share is unknown, or would be above the limit without servers. */
	running.share = -1;
	assert_int_equal(migration_judge_servers(&policy, &running, why), MIGRATION_NONE);
	running.share = 0.099;
	assert_int_equal(migration_judge_servers(&policy, &running, why), MIGRATION_NONE);
	/* Not again after it was wrong. */
	running.share = 0.02;
	running.tried_frugal = true;
	assert_int_equal(migration_judge_servers(&policy, &running, why), MIGRATION_NONE);
	nodes_free(&nodes, NULL);
}

/* No server to give up: the plan has none, or only one that it needs. */
static void test_nothing_to_give_up(void **state)
{
	struct nodes nodes = { 0 };
	struct migration_policy policy = policy_at(&nodes, START + 60 * SECOND);
	struct running_plan running = job("10.9.0.1:7700(0-2)", 3e8);
	char why[MIGRATION_WHY_MAX];

	(void)state;
	heartbeat(&nodes, "10.9.0.1:7700", 0, policy.now);
	running.share = 0.001;
	running.since = START;
	assert_int_equal(migration_judge_servers(&policy, &running, why), MIGRATION_NONE);
	heartbeat(&nodes, "10.1.0.2:7700", 0, policy.now);
	assert_int_equal(migration_judge_servers(&policy, &running, why), MIGRATION_LEAVE);
	running.plan = "10.1.0.2:7700(0-2)";
	assert_int_equal(migration_judge_servers(&policy, &running, why), MIGRATION_NONE);
	nodes_free(&nodes, NULL);
}

/* Communication takes much more than expected: servers come back, and stay. */
static void test_comes_back(void **state)
{
	struct nodes nodes = { 0 };
	struct migration_policy policy = policy_at(&nodes, START + 60 * SECOND);
	char plan[PLAN_TEXT_MAX], why[MIGRATION_WHY_MAX];
	struct running_plan running = small_talk(&nodes, &policy, plan);

	(void)state;
	running.wish.frugal = true;
	assert_int_equal(migration_judge_servers(&policy, &running, why), MIGRATION_NONE);
	running.share = 0.15; /* slightly above the limit */
	assert_int_equal(migration_judge_servers(&policy, &running, why), MIGRATION_NONE);
	running.share = 0.21;
	assert_int_equal(migration_judge_servers(&policy, &running, why), MIGRATION_LEAVE);
	assert_non_null(strstr(why, "are worth their use"));
	running.wish.frugal = false;
	running.tried_frugal = true;
	for (running.share = 0; running.share < 1; running.share += 0.01)
		assert_int_equal(migration_judge_servers(&policy, &running, why), MIGRATION_NONE);
	nodes_free(&nodes, NULL);
}

/* Two servers and three ranks, one of them with a measured slow link, which the plan considers. */
static struct running_plan slow_talk(struct nodes *nodes, const struct migration_policy *policy,
                                     char *plan)
{
	struct plan_verdict verdict;
	const struct planner planner = {
		.nodes = nodes, .limits = &limits, .now = policy->now, .verdict = &verdict
	};
	struct running_plan running = job("", 0);

	heartbeat(nodes, "a:1", 0, policy->now);
	heartbeat(nodes, "b:1", 0, policy->now);
	running.wish.broken = "";
	running.wish.measured[1] = 50e6;
	assert_int_equal(planner_plan(&planner, &running.wish, plan), TRIB_OK);
	running.plan = plan;
	running.rate_bps = verdict.rate_bps;
	running.links_changed_at = START + SECOND;
	return running;
}

/* The link was repaired: now other trees are faster. */
static void test_link_is_mended(void **state)
{
	struct nodes nodes = { 0 };
	struct migration_policy policy = policy_at(&nodes, START + 60 * SECOND);
	char plan[PLAN_TEXT_MAX], why[MIGRATION_WHY_MAX];
	struct running_plan running = slow_talk(&nodes, &policy, plan);

	(void)state;
	assert_true(running.rate_bps > 49e6 && running.rate_bps < 51e6);
	assert_string_equal(plan, "a:1(0-2)"); /* one star is enough for the slow link */
	assert_int_equal(migration_judge_links(&policy, &running, why), MIGRATION_STAY);
	running.wish.measured[1] = 0;
	assert_int_equal(migration_judge_links(&policy, &running, why), MIGRATION_LEAVE);
	assert_non_null(strstr(why, "333 Mb/s with its trees, 667 Mb/s with others"));
	/* A shared star changes nothing. */
	running.plan = "a:1(0-2)|c:1(0-2)";
	assert_int_equal(migration_judge_links(&policy, &running, why), MIGRATION_LEAVE);
	running.plan = "a:1(0-2)";
	/* Not within the limits that plans have, where the gain is too small, or with a loaded
	 * node. */
	policy.trees = 1;
	assert_int_equal(migration_judge_links(&policy, &running, why), MIGRATION_STAY);
	policy.trees = 0;
	running.wish.measured[1] = MIGRATION_GAIN_MIN * 1e9 / 3 - 1e6;
	assert_int_equal(migration_judge_links(&policy, &running, why), MIGRATION_STAY);
	running.wish.measured[1] = MIGRATION_GAIN_MIN * 1e9 / 3 + 1e6;
	assert_int_equal(migration_judge_links(&policy, &running, why), MIGRATION_LEAVE);
	heartbeat(&nodes, "b:1", 0.95, policy.now);
	assert_int_equal(migration_judge_links(&policy, &running, why), MIGRATION_STAY);
	heartbeat(&nodes, "b:1", 0, policy.now);
	/* Not at once, not in a new plan, not without news, nor where the plan is not of this run.
	 */
	running.links_changed_at = policy.now - MIGRATION_LASTED_NS + 1;
	assert_int_equal(migration_judge_links(&policy, &running, why), MIGRATION_NONE);
	running.links_changed_at--;
	assert_int_equal(migration_judge_links(&policy, &running, why), MIGRATION_LEAVE);
	running.made_at = policy.now - MIGRATION_REST_NS + 1;
	assert_int_equal(migration_judge_links(&policy, &running, why), MIGRATION_NONE);
	running.made_at = 0;
	assert_int_equal(migration_judge_links(&policy, &running, why), MIGRATION_NONE);
	running.made_at = START;
	running.links_changed_at = 0;
	assert_int_equal(migration_judge_links(&policy, &running, why), MIGRATION_NONE);
	/* Trees with a dead aggregator have no rate to compare with. */
	running.links_changed_at = START + SECOND;
	running.plan = "z:1(0-2)";
	assert_int_equal(migration_judge_links(&policy, &running, why), MIGRATION_STAY);
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
		char plan[PLAN_TEXT_MAX] = "", why[MIGRATION_WHY_MAX], names[6][TREE_NAME_MAX];
		struct plan_verdict verdict;
		uint64_t random = seed, made_at = START, moves = 0;
		double loads[6] = { 0 };

		for (uint64_t now = START; now < START + 600 * SECOND; now += SECOND / 2) {
			struct planner planner = { .nodes = &nodes,
				                   .limits = &limits,
				                   .now = now,
				                   .verdict = &verdict,
				                   .strict = false };
			struct migration_policy policy = policy_at(&nodes, now);
			struct running_plan running = job(plan, verdict.rate_bps);

			for (unsigned i = 0; i < 6; i++) {
				if (random_next(&random) % 40 == 0)
					loads[i] = (double)(random_next(&random) % 101) / 100;
				snprintf(names[i], sizeof(names[i]), "10.0.0.%u:7700", i + 1);
				heartbeat(&nodes, names[i], loads[i], now);
			}
			if (!*plan) {
				running.wish.broken = "";
				assert_int_equal(planner_plan(&planner, &running.wish, plan),
				                 TRIB_OK);
				made_at = now;
				continue;
			}
			running.made_at = made_at;
			for (unsigned i = 0; i < 6; i++) {
				struct node *node = nodes_find(&nodes, names[i]);

				if (migration_judge_node(&policy, &running, node, why) !=
				    MIGRATION_LEAVE)
					continue;
				assert_true(now - made_at >= MIGRATION_REST_NS);
				assert_true(now - node->loaded_since >= MIGRATION_LASTED_NS);
				running.wish.broken = "";
				assert_int_equal(planner_plan(&planner, &running.wish, plan),
				                 TRIB_OK);
				assert_false(plan_has(plan, names[i]));
				made_at = now;
				moves++;
				break;
			}
		}
		assert_true(moves <= 600 / (MIGRATION_REST_NS / SECOND));
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
		struct migration_policy policy = policy_at(&nodes, START + 60 * SECOND);
		struct planner planner = { .nodes = &nodes, .limits = &limits, .now = policy.now };
		struct running_plan running = job("", 0);
		char plan[PLAN_TEXT_MAX], why[MIGRATION_WHY_MAX], address[TREE_NAME_MAX];
		uint64_t random = seed;

		/* Aggregators beside ranks 0 and 1, or 1 only, and servers; links of 1 to 10 Gb/s.
		 */
		for (unsigned i = 0; i < 6; i++) {
			if (random_next(&random) % 3 == 0)
				continue;
			snprintf(address, sizeof(address), "10.%u.0.%u:7700", i < 2 ? 1 : 2, i + 1);
			heartbeat(&nodes, address, 0, policy.now)->report.link_bps =
				1000000000 * (1 + random_next(&random) % 10);
		}
		snprintf(address, sizeof(address), "10.2.0.9:7700");
		heartbeat(&nodes, address, 0, policy.now);
		running.wish.broken = "";
		assert_int_equal(planner_plan(&planner, &running.wish, plan), TRIB_OK);
		running.plan = plan;
		running.links_changed_at = START;
		running.wish.measured[2] = (double)(random_next(&random) % 1000 + 1) * 1e6;
		assert_int_equal(migration_judge_links(&policy, &running, why), MIGRATION_STAY);
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
