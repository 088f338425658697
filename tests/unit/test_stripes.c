/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several trees at once: how vectors are divided, how trees are joined in any order, and which tree
 * an error names. test_collectives.c tests the sums.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "query/query.h"
#include "cluster.h"
#include "short.h"
#include "worker/comm/comm.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* ---- the split ---- */

static void split_once(uint64_t seed)
{
	unsigned n = 1 + (unsigned)(mix(seed) % LANES_MAX), parts_n;
	unsigned lanes = 1 + (unsigned)(mix(seed + 4) % n);
	size_t per = 1 + mix(seed + 1) % 400, fragments = mix(seed + 2) % 5000;
	size_t count = fragments * per + mix(seed + 3) % per, at = 0;
	double weights[LANES_MAX], sum = 0;
	struct part parts[LANES_MAX];
	struct striping striping;

	for (unsigned i = 0; i < n; i++) {
		weights[i] = (double)(1 + mix(seed + 10 + i) % 1000);
		sum += i < lanes ? weights[i] : 0;
	}
	striping_init(&striping, weights, n);
	if (striping_is_small(&striping, count, per, 2)) {
		assert_true(fragments < 2 * (size_t)n);
		return;
	}
	parts_n = striping_split(&striping, lanes, count, per, parts);
	for (unsigned i = 0; i < parts_n; i++) {
		double wish = weights[parts[i].lane] / sum * (double)count;

		assert_int_equal(parts[i].first, at);
		assert_true(parts[i].count > 0);
		assert_int_equal(at % per, 0);
		/* Exact except for whole fragments and 16-bit weights. */
		assert_true(fabs((double)parts[i].count - wish) <=
		            2.0 * (double)per + (double)count * n / 32768);
		at += parts[i].count;
	}
	assert_int_equal(at, count);
}

static void test_split_covers(void **state)
{
	const char *given = getenv("TRIB_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : clock_now();

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (unsigned i = 0; i < (test_is_short() ? 2000u : 20000u); i++)
		split_once(mix(seed + i * 100ull));
}

static void test_some_lanes(void **state)
{
	const double equal[] = { 1, 1, 1, 1 };
	struct part parts[LANES_MAX];
	struct striping striping;

	(void)state;
	striping_init(&striping, equal, 4);
	assert_int_equal(striping_some(&striping, 0, 10, 8), 1);
	assert_int_equal(striping_some(&striping, 150, 10, 8), 1);
	assert_int_equal(striping_some(&striping, 151, 10, 8), 2);
	assert_int_equal(striping_some(&striping, 310, 10, 8), 3);
	assert_int_equal(striping_some(&striping, 10000, 10, 8), 4);
	assert_int_equal(striping_split(&striping, 2, 151, 10, parts), 2);
	assert_int_equal(parts[0].count, 80);
	assert_int_equal(parts[1].count, 71);
}

static void test_turns_by_weight(void **state)
{
	const double weights[] = { 5, 1, 2 };
	unsigned turns[3] = { 0 };
	struct striping striping;

	(void)state;
	striping_init(&striping, weights, 3);
	for (uint64_t i = 0; i < 64; i++)
		turns[striping_rotate(&striping, i)]++;
	assert_int_equal(turns[0], 40);
	assert_int_equal(turns[1], 8);
	assert_int_equal(turns[2], 16);
	/* In turn, not one after the other. */
	assert_true(striping_rotate(&striping, 0) == 0 && striping_rotate(&striping, 1) == 2);
}

/* ---- trees ---- */

struct trees {
	struct cluster clusters[4];
	char text[200];
	double start;
};

static double seconds(void)
{
	return (double)clock_now() / 1e9;
}

static void sum_body(struct rank *rank)
{
	size_t count = 200000;
	uint32_t *vector = malloc(count * 4);
	uint32_t ranks = (uint32_t)trib_size(rank->comm);

	demand(vector);
	for (size_t i = 0; i < count; i++)
		vector[i] = (uint32_t)i + (uint32_t)trib_rank(rank->comm);
	demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, vector, count, TRIB_U32, TRIB_SUM) ==
	       TRIB_OK);
	for (size_t i = 0; i < count; i++)
		demand(vector[i] == ranks * (uint32_t)i + ranks * (ranks - 1) / 2);
	free(vector);
}

