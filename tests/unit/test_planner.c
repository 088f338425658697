/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes live, and which trees the controller plans with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "control/policy/planner.h"
#include "short.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ull

static const struct node_limits limits = { .dead_after = 1000 * MS, .load = 0.9 };

static struct node *heartbeat(struct nodes *nodes, const char *address, double load, uint64_t now)
{
	struct node_report report = { .cores = 4, .memory = 100, .link_bps = 1000000000 };

	report.load = load;
	snprintf(report.address, sizeof(report.address), "%s", address);
	return nodes_heartbeat(nodes, &report, now, NULL);
}

/* Two seconds after the start. */
static struct planner planner_of(const struct nodes *nodes, struct plan_verdict *verdict)
{
	return (struct planner){
		.nodes = nodes, .limits = &limits, .now = 2000 * MS, .verdict = verdict
	};
}

static void test_finds_many(void **state)
{
	struct nodes nodes = { 0 };
	char text[TREE_NAME_MAX];
	unsigned n = 3000, seed = 7;

	(void)state;
	for (unsigned i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		snprintf(text, sizeof(text), "10.%u.%u.%u:7700", seed >> 24, i >> 8, i & 255);
		assert_non_null(heartbeat(&nodes, text, 0, 1));
	}
	assert_int_equal(nodes.n, n);
	for (unsigned i = 1; i < n; i++)
		assert_true(strcmp(nodes.all[i - 1]->report.address, nodes.all[i]->report.address) <
		            0);
	seed = 7;
	for (unsigned i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		snprintf(text, sizeof(text), "10.%u.%u.%u:7700", seed >> 24, i >> 8, i & 255);
		assert_string_equal(nodes_find(&nodes, text)->report.address, text);
	}
	assert_null(nodes_find(&nodes, "10.0.0.1:1"));
	for (unsigned i = n; i > n / 2; i--) {
		snprintf(text, sizeof(text), "%s", nodes.all[i * 2654435761u % i]->report.address);
		nodes_drop(&nodes, nodes_find(&nodes, text));
		assert_null(nodes_find(&nodes, text));
	}
	assert_int_equal(nodes.n, n / 2);
	nodes_free(&nodes, NULL);
}

static void test_states(void **state)
{
	struct nodes nodes = { 0 };
	struct node *node = nodes_add(&nodes, "a:1");

	(void)state;
	assert_int_equal(node_state(node, 5000 * MS, &limits), NODE_SILENT);
	heartbeat(&nodes, "a:1", 0.5, 5000 * MS);
	assert_int_equal(node_state(node, 5000 * MS, &limits), NODE_LIVE);
	assert_int_equal(node_state(node, 6000 * MS, &limits), NODE_LIVE);
	assert_int_equal(node_state(node, 6001 * MS, &limits), NODE_SILENT);
	heartbeat(&nodes, "a:1", 0.95, 7000 * MS);
	assert_int_equal(node_state(node, 7000 * MS, &limits), NODE_LOADED);
	heartbeat(&nodes, "a:1", 0.1, 7000 * MS);
	node->report.memory_used = 81;
	assert_int_equal(node_state(node, 7000 * MS, &limits), NODE_LOADED);
	node->left = true;
	assert_int_equal(node_state(node, 7000 * MS, &limits), NODE_LEFT);
	heartbeat(&nodes, "a:1", 0.1, 8000 * MS);
	assert_int_equal(node_state(node, 8000 * MS, &limits), NODE_LIVE);
	nodes_free(&nodes, NULL);
}

static void test_facts_change(void **state)
{
	struct node_report report = { .address = "a:1", .name = "a", .cores = 2 };
	struct nodes nodes = { 0 };
	bool facts;

	(void)state;
	assert_non_null(nodes_heartbeat(&nodes, &report, 1, &facts));
	assert_true(facts);
	report.load = 0.5;
	report.memory_used = 7;
	nodes_heartbeat(&nodes, &report, 2, &facts);
	assert_false(facts);
	report.incarnation++;
	nodes_heartbeat(&nodes, &report, 3, &facts);
	assert_true(facts);
	nodes_find(&nodes, "a:1")->left = true;
	nodes_heartbeat(&nodes, &report, 4, &facts);
	assert_true(facts);
	nodes_free(&nodes, NULL);
}

