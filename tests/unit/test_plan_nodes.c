/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes a plan names, and which nodes are at an address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/policy/planner.h"

#include <stdio.h>
#include <string.h>

static void add(struct nodes *nodes, const char *address)
{
	struct node_report report = { .cores = 4, .memory = 100, .link_bps = 1000000000 };

	snprintf(report.address, sizeof(report.address), "%s", address);
	assert_non_null(nodes_heartbeat(nodes, &report, 0, NULL));
}

static void test_plan_has(void **state)
{
	(void)state;
	assert_true(plan_has("10.0.0.1:7700(0-3)", "10.0.0.1:7700"));
	assert_true(plan_has("0.5*a:1(0,b:1(1-2));0.5*c:1(0-2)", "a:1"));
	assert_true(plan_has("0.5*a:1(0,b:1(1-2));0.5*c:1(0-2)", "b:1"));
	assert_true(plan_has("0.5*a:1(0,b:1(1-2));c:1(0-2)", "c:1"));
	assert_true(plan_has("b:1(a:1(0))", "a:1"));
	assert_false(plan_has("110.0.0.1:7700(0-3)", "10.0.0.1:7700"));
	assert_false(plan_has("10.0.0.1:77001(0-3)", "10.0.0.1:7700"));
	assert_false(plan_has("", "10.0.0.1:7700"));
}

static void test_plan_node(void **state)
{
	static const char *const names[] = { "10.0.0.1:7700", "10.0.0.2:7700", "[fe80::1]:7700" };
	const char *plan =
		"0.5*10.0.0.2:7700(0,[fe80::1]:7700(1-2));0.5*9.9.9.9:1(0-2)|10.0.0.1:7700(0-2)";
	struct nodes nodes = { 0 };

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		add(&nodes, names[i]);
	assert_string_equal(plan_node(&nodes, &plan)->report.address, names[1]);
	assert_string_equal(plan_node(&nodes, &plan)->report.address, names[2]);
	assert_string_equal(plan_node(&nodes, &plan)->report.address, names[0]);
	assert_null(plan_node(&nodes, &plan));
	assert_string_equal(plan, "");
	assert_null(plan_node(&nodes, &plan));
	plan = "10.0.0.1:7700"; /* a prefix: not an aggregator of the tree */
	assert_null(plan_node(&nodes, &plan));
	nodes_free(&nodes, NULL);
}

/* Nodes at one address are adjacent; an address that is a prefix is not confused with it. */
static void test_nodes_at(void **state)
{
	static const char *const names[] = { "10.0.0.1:7700", "10.0.0.10:7700", "10.0.0.1:7800",
		                             "10.0.0.11:1",   "[fe80::1]:7700", "[fe80::12]:7700" };
	struct nodes nodes = { 0 };
	const char *where;
	unsigned n, first;

	(void)state;
	for (unsigned i = 0; i < 6; i++)
		add(&nodes, names[i]);
	first = nodes_at(&nodes, "10.0.0.1", &n);
	assert_int_equal(n, 2);
	assert_string_equal(nodes.all[first]->report.address, "10.0.0.1:7700");
	assert_string_equal(nodes.all[first + 1]->report.address, "10.0.0.1:7800");
	assert_int_equal(node_where(nodes.all[first], &where), 8);
	assert_memory_equal(where, "10.0.0.1", 8);
	first = nodes_at(&nodes, "fe80::1", &n);
	assert_int_equal(n, 1);
	assert_string_equal(nodes.all[first]->report.address, "[fe80::1]:7700");
	assert_int_equal(node_where(nodes.all[first], &where), 7);
	assert_memory_equal(where, "fe80::1", 7);
	nodes_at(&nodes, "10.0.0.2", &n);
	assert_int_equal(n, 0);
	nodes_at(&nodes, "", &n);
	assert_int_equal(n, 0);
	nodes_free(&nodes, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan_has),
		cmocka_unit_test(test_plan_node),
		cmocka_unit_test(test_nodes_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
