/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a leaf-spine fabric. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "net/cluster_plan.h"
#include "net/fabric_plan.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static struct cluster cluster;

static trib_status make(unsigned workers, unsigned servers, unsigned leafs, unsigned spines)
{
	struct cluster_options options = {
		.name = "a",
		.workers = workers,
		.servers = servers,
		.fabric = { .leafs = leafs, .spines = spines, .core_bps = 5000000 }
	};

	return plan_make(&options, 7, &cluster);
}

static void hosts_are_dealt_in_blocks(void **state)
{
	static const unsigned leafs[] = { 1, 1, 2, 2, 3, 1, 2 }; /* 5 workers, 2 servers */

	(void)state;
	assert_int_equal(make(5, 2, 3, 2), TRIB_OK);
	for (unsigned i = 0; i < cluster.n; i++)
		assert_int_equal(cluster.hosts[i].leaf, leafs[i]);
	assert_int_equal(make(1, 0, 4, 1), TRIB_OK); /* leafs without hosts */
	assert_int_equal(cluster.hosts[0].leaf, 1);
}

static void wrong_options_are_refused(void **state)
{
	struct cluster_options options = { .name = "a", .workers = 2, .servers = 1 };

	(void)state;
	assert_int_equal(make(2, 1, 2, 0), TRIB_ERR_ARGUMENT);
	assert_int_equal(make(2, 1, 0, 2), TRIB_ERR_ARGUMENT);
	assert_int_equal(make(2, 1, CLUSTER_LEAFS_MAX + 1, 2), TRIB_ERR_ARGUMENT);
	assert_int_equal(make(2, 1, 2, CLUSTER_SPINES_MAX + 1), TRIB_ERR_ARGUMENT);
	assert_int_equal(make(2, 1, UINT32_MAX, UINT32_MAX), TRIB_ERR_ARGUMENT);
	options.fabric.is_static = true;
	assert_int_equal(plan_make(&options, 7, &cluster), TRIB_ERR_ARGUMENT);
	options.fabric.leafs = options.fabric.spines = 2;
	assert_int_equal(plan_make(&options, 7, &cluster), TRIB_OK);
	options.fabric.paths = CLUSTER_PATHS_MAX + 1;
	assert_int_equal(plan_make(&options, 7, &cluster), TRIB_ERR_ARGUMENT);
	options.fabric.paths = 1;
	options.fabric.core_bps = 1;
	assert_int_equal(plan_make(&options, 7, &cluster), TRIB_ERR_ARGUMENT);
	options.fabric.core_bps = 0;
	assert_int_equal(plan_make(&options, 7, &cluster), TRIB_OK);
	options.is_switch = true;
	assert_int_equal(plan_make(&options, 7, &cluster), TRIB_ERR_ARGUMENT);
}

static void links_are_found_by_their_names(void **state)
{
	char name[CLUSTER_LINK_NAME_BYTES];
	unsigned found, leaf, spine;

	(void)state;
	assert_int_equal(make(4, 1, 2, 4), TRIB_OK);
	assert_int_equal(cluster_links(&cluster), 5 + 8);
	for (unsigned link = 0; link < cluster_links(&cluster); link++) {
		cluster_link_name(&cluster, link, name);
		assert_int_equal(cluster_link_find(&cluster, name, &found), TRIB_OK);
		assert_int_equal(found, link);
		assert_int_equal(fabric_is_core(&cluster, link, &leaf, &spine), link >= 5);
		assert_int_equal(cluster_link_rate(&cluster, link), link < 5 ? 0 : 5000000);
	}
	assert_int_equal(cluster_link_find(&cluster, "leaf2-spine3", &found), TRIB_OK);
	assert_int_equal(found, 5 + 4 + 2);
	assert_int_equal(cluster_link_find(&cluster, "leaf2-spine5", &found), TRIB_ERR_ARGUMENT);
	assert_non_null(strstr(trib_last_error(), "leaf1-spine1 to leaf2-spine4"));
	cluster.changes[found].slow_bps = 9000;
	assert_int_equal(cluster_link_rate(&cluster, found), 9000);
}