static struct plan_wish ring_wish(unsigned ranks)
{
	struct plan_wish wish = { .ranks = ranks, .broken = "", .rings = true };

	for (unsigned r = 0; r < ranks; r++)
		wish.seats[r] = (struct ring_seat){ .family = 4,
			                            .port = (uint16_t)(100 + r),
			                            .address = { 10, 0, 0, (uint8_t)r },
			                            .payload = 1448 };
	return wish;
}

/* Ranks sum around a ring only if there is no aggregator at all. The last error says why. */
static void test_rings_without_nodes(void **state)
{
	struct plan_verdict verdict = { .trees = 7 };
	struct nodes nodes = { 0 };
	struct planner planner = planner_of(&nodes, &verdict);
	struct plan_wish wish = ring_wish(3);
	char plan[PLAN_TEXT_MAX];
	struct node *node;

	(void)state;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_string_equal(plan, "ring(10.0.0.0:100/1448,10.0.0.1:101/1448,10.0.0.2:102/1448)");
	assert_int_equal(verdict.trees, 0);
	assert_non_null(strstr(trib_last_error(), "of 0 that"));
	node = heartbeat(&nodes, "10.0.0.9:7700", 0, 1900 * MS);
	node->drained = true;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(ring_seats_are(plan));
	assert_non_null(strstr(trib_last_error(), "drained"));
	node->drained = false;
	node->report.capacity = 1; /* for turns only, and there are no own trees */
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(ring_seats_are(plan));
	assert_null(strchr(plan, '|'));
	node->report.capacity = 0;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_false(ring_seats_are(plan));
	assert_true(plan_has(plan, "10.0.0.9:7700"));
	nodes_free(&nodes, NULL);
}

static void test_plans_with_the_living(void **state)
{
	struct nodes nodes = { 0 };
	struct planner planner = planner_of(&nodes, NULL);
	struct plan_wish wish = { .ranks = 3, .broken = "" };
	char plan[PLAN_TEXT_MAX];
	struct forest *forest = malloc(sizeof(*forest));

	(void)state;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_ERR_AGGREGATOR);
	heartbeat(&nodes, "10.0.0.1:7700", 0, 500 * MS); /* silent */
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_ERR_AGGREGATOR);
	assert_non_null(strstr(trib_last_error(), "of 1 that"));
	heartbeat(&nodes, "10.0.0.2:7700", 0.99, 1900 * MS); /* loaded, but the only node */
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(plan_has(plan, "10.0.0.2:7700"));
	heartbeat(&nodes, "10.0.0.3:7700", 0, 1900 * MS);
	heartbeat(&nodes, "10.0.0.4:7700", 0, 1900 * MS);
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_int_equal(forest_parse(forest, plan), TRIB_OK);
	assert_int_equal(forest->trees[0].nodes[0].ranks, 7);
	assert_false(plan_has(plan, "10.0.0.1:7700"));
	assert_false(plan_has(plan, "10.0.0.2:7700"));
	assert_true(plan_has(plan, "10.0.0.3:7700"));
	nodes_free(&nodes, NULL);
	free(forest);
}

/* XAgg §V: used + model <= 80 % of the memory. The model is the pool that ranks ask for. */
static void test_memory_for_the_pool(void **state)
{
	struct nodes nodes = { 0 };
	struct planner planner = planner_of(&nodes, NULL);
	struct plan_wish wish = { .ranks = 3, .broken = "", .pool_bytes = 30 };
	struct node *a = heartbeat(&nodes, "a:1", 0, planner.now);
	struct node *b = heartbeat(&nodes, "b:1", 0, planner.now);
	char plan[PLAN_TEXT_MAX];

	(void)state;
	a->report.memory_used = 50; /* of 100 */
	b->report.memory_used = 51;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(plan_has(plan, "a:1"));
	assert_false(plan_has(plan, "b:1"));
	/* A loaded node with free memory is better than a node without. */
	heartbeat(&nodes, "c:1", 0.99, planner.now);
	a->report.memory_used = 51;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_string_equal(plan, "c:1(0-2)");
	nodes_drop(&nodes, nodes_find(&nodes, "c:1"));
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_ERR_AGGREGATOR);
	assert_non_null(strstr(trib_last_error(), "2 aggregators are alive but have no memory"));
	/* An aggregator that has the pool now has room for the next pool. */
	wish.holds = "b:1(0-2)";
	b->report.memory_used = 80;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_string_equal(plan, "b:1(0-2)");
	b->report.memory_used = 81;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_ERR_AGGREGATOR);
	wish.pool_bytes = UINT64_MAX;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_ERR_AGGREGATOR);
	wish.pool_bytes = 0; /* unknown */
	a->report.memory_used = 80;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	nodes_free(&nodes, NULL);
}