/* Every tree carries its share, and no more. */
static void test_shares_of_trees(void **state)
{
	trib_options options = TRIB_OPTIONS_INIT;
	struct trees trees;
	uint64_t bytes[3], sum = 0;

	(void)state;
	setenv("TRIB_MTU", "1500", 1);
	for (unsigned i = 0; i < 3; i++)
		cluster_start(&trees.clusters[i], 1, 0);
	cluster_stars(trees.clusters, 3, 2, trees.text, sizeof(trees.text));
	options.trees = trees.text;
	cluster_run(&trees.clusters[0], 2, &options, sum_body, NULL);
	nap_ms(150); /* until counters are published */
	for (unsigned i = 0; i < 3; i++)
		sum += bytes[i] = cluster_count(&trees.clusters[i], "payload_bytes", NULL);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(fabs((double)bytes[i] / (double)sum - (i + 1) / 6.0) < 0.01);
		cluster_stop(&trees.clusters[i]);
	}
	unsetenv("TRIB_MTU");
}

static void most_body(struct rank *rank)
{
	struct cluster *cluster = rank->job;
	char page[QUERY_PAGE];

	sum_body(rank);
	if (rank->rank)
		return;
	demand(query_page(cluster->address, FOREST_TREES_MAX, 10, page, sizeof(page)) == TRIB_OK);
	demand(page_number(page, "size") == 2);
}

/* The maximum number of trees: all are used, and all are left. */
static void test_most_trees(void **state)
{
	trib_options options = TRIB_OPTIONS_INIT;
	struct cluster cluster;
	char text[FOREST_TREES_MAX * 32], page[QUERY_PAGE];
	size_t used = 0;

	(void)state;
	cluster_start(&cluster, 1, 0);
	for (unsigned i = 0; i < FOREST_TREES_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s(0-1)",
		                         i ? ";" : "", cluster.address);
	assert_true(used < sizeof(text));
	options.trees = text;
	setenv("TRIB_MTU", "1500", 1); /* otherwise the vector is too small to be divided */
	cluster_run(&cluster, 2, &options, most_body, &cluster);
	unsetenv("TRIB_MTU");
	do /* a tick removes those that have left; without BYE that would take long */
		assert_int_equal(query_page(cluster.address, 1, 10, page, sizeof(page)), TRIB_OK);
	while (strstr(page, "\"state\":\"running\""));
	assert_string_equal(page, "{}");
	cluster_stop(&cluster);
}

struct late {
	struct trees *trees;
	pthread_barrier_t all;
};

static void late_body(struct rank *rank)
{
	struct late *late = rank->job;

	rank->options.trees = late->trees->text;
	demand(trib_init(&rank->comm, &rank->options) == TRIB_OK);
	sum_body(rank);
	demand(trib_finalize(rank->comm) == TRIB_OK);
}

static void *late_start(void *argument)
{
	struct trees *trees = argument;
	uint16_t port = aggregator_port(trees->clusters[1].aggregator);
	struct aggregator_options options = { .plane = getenv("TRIB_PLANE"),
		                              .cookie = CLUSTER_COOKIE,
		                              .threads = 1 };
	char address[40];

	cluster_stop(&trees->clusters[1]);
	nap_ms(1500); /* longer than half of the deadline: members must not count as dead */
	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	demand(udp_resolve(address, 0, &options.listen) == TRIB_OK);
	demand(aggregator_start(&options, &trees->clusters[1].aggregator) == TRIB_OK);
	return NULL;
}

