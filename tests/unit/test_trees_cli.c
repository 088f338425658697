/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meaning of --trees on a cluster, and the rate that its links allow. The cluster is only
 * described.
 */
#include "launch/tree_rate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MBIT 1000000ull

static struct cluster cluster;
static struct tree_layout trees;

/* Workers h1..., then servers s1..., all with one rate. */
static void cluster_describe(unsigned workers, unsigned servers, uint64_t rate)
{
	cluster = (struct cluster){ .name = "described", .mtu = 1500, .n = workers + servers };
	for (unsigned i = 0; i < cluster.n; i++) {
		struct cluster_host *host = &cluster.hosts[i];
		unsigned number = i < workers ? i + 1 : i - workers + 1;

		host->is_server = i >= workers;
		host->rate_bps = rate;
		snprintf(host->name, sizeof(host->name), "%c%u", host->is_server ? 's' : 'h',
		         number);
		snprintf(host->address, sizeof(host->address), "10.84.1.%u",
		         number + (host->is_server ? 100 : 0));
	}
}

static double rate_of(const char *wanted, unsigned workers, bool copies)
{
	struct nic_load loads[CLUSTER_HOSTS_MAX] = { 0 };
	const struct layout_use use = { .workers = workers, .copies = copies };

	assert_int_equal(layout_read(&trees, wanted, &cluster, workers), TRIB_OK);
	layout_load(&trees, &cluster, &use, loads);
	return loads_rate(loads, &cluster) / MBIT;
}

static void names_become_addresses(void **state)
{
	char text[LAYOUT_TEXT];

	(void)state;
	cluster_describe(4, 2, 0);
	assert_int_equal(layout_read(&trees, "2*s1(h3:900(0-1),2-3);s2(0-3)", &cluster, 4),
	                 TRIB_OK);
	assert_int_equal(trees.n_sites, 3);
	trees.sites[0].port = 7700;
	assert_int_equal(trees.sites[1].port, 900);
	trees.sites[2].port = 7701;
	assert_int_equal(layout_text(&trees, text), TRIB_OK);
	assert_string_equal(text, "2.000000*10.84.1.101:7700(2-3,10.84.1.3:900(0-1));"
	                          "1.000000*10.84.1.102:7701(0-3)");
}

static void words_mean_trees(void **state)
{
	(void)state;
	cluster_describe(3, 2, 0);
	assert_int_equal(layout_read(&trees, "star", &cluster, 3), TRIB_OK);
	assert_int_equal(trees.n_sites, 1);
	assert_string_equal(trees.sites[0].name, "s1");
	assert_int_equal(layout_read(&trees, "striped", &cluster, 3), TRIB_OK);
	assert_int_equal(trees.n_sites, 2);
	cluster_describe(3, 0, 0);
	assert_int_equal(layout_read(&trees, "striped", &cluster, 3), TRIB_OK);
	assert_int_equal(trees.n_sites, 3);
	assert_string_equal(trees.sites[2].name, "h3");
}

static void wrong_trees_are_refused(void **state)
{
	static const char *const wrong[] = { "s9(0-2)",         "s1(0-1)",  "s1(0-3)",
		                             "s1(0-2",          "s1:(0-2)", "s1:70000(0-2)",
		                             "10.84.1.77(0-2)", "/nowhere" };

	(void)state;
	cluster_describe(3, 2, 0);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_not_equal(layout_read(&trees, wrong[i], &cluster, 3), TRIB_OK);
}

/* Four workers: the load of each NIC was counted by hand. */
static void rates_are_those_of_the_fullest_nic(void **state)
{
	(void)state;
	cluster_describe(4, 4, 500 * MBIT);
	/* One server receives four vectors. */
	assert_true(fabs(rate_of("star", 4, false) - 125) < 1e-6);
	/* Four servers receive a quarter of each, so the workers' links are full. */
	assert_true(fabs(rate_of("striped", 4, false) - 500) < 1e-6);
	/* On the workers' hosts: 3 quarters received as inputs, 3 as results. */
	assert_true(fabs(rate_of("h1(0-3);h2(0-3);h3(0-3);h4(0-3)", 4, false) - 500 / 1.5) < 1e-6);
	/* Without multicast a server sends four copies, no more than it receives. */
	assert_true(fabs(rate_of("star", 4, true) - 125) < 1e-6);
	/* Two servers and the workers' hosts, as planned: 1.2 vectors. */
	cluster_describe(4, 2, 500 * MBIT);
	assert_true(fabs(rate_of("planned", 4, false) - 500 / 1.2) < 0.01);
}

/* XAgg's testbed: three slow workers, and a tree of two levels or stripes. */
static void rates_of_unlike_links(void **state)
{
	(void)state;
	cluster_describe(7, 3, 100 * MBIT);
	for (unsigned i = 0; i < 3; i++)
		cluster.hosts[i].rate_bps = 40 * MBIT;
	/* s1 receives three vectors and the result. */
	assert_true(fabs(rate_of("s3(s1(0-2),s2(3-5),6)", 7, false) - 25) < 1e-6);
	assert_true(fabs(rate_of("s3(s1(0-2),s2(3-5),6)", 7, true) - 25) < 1e-6);
	assert_true(fabs(rate_of("planned", 7, false) - 40) < 0.01);
	/* A pace counts what is in the datagrams, so it is below the links' rate. */
	assert_in_range(layout_rate(&trees, &cluster, 7), 38 * MBIT, 39 * MBIT);
	cluster.n = 0;
	assert_int_equal(layout_rate(&trees, &cluster, 7), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_become_addresses),
		cmocka_unit_test(words_mean_trees),
		cmocka_unit_test(wrong_trees_are_refused),
		cmocka_unit_test(rates_are_those_of_the_fullest_nic),
		cmocka_unit_test(rates_of_unlike_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