/* The limit of children holds as long as enough aggregators live. */
static void test_small_families(void **state)
{
	struct nodes nodes = { 0 };
	struct planner planner = {
		.nodes = &nodes, .limits = &limits, .now = 2000 * MS, .children = 2, .trees = 1
	};
	struct plan_wish wish = { .ranks = 4, .broken = "" };
	struct forest *forest = malloc(sizeof(*forest));
	char plan[PLAN_TEXT_MAX];

	(void)state;
	heartbeat(&nodes, "10.0.0.1:7700", 0, 1900 * MS);
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_string_equal(plan, "10.0.0.1:7700(0-3)");
	heartbeat(&nodes, "10.0.0.2:7700", 0, 1900 * MS);
	heartbeat(&nodes, "10.0.0.3:7700", 0, 1900 * MS);
	heartbeat(&nodes, "10.0.0.4:7700", 0, 1900 * MS);
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_int_equal(forest_parse(forest, plan), TRIB_OK);
	assert_int_equal(forest->n_trees, 1);
	assert_int_equal(forest->trees[0].n_nodes, 3);
	nodes_free(&nodes, NULL);
	free(forest);
}

/* XAgg §V: ranks with similar rounds get the same aggregator. */
static void test_alike_ranks(void **state)
{
	struct nodes nodes = { 0 };
	struct planner planner = {
		.nodes = &nodes, .limits = &limits, .now = 2000 * MS, .children = 2, .trees = 1
	};
	struct plan_wish wish = { .ranks = 4,
		                  .broken = "",
		                  .where = { "10.0.1.1", "10.0.1.2", "10.0.1.3", "10.0.1.4" },
		                  .round = { 0.2, 0.9, 0.25, 0.8 } };
	struct forest *forest = malloc(sizeof(*forest));
	char plan[PLAN_TEXT_MAX];

	(void)state;
	heartbeat(&nodes, "10.0.0.1:7700", 0, 1900 * MS);
	heartbeat(&nodes, "10.0.0.2:7700", 0, 1900 * MS);
	heartbeat(&nodes, "10.0.0.3:7700", 0, 1900 * MS);
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_int_equal(forest_parse(forest, plan), TRIB_OK);
	assert_int_equal(forest->trees[0].n_nodes, 3);
	for (unsigned i = 1; i < 3; i++)
		assert_true(forest->trees[0].nodes[i].ranks == (1 | 4) ||
		            forest->trees[0].nodes[i].ranks == (2 | 8));
	nodes_free(&nodes, NULL);
	free(forest);
}

/* A measured rate below the claimed one counts, in each direction. */
static void test_links_as_seen(void **state)
{
	struct nodes nodes = { 0 };
	struct plan_verdict verdict;
	struct planner planner = planner_of(&nodes, &verdict);
	struct plan_wish wish = { .ranks = 3,
		                  .broken = "",
		                  .where = { "10.0.0.1", "10.0.0.2", "10.0.0.3" } };
	char plan[PLAN_TEXT_MAX];
	struct node *slow;

	(void)state;
	heartbeat(&nodes, "10.0.0.1:7700", 0, 1900 * MS);
	heartbeat(&nodes, "10.0.0.2:7700", 0, 1900 * MS);
	slow = heartbeat(&nodes, "10.0.0.3:7700", 0, 1900 * MS);
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(plan_has(plan, slow->report.address) && verdict.rate_bps > 700e6);
	slow->out_bps = 200e6;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(!plan_has(plan, slow->report.address) && verdict.rate_bps > 199e6 &&
	            verdict.rate_bps < 201e6);
	slow->out_bps = 0, slow->in_bps = 100e6;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(!plan_has(plan, slow->report.address) && verdict.rate_bps < 101e6);
	nodes_free(&nodes, NULL);
}

