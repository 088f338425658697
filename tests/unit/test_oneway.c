/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Path MTU discovery in difficult cases. A path carries long packets up and none down: a long JOIN
 * arrives, but its WELCOME never comes back, so packets of that length must not be used. Or the
 * aggregator starts only when shorter packets are being tried: then long ones must be used all the
 * same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster.h"
#include "relay.h"

#define DOWN_MAX 1500 /* bytes; loopback carries the longest possible packets */
#define COUNT 100000

static void sum_body(struct rank *rank)
{
	int32_t *values = malloc(COUNT * sizeof(*values));
	trib_comm *comm;

	demand(values);
	if (rank->job && rank->rank == 1)
		rank->options.aggregator = ((const struct relay *)rank->job)->address;
	demand(trib_init(&comm, &rank->options) == TRIB_OK);
	for (int i = 0; i < COUNT; i++)
		values[i] = i + rank->rank;
	demand(trib_allreduce(comm, TRIB_IN_PLACE, values, COUNT, TRIB_I32, TRIB_SUM) == TRIB_OK);
	for (int i = 0; i < COUNT; i++)
		demand(values[i] == 2 * i + 1);
	demand(trib_finalize(comm) == TRIB_OK);
	free(values);
}

/* One worker behind the relay, and one without a relay. */
static void sum_by_worker(struct relay *relay, relay_passes *passes)
{
	const trib_options options = { .struct_size = sizeof(options),
		                       .lanes = 1,
		                       .timeout_s = 20 };
	struct cluster cluster;

	cluster_start(&cluster, 1, 0);
	relay_open(relay, cluster.address, passes);
	cluster_run_bare(&cluster, 2, &options, sum_body, relay);
	relay_stop(relay);
	cluster_stop(&cluster);
}

/* Two workers at an aggregator whose parent is behind the relay. */
static void sum_by_aggregator(struct relay *relay, relay_passes *passes)
{
	trib_options options = { .struct_size = sizeof(options), .lanes = 1, .timeout_s = 20 };
	struct cluster root, below;
	char trees[100];

	cluster_start(&root, 1, 0);
	cluster_start(&below, 1, 0);
	relay_open(relay, root.address, passes);
	snprintf(trees, sizeof(trees), "%s(%s(0,1))", relay->address, below.address);
	options.trees = trees;
	cluster_run_bare(&below, 2, &options, sum_body, NULL);
	relay_stop(relay);
	cluster_stop(&below);
	cluster_stop(&root);
}

/* ---- no long packet comes back ---- */

static bool is_short_or_up(struct relay *relay, bool up, const struct wire_header *packet,
                           size_t bytes)
{
	(void)relay;
	(void)packet;
	return up || bytes <= DOWN_MAX;
}

static void test_a_worker(void **state)
{
	struct relay relay;

	(void)state;
	sum_by_worker(&relay, is_short_or_up);
	/* The test is meaningless if none was dropped. */
	assert_in_range(relay.dropped, 1, 100);
}

static void test_an_aggregator_below(void **state)
{
	struct relay relay;

	(void)state;
	sum_by_aggregator(&relay, is_short_or_up);
	assert_in_range(relay.dropped, 1, 100);
}

/* ---- the aggregator is missing until a shorter packet is tried ---- */

static bool is_late(struct relay *relay, bool up, const struct wire_header *packet, size_t bytes)
{
	if (!relay->longest && bytes < relay->most)
		relay->longest = 1; /* from now on the aggregator is there */
	if (bytes > relay->most)
		relay->most = bytes;
	if (up && relay->longest && packet->type == WIRE_DATA && bytes > relay->longest)
		relay->longest = bytes;
	return relay->longest;
}

static void test_a_worker_that_is_early(void **state)
{
	struct relay relay;

	(void)state;
	sum_by_worker(&relay, is_late);
	assert_in_range(relay.dropped, 1, 100);
	assert_int_equal(relay.longest, relay.most);
}

static void test_an_aggregator_that_is_early(void **state)
{
	struct relay relay;

	(void)state;
	sum_by_aggregator(&relay, is_late);
	assert_in_range(relay.dropped, 1, 100);
	assert_int_equal(relay.longest, relay.most);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_worker),
		cmocka_unit_test(test_an_aggregator_below),
		cmocka_unit_test(test_a_worker_that_is_early),
		cmocka_unit_test(test_an_aggregator_that_is_early),
	};

	cluster_environment();
	unsetenv("TRIB_TEST_TREE");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