/* Every address in a fabric is for one thing, and so is every MAC address of a router. */
static void addresses_are_distinct(void **state)
{
	static uint32_t all[4096];
	static struct link_end ends[2 * CLUSTER_LEAFS_MAX * CLUSTER_SPINES_MAX];
	char text[40];
	unsigned n = 0, n_ends = 0;

	(void)state;
	assert_int_equal(make(99, 29, CLUSTER_LEAFS_MAX, CLUSTER_SPINES_MAX), TRIB_OK);
	for (unsigned i = 0; i < cluster.n; i++)
		for (unsigned k = 0; k <= cluster.fabric.paths; k++)
			all[n++] = fabric_host_address(&cluster, i, k);
	for (unsigned i = 1; i <= CLUSTER_LEAFS_MAX; i++)
		all[n++] = fabric_leaf_address(&cluster, i);
	for (unsigned i = 1; i <= CLUSTER_SPINES_MAX; i++)
		all[n++] = fabric_spine_address(&cluster, i);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(all[i], all[k]);
	for (unsigned i = 1; i <= CLUSTER_LEAFS_MAX; i++)
		for (unsigned k = 1; k <= CLUSTER_SPINES_MAX; k++) {
			fabric_leaf_end(&cluster, i, k, &ends[n_ends++]);
			fabric_spine_end(&cluster, i, k, &ends[n_ends++]);
		}
	for (unsigned i = 0; i < n_ends; i++)
		for (unsigned k = 0; k < i; k++)
			assert_memory_not_equal(ends[i].mac, ends[k].mac, LINK_MAC_BYTES);
	cluster_alias(&cluster, 1, 3, text);
	assert_string_equal(text, "10.87.7.2");
	assert_int_equal(fabric_host_address(&cluster, 1, 0), inet_addr(cluster.hosts[1].address));
	assert_int_equal(fabric_alias_network(&cluster, 3), inet_addr("10.87.7.0"));
}

static void a_link_that_is_down_leads_nowhere(void **state)
{
	unsigned link;

	(void)state;
	assert_int_equal(make(3, 0, 3, 2), TRIB_OK);
	assert_int_equal(cluster_link_find(&cluster, "leaf2-spine1", &link), TRIB_OK);
	cluster.changes[link].cut = LINK_CUT; /* nobody has noticed */
	assert_true(fabric_spine_leads(&cluster, 1, 2, 1));
	cluster.changes[link].cut = LINK_DOWN;
	assert_false(fabric_spine_leads(&cluster, 1, 2, 1));
	assert_false(fabric_spine_leads(&cluster, 2, 3, 1));
	assert_true(fabric_spine_leads(&cluster, 1, 2, 2));
	assert_true(fabric_spine_leads(&cluster, 1, 3, 1));
}

static void aliases_take_the_spines_in_turn(void **state)
{
	(void)state;
	assert_int_equal(make(2, 0, 2, 3), TRIB_OK);
	assert_int_equal(cluster.fabric.paths, 3);
	assert_int_equal(fabric_alias_spine(&cluster, 1), 1);
	assert_int_equal(fabric_alias_spine(&cluster, 3), 3);
	assert_int_equal(fabric_alias_spine(&cluster, 4), 1);
}

static void routers_have_namespaces(void **state)
{
	char name[64];

	(void)state;
	assert_int_equal(make(2, 0, 2, 3), TRIB_OK);
	assert_true(fabric_find_router(&cluster, "spine3", name));
	assert_string_equal(name, "a-spine3");
	assert_false(fabric_find_router(&cluster, "leaf3", name));
	plan_port_namespace(&cluster, 1, name);
	assert_string_equal(name, "a-leaf2");
}

static void faults_are_of_all_links_or_of_one(void **state)
{
	struct cluster_options options = { .name = "a",
		                           .workers = 2,
		                           .fabric = { .leafs = 2, .spines = 2 },
		                           .faulty = { { "leaf1-spine2", FAULT_DUP, 0.5 } },
		                           .n_faulty = 1 };
	double rates[FAULT_KINDS];

	(void)state;
	if (plan_make(&options, 7, &cluster) == TRIB_ERR_CONFIG)
		skip(); /* a build without faults */
	assert_true(cluster.is_single);
	assert_true(plan_link_faults(&options, &cluster, 3, rates));
	assert_true(rates[FAULT_DUP] == 0.5 && rates[FAULT_LOSS] == 0);
	assert_false(plan_link_faults(&options, &cluster, 0, rates));
	options.faults[FAULT_LOSS] = 0.25;
	assert_true(plan_link_faults(&options, &cluster, 0, rates));
	assert_true(rates[FAULT_DUP] == 0 && rates[FAULT_LOSS] == 0.25);
	assert_true(plan_link_faults(&options, &cluster, 3, rates));
	assert_true(rates[FAULT_DUP] == 0.5 && rates[FAULT_LOSS] == 0.25);
	strcpy(options.faulty[0].link, "leaf1-spine3");
	assert_int_equal(plan_make(&options, 7, &cluster), TRIB_ERR_ARGUMENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_are_dealt_in_blocks),
		cmocka_unit_test(wrong_options_are_refused),
		cmocka_unit_test(links_are_found_by_their_names),
		cmocka_unit_test(addresses_are_distinct),
		cmocka_unit_test(a_link_that_is_down_leads_nowhere),
		cmocka_unit_test(aliases_take_the_spines_in_turn),
		cmocka_unit_test(routers_have_namespaces),
		cmocka_unit_test(faults_are_of_all_links_or_of_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