/* Random loads and links: no tree occurs twice, and each tree has all ranks. */
static void test_trees_differ(void **state)
{
	struct forest *forest = malloc(sizeof(*forest));
	struct nodes nodes = { 0 };
	struct planner planner = planner_of(&nodes, NULL);
	struct plan_wish wish = { .ranks = 3,
		                  .broken = "",
		                  .where = { "127.0.0.1", "127.0.0.1", "10.0.0.7" } };
	char plan[PLAN_TEXT_MAX];

	(void)state;
	for (unsigned load = 0; load < 90; load++) {
		heartbeat(&nodes, "127.0.0.1:7700", load / 100.0, 1900 * MS);
		heartbeat(&nodes, "127.0.0.1:7720", 0.89, 1900 * MS);
		heartbeat(&nodes, "[fe80::1]:7720", 0.3, 1900 * MS);
		assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
		assert_int_equal(forest_parse(forest, plan), TRIB_OK);
		assert_int_equal(forest->trees[0].nodes[0].ranks, 7);
		for (unsigned i = 0; i < forest->n_trees; i++)
			for (unsigned k = 0; k < i; k++)
				assert_true(forest->trees[i].n_nodes != forest->trees[k].n_nodes ||
				            memcmp(forest->trees[i].nodes, forest->trees[k].nodes,
				                   forest->trees[i].n_nodes *
				                           sizeof(struct tree_node)));
	}
	nodes_free(&nodes, NULL);
	free(forest);
}

/* An aggregator of a broken plan must answer before it is used again. */
static void test_suspects(void **state)
{
	struct nodes nodes = { 0 };
	struct planner planner = planner_of(&nodes, NULL);
	struct plan_wish wish = { .ranks = 2,
		                  .broken = "0.5*a:1(0-1);0.5*b:1(0-1)",
		                  .since = 2000 * MS };
	char plan[PLAN_TEXT_MAX];

	(void)state;
	heartbeat(&nodes, "a:1", 0, 1990 * MS);
	heartbeat(&nodes, "b:1", 0, 1990 * MS);
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_IN_PROGRESS);
	nodes_find(&nodes, "b:1")->confirmed_at = 2010 * MS;
	planner.now = 2020 * MS;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_IN_PROGRESS);
	planner.now = 2500 * MS;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_false(plan_has(plan, "a:1"));
	assert_true(plan_has(plan, "b:1"));
	nodes_find(&nodes, "a:1")->confirmed_at = 2400 * MS;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(plan_has(plan, "a:1"));
	nodes_free(&nodes, NULL);
}

/* Ranks at one address share a link, and so do aggregators. */
static void test_links_are_shared(void **state)
{
	struct nodes nodes = { 0 };
	struct plan_verdict verdict;
	struct planner planner = planner_of(&nodes, &verdict);
	struct plan_wish wish = { .ranks = 4, .broken = "" };
	char plan[PLAN_TEXT_MAX];
	double apart;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		char address[TREE_NAME_MAX];

		snprintf(address, sizeof(address), "10.0.1.%u:7700", i);
		heartbeat(&nodes, address, 0, 1900 * MS);
	}
	wish.where[0] = "10.0.0.1", wish.where[1] = "10.0.0.2";
	wish.where[2] = "10.0.0.3", wish.where[3] = "10.0.0.4";
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	apart = verdict.bound_bps;
	wish.where[1] = "10.0.0.1"; /* two processes on one machine */
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(verdict.bound_bps > apart * 0.49 && verdict.bound_bps < apart * 0.51);
	wish.where[2] = "10.0.0.1";
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(verdict.bound_bps > apart * 0.32 && verdict.bound_bps < apart * 0.34);
	/* Ranks with unknown addresses do not share a link. */
	wish.where[0] = wish.where[1] = "";
	wish.where[2] = NULL;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(verdict.bound_bps > apart * 0.99 && verdict.bound_bps < apart * 1.01);
	nodes_free(&nodes, NULL);
}