/* One aggregator starts long after all ranks have joined the others. */
static void test_starts_in_any_order(void **state)
{
	trib_options options = TRIB_OPTIONS_INIT;
	struct trees trees;
	struct late late = { .trees = &trees };
	pthread_t thread;

	(void)state;
	options.timeout_s = 2.6;
	for (unsigned i = 0; i < 3; i++)
		cluster_start(&trees.clusters[i], 1, 0);
	cluster_stars(trees.clusters, 3, 2, trees.text, sizeof(trees.text));
	demand(pthread_create(&thread, NULL, late_start, &trees) == 0);
	nap_ms(50);
	cluster_run_bare(&trees.clusters[0], 2, &options, late_body, &late);
	demand(pthread_join(thread, NULL) == 0);
	for (unsigned i = 0; i < 3; i++)
		cluster_stop(&trees.clusters[i]);
}

static void missing_body(struct rank *rank)
{
	struct trees *trees = rank->job;
	trib_status status;

	rank->options.trees = trees->text;
	status = trib_init(&rank->comm, &rank->options);
	demand(status == TRIB_ERR_AGGREGATOR || status == TRIB_ERR_PEER);
	if (status == TRIB_ERR_AGGREGATOR)
		demand(error_has(trees->clusters[1].address) &&
		       !error_has(trees->clusters[0].address));
	demand(!rank->comm && seconds() - trees->start < 5);
}

/* One aggregator never starts: the error at the deadline names it. */
static void test_names_missing(void **state)
{
	trib_options options = TRIB_OPTIONS_INIT;
	struct trees trees = { .start = seconds() };

	(void)state;
	options.timeout_s = 1;
	for (unsigned i = 0; i < 2; i++)
		cluster_start(&trees.clusters[i], 1, 0);
	cluster_stars(trees.clusters, 2, 2, trees.text, sizeof(trees.text));
	cluster_stop(&trees.clusters[1]);
	cluster_run_bare(&trees.clusters[0], 2, &options, missing_body, &trees);
	cluster_stop(&trees.clusters[0]);
}

static void wrong_body(struct rank *rank)
{
	rank->options.trees = rank->job;
	demand(trib_init(&rank->comm, &rank->options) == TRIB_ERR_CONFIG);
	demand(error_has("0 to 1 of this job"));
}

static void test_wants_all_ranks(void **state)
{
	char text[] = "127.0.0.1:1(0-2)";
	struct cluster nowhere = { .address = "127.0.0.1:1" };

	(void)state;
	cluster_run_bare(&nowhere, 2, NULL, wrong_body, text);
}

/* The odd and the even of five ranks, in another order: each half has trees of its own. */
static void split_body(struct rank *rank)
{
	struct rank sub = *rank;
	int color = rank->rank % 2;

	demand(trib_split(rank->comm, color, -rank->rank, &sub.comm) == TRIB_OK);
	demand(trib_size(sub.comm) == 3 - color);
	demand(trib_rank(sub.comm) == (rank->size - 1 - rank->rank) / 2);
	sum_body(&sub);
	demand(trib_finalize(sub.comm) == TRIB_OK);
	sum_body(rank);
}

static void test_split(void **state)
{
	trib_options options = TRIB_OPTIONS_INIT;
	struct trees trees;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		cluster_start(&trees.clusters[i], 1, 0);
	cluster_stars(trees.clusters, 2, 5, trees.text, sizeof(trees.text));
	options.trees = trees.text;
	cluster_run(&trees.clusters[0], 5, &options, split_body, NULL);
	for (unsigned i = 0; i < 2; i++)
		cluster_stop(&trees.clusters[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split_covers),        cmocka_unit_test(test_some_lanes),
		cmocka_unit_test(test_turns_by_weight),     cmocka_unit_test(test_shares_of_trees),
		cmocka_unit_test(test_starts_in_any_order), cmocka_unit_test(test_names_missing),
		cmocka_unit_test(test_wants_all_ranks),     cmocka_unit_test(test_split),
		cmocka_unit_test(test_most_trees),
	};

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