/* Two servers at one address are no faster than one. */
static void test_servers_share(void **state)
{
	struct nodes nodes = { 0 };
	struct plan_verdict verdict;
	struct planner planner = planner_of(&nodes, &verdict);
	struct plan_wish wish = { .ranks = 4, .broken = "" };
	char plan[PLAN_TEXT_MAX];
	double one;

	(void)state;
	heartbeat(&nodes, "10.0.0.9:7700", 0, 1900 * MS);
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	one = verdict.rate_bps;
	heartbeat(&nodes, "10.0.0.9:7720", 0, 1900 * MS);
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(verdict.rate_bps < one * 1.01);
	heartbeat(&nodes, "10.0.0.10:7700", 0, 1900 * MS);
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(verdict.rate_bps > one * 1.9);
	nodes_free(&nodes, NULL);
}

/* A switch has a port for each neighbour. */
static void test_switch(void **state)
{
	struct nodes nodes = { 0 };
	struct plan_verdict verdict;
	struct planner planner = planner_of(&nodes, &verdict);
	struct plan_wish wish = { .ranks = 4, .broken = "" };
	char plan[PLAN_TEXT_MAX];
	struct node *node = heartbeat(&nodes, "10.0.0.9:7700", 0, 1900 * MS);

	(void)state;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(verdict.rate_bps < 0.26e9);
	node->report.is_switch = 1;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(verdict.rate_bps > 0.99e9);
	nodes_free(&nodes, NULL);
}

/* A frugal plan uses the ranks' machines, or else a single star. */
static void test_frugal(void **state)
{
	struct forest *forest = malloc(sizeof(*forest));
	struct nodes nodes = { 0 };
	struct plan_verdict verdict;
	struct planner planner = planner_of(&nodes, &verdict);
	struct plan_wish wish = { .ranks = 3,
		                  .broken = "",
		                  .where = { "10.0.0.1", "10.0.0.2", "10.0.0.3" } };
	char plan[PLAN_TEXT_MAX];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		char address[TREE_NAME_MAX];

		snprintf(address, sizeof(address), "10.0.1.%u:7700", i);
		heartbeat(&nodes, address, 0, 1900 * MS);
	}
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(verdict.aggregators > 1);
	wish.frugal = true;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_int_equal(forest_parse(forest, plan), TRIB_OK);
	assert_int_equal(forest->n_trees, 1);
	assert_int_equal(forest->trees[0].n_nodes, 1);
	heartbeat(&nodes, "10.0.0.2:7700", 0, 1900 * MS);
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_string_equal(plan, "10.0.0.2:7700(0-2)");
	/* A loaded node of a rank is the last resort, after free servers. */
	heartbeat(&nodes, "10.0.0.2:7700", 0.95, 1900 * MS);
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_false(plan_has(plan, "10.0.0.2:7700"));
	nodes_free(&nodes, NULL);
	free(forest);
}

/* A measured slow link limits the plan. */
static void test_measured(void **state)
{
	struct nodes nodes = { 0 };
	struct plan_verdict verdict;
	struct planner planner = planner_of(&nodes, &verdict);
	struct plan_wish wish = { .ranks = 2, .broken = "", .where = { "10.0.0.1", "10.0.0.2" } };
	char plan[PLAN_TEXT_MAX];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		char address[TREE_NAME_MAX];

		snprintf(address, sizeof(address), "10.0.1.%u:7700", i);
		heartbeat(&nodes, address, 0, 1900 * MS);
	}
	wish.measured[1] = 230e6;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(verdict.bound_bps > 229e6 && verdict.bound_bps < 231e6);
	wish.measured[1] = 5e9; /* above the claimed rate: ignored */
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(verdict.bound_bps > 0.99e9);
	nodes_free(&nodes, NULL);
}

static void test_drained_are_left_out(void **state)
{
	struct nodes nodes = { 0 };
	struct planner planner = planner_of(&nodes, NULL);
	struct plan_wish wish = { .ranks = 2, .broken = "" };
	char plan[PLAN_TEXT_MAX];
	struct node *node = heartbeat(&nodes, "10.0.0.1:7700", 0, 1900 * MS);

	(void)state;
	node->drained = true;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_ERR_AGGREGATOR);
	assert_non_null(strstr(trib_last_error(), "1 more is alive but drained"));
	heartbeat(&nodes, "10.0.0.2:7700", 0.95, 1900 * MS); /* loaded is better than drained */
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_string_equal(plan, "10.0.0.2:7700(0-1)");
	planner.strict = true;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_ERR_AGGREGATOR);
	heartbeat(&nodes, "10.0.0.1:7700", 0, 1900 * MS); /* a heartbeat does not end draining */
	assert_int_equal(node_state(node, 1900 * MS, &limits), NODE_DRAINED);
	nodes_free(&nodes, NULL);
}

static struct node *beat_on(struct nodes *nodes, const char *address, const char *plane)
{
	struct node *node = heartbeat(nodes, address, 0, 1900 * MS);

	snprintf(node->report.plane, sizeof(node->report.plane), "%s", plane);
	snprintf(node->report.name, sizeof(node->report.name), "%s-node", plane);
	return node;
}

/* Ranks get aggregators on their own plane; UDP and XDP count as one. */
static void test_planes_are_apart(void **state)
{
	struct nodes nodes = { 0 };
	struct planner planner = planner_of(&nodes, NULL);
	struct plan_wish wish = { .ranks = 3,
		                  .broken = "",
		                  .where = { "10.0.0.1", "10.0.0.2", "10.0.0.3" } };
	char plan[PLAN_TEXT_MAX];
	struct node *tcp = beat_on(&nodes, "10.0.0.1:7700", "tcp"), *shared;

	(void)state;
	/* No aggregator on that plane: the error names the planes and a node. */
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_ERR_AGGREGATOR);
	assert_non_null(
		strstr(trib_last_error(), "plane (udp), but 1 on another (tcp-node is on tcp):"));
	assert_non_null(strstr(trib_last_error(), "TRIB_PLANE=tcp"));
	wish.tcp = 7;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_string_equal(plan, "10.0.0.1:7700(0-2)");

	beat_on(&nodes, "10.0.0.2:7700", "udp");
	beat_on(&nodes, "10.0.0.9:7700", "xdp");
	shared = beat_on(&nodes, "10.0.0.8:7700", "tcp");
	shared->report.capacity = 1;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_string_equal(plan, "10.0.0.1:7700(0-2)|10.0.0.8:7700(0-2)");
	wish.tcp = 0;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(plan_has(plan, "10.0.0.2:7700") && plan_has(plan, "10.0.0.9:7700"));
	assert_false(plan_has(plan, "10.0.0.1:7700") || plan_has(plan, "10.0.0.8:7700"));

	/* A suspected node on another plane is not awaited. */
	wish.tcp = 7;
	wish.broken = "10.0.0.2:7700(0-2)";
	wish.since = 1950 * MS;
	tcp->confirmed_at = shared->confirmed_at = wish.since;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	tcp->drained = true;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_ERR_AGGREGATOR);
	assert_non_null(
		strstr(trib_last_error(), "plane (tcp), but 2 on another (udp-node is on udp)"));
	assert_non_null(strstr(trib_last_error(), "1 more is alive but drained"));
	tcp->drained = false;

	wish.tcp = 5; /* some of the ranks */
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_ERR_CONFIG);
	assert_non_null(strstr(trib_last_error(), "rank 0 is on the TCP plane and rank 1 is not"));
	nodes_free(&nodes, NULL);
}

static unsigned take_last(void *context, const struct plan_wish *wish,
                          const struct node *const *nodes, unsigned n)
{
	(void)wish;
	(void)nodes;
	return *(unsigned *)context < n ? n - 1 : n;
}

/* Hosts of other jobs are not used; and the `root` function chooses the shared star. */
static void test_others_hosts(void **state)
{
	struct nodes nodes = { 0 };
	unsigned asks = 0;
	struct planner planner = { .nodes = &nodes,
		                   .limits = &limits,
		                   .now = 2000 * MS,
		                   .root = take_last,
		                   .context = &asks };
	struct plan_wish wish = { .ranks = 3,
		                  .broken = "",
		                  .where = { "10.0.0.1", "10.0.0.2", "10.0.0.4" } };
	char plan[PLAN_TEXT_MAX], shared[TREE_NAME_MAX];

	(void)state;
	for (unsigned i = 1; i <= 3; i++) {
		char address[TREE_NAME_MAX];

		snprintf(address, sizeof(address), "10.0.0.%u:7700", i + (i == 1 ? 8 : 0));
		strcpy(heartbeat(&nodes, address, 0, 1900 * MS)->report.rack, "a");
	}
	/* A rank's own host, 10.0.0.2, but not those of another job, 10.0.0.3 and 10.0.0.9. */
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_string_equal(plan, "10.0.0.2:7700(0-2)");
	/* A server runs no ranks. */
	heartbeat(&nodes, "10.0.1.1:7700", 0, 1900 * MS);
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(plan_has(plan, "10.0.1.1:7700"));
	assert_false(plan_has(plan, "10.0.0.3:7700") || plan_has(plan, "10.0.0.9:7700"));
	/* If there is nothing else, hosts of other jobs are better than none. */
	nodes_drop(&nodes, nodes_find(&nodes, "10.0.1.1:7700"));
	nodes_drop(&nodes, nodes_find(&nodes, "10.0.0.2:7700"));
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_true(plan_has(plan, "10.0.0.3:7700") || plan_has(plan, "10.0.0.9:7700"));
	/* With a shared star, no server is used besides. */
	heartbeat(&nodes, "10.0.0.2:7700", 0, 1900 * MS);
	heartbeat(&nodes, "10.0.1.1:7700", 0, 1900 * MS);
	heartbeat(&nodes, "10.0.2.1:7700", 0, 1900 * MS)->report.capacity = 1;
	heartbeat(&nodes, "10.0.2.2:7700", 0, 1900 * MS)->report.capacity = 1;
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_string_equal(plan, "10.0.0.2:7700(0-2)|10.0.2.2:7700(0-2)");
	assert_true(plan_shared(plan, shared));
	assert_string_equal(shared, "10.0.2.2:7700");
	asks = UINT32_MAX; /* no shared star for this job */
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	assert_false(plan_shared(plan, shared));
	assert_true(plan_has(plan, "10.0.1.1:7700"));
	nodes_free(&nodes, NULL);
}

/*
 * 64 ranks and 40 different servers with few children each: the plan is longer than a packet, and
 * still fast.
 */
static void test_long_plan(void **state)
{
	struct nodes nodes = { 0 };
	struct plan_verdict verdict;
	struct planner planner = { .nodes = &nodes,
		                   .limits = &limits,
		                   .now = 2000 * MS,
		                   .verdict = &verdict,
		                   .children = 5 };
	struct plan_wish wish = { .ranks = TREE_RANKS_MAX, .broken = "" };
	struct forest *forest = malloc(sizeof(*forest));
	static char plan[PLAN_TEXT_MAX], address[TREE_NAME_MAX];

	(void)state;
	for (unsigned i = 1; i <= 40; i++) {
		struct node *node;

		snprintf(address, sizeof(address), "10.0.0.%u:7700", i);
		node = heartbeat(&nodes, address, 0, 1900 * MS);
		node->report.link_bps = (uint64_t)((1 + i % 7) * 1e9);
	}
	assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
	print_message("%zu bytes, %u trees, %.4f of the bound\n", strlen(plan), verdict.trees,
	              verdict.rate_bps / verdict.bound_bps);
	assert_true(strlen(plan) > WIRE_PLAN_PART);
	assert_true(verdict.rate_bps > 0.97 * verdict.bound_bps);
	assert_int_equal(forest_parse(forest, plan), TRIB_OK);
	free(forest);
	nodes_free(&nodes, NULL);
}

/* A job with many trees still has room for a shared star. */
static void test_most_trees_and_one(void **state)
{
	struct nodes nodes = { 0 };
	unsigned asks = 0, most = 0, step = test_is_short() ? 19 : 1;
	struct planner planner = { .nodes = &nodes,
		                   .limits = &limits,
		                   .now = 2000 * MS,
		                   .root = take_last,
		                   .context = &asks };
	struct plan_wish wish = { .ranks = 40, .broken = "" };
	struct forest *forest = malloc(sizeof(*forest));
	static char plan[PLAN_TEXT_MAX], where[40][WHERE_MAX], shared[TREE_NAME_MAX];

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		snprintf(where[i], sizeof(where[i]), "10.0.0.%u", i + 1);
		snprintf(shared, sizeof(shared), "10.0.0.%u:7700", i + 1);
		wish.where[i] = where[i];
		heartbeat(&nodes, shared, 0, 1900 * MS)->report.link_bps =
			(10 + i % 3) * 1000000000ull;
	}
	heartbeat(&nodes, "10.0.2.1:7700", 0, 1900 * MS)->report.capacity = 1;
	for (planner.children = 2; planner.children <= 40; planner.children += step) {
		assert_int_equal(planner_plan(&planner, &wish, plan), TRIB_OK);
		assert_true(plan_shared(plan, shared));
		assert_string_equal(shared, "10.0.2.1:7700");
		*strchr(plan, '|') = ';';
		assert_int_equal(forest_parse(forest, plan), TRIB_OK);
		most = forest->n_trees > most ? forest->n_trees : most;
	}
	assert_true(most > 16); /* more than are made if few suffice */
	free(forest);
	nodes_free(&nodes, NULL);
}

/* A node is silent if it was asked, but neither heartbeats nor answers came for long. */
static void test_doubts(void **state)
{
	struct nodes nodes = { 0 };
	struct node *node = nodes_add(&nodes, "10.0.0.1:7700");
	bool ask;

	(void)state;
	assert_false(
		node_suspect(node, 100000 * MS, &ask)); /* it has not been heard of at all yet */
	assert_false(ask);
	heartbeat(&nodes, "10.0.0.1:7700", 0, 1000 * MS);
	assert_false(node_suspect(node, 1999 * MS, &ask));
	assert_false(ask);
	assert_false(node_suspect(node, 2200 * MS, &ask)); /* suspicion begins */
	assert_true(ask);
	assert_false(node_suspect(node, 2599 * MS, &ask));
	assert_true(node_suspect(node, 2600 * MS, &ask));
	assert_true(node_suspect(node, 9000 * MS, &ask));
	/* An answer or a heartbeat resets the suspicion. */
	node->confirmed_at = 9001 * MS;
	assert_false(node_suspect(node, 9500 * MS, &ask));
	assert_false(node_suspect(node, 10001 * MS, &ask));
	assert_false(
		node_suspect(node, 10401 * MS,
	                     &ask)); /* queried for long enough, but not silent for long enough */
	assert_true(node_suspect(node, 10501 * MS, &ask));
	heartbeat(&nodes, "10.0.0.1:7700", 0, 10502 * MS);
	assert_false(node_suspect(node, 20000 * MS, &ask)); /* the first who asks for long */
	assert_false(node_suspect(node, 20399 * MS, &ask));
	assert_true(node_suspect(node, 20400 * MS, &ask));
	nodes_free(&nodes, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_many),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_facts_change),
		cmocka_unit_test(test_rings_without_nodes),
		cmocka_unit_test(test_plans_with_the_living),
		cmocka_unit_test(test_memory_for_the_pool),
		cmocka_unit_test(test_small_families),
		cmocka_unit_test(test_alike_ranks),
		cmocka_unit_test(test_links_as_seen),
		cmocka_unit_test(test_trees_differ),
		cmocka_unit_test(test_suspects),
		cmocka_unit_test(test_others_hosts),
		cmocka_unit_test(test_long_plan),
		cmocka_unit_test(test_most_trees_and_one),
		cmocka_unit_test(test_doubts),
		cmocka_unit_test(test_links_are_shared),
		cmocka_unit_test(test_servers_share),
		cmocka_unit_test(test_switch),
		cmocka_unit_test(test_frugal),
		cmocka_unit_test(test_measured),
		cmocka_unit_test(test_drained_are_left_out),
		cmocka_unit_test(test_planes_are_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
