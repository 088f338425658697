/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows and their places, on a network with its own clock: the flows on a path get equal parts of
 * its rate, and each measures its part badly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/balance/places.h"

#include <stdlib.h>

#define MS 1000000ull
#define STEP (20 * MS) /* between two rates of a flow */
#define SECOND 1000u   /* ms */

struct net {
	struct places places;
	double mbps[PATHS_MAX];
	unsigned flows;
	unsigned moves;
	uint64_t now;
	unsigned short seed[3];
};

static void net_init(struct net *net, unsigned paths, unsigned flows, const double mbps[])
{
	*net = (struct net){ .flows = flows, .now = 1, .seed = { 1, 2, 3 } };
	places_init(&net->places, paths);
	for (unsigned i = 0; i < paths; i++)
		net->mbps[i] = mbps[i];
	for (unsigned i = 0; i < flows; i++)
		places_put(&net->places, i, i % paths, net->now);
}

static unsigned flows_on(const struct net *net, unsigned path)
{
	unsigned n = 0;

	for (unsigned i = 0; i < net->flows; i++)
		n += net->places.flows[i].path == path;
	return n;
}

static void run(struct net *net, unsigned ms)
{
	uint64_t end = net->now + ms * MS;

	for (; net->now < end; net->now += STEP)
		for (unsigned i = 0; i < net->flows; i++) {
			unsigned path = net->places.flows[i].path, best;
			double part = net->mbps[path] * 1e6 / flows_on(net, path);

			/* A thread that wakes late measures half of it, or one and a half. */
			part *= 0.5 + erand48(net->seed);
			places_measured(&net->places, i, (uint64_t)part, net->now);
			best = places_choose(&net->places, i, net->now);
			if (best == path)
				continue;
			places_put(&net->places, i, best, net->now);
			net->moves++;
		}
}

static void test_equal_paths(void **state)
{
	const double mbps[] = { 200, 200, 200, 200 };
	struct net net;

	(void)state;
	net_init(&net, 4, 4, mbps);
	run(&net, 60 * SECOND);
	assert_int_equal(net.moves, 0);
}

/* With one flow each, paths of half the rate keep theirs: to share another brings nothing. */
static void test_half_as_fast(void **state)
{
	const double mbps[] = { 200, 100, 200, 100 };
	struct net net;

	(void)state;
	net_init(&net, 4, 4, mbps);
	run(&net, 60 * SECOND);
	assert_int_equal(net.moves, 0);
}

static void test_slow_path_is_left(void **state)
{
	const double mbps[] = { 200, 200, 30, 200 };
	struct net net;

	(void)state;
	net_init(&net, 4, 4, mbps);
	run(&net, 2 * SECOND);
	assert_int_equal(flows_on(&net, 2), 0);
	assert_int_equal(net.moves, 1);
	/* It is tried again at times, in case that it has recovered. */
	run(&net, 60 * SECOND);
	assert_in_range(net.moves, 3, 25);
	net.mbps[2] = 200;
	run(&net, 15 * SECOND);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(flows_on(&net, i), 1);
}

/* All flows begin on one path. */
static void test_crowd_spreads(void **state)
{
	const double mbps[] = { 100, 100, 100, 100 };
	struct net net;

	(void)state;
	net_init(&net, 4, 4, mbps);
	for (unsigned i = 0; i < 4; i++)
		places_put(&net.places, i, 1, net.now);
	run(&net, 20 * SECOND);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(flows_on(&net, i), 1);
}

static void test_dead_path(void **state)
{
	const double mbps[] = { 100, 100, 100 };
	struct net net;

	(void)state;
	net_init(&net, 3, 3, mbps);
	run(&net, SECOND);
	places_dead(&net.places, 0, net.now);
	assert_int_not_equal(places_best(&net.places, 2, net.now), 0);
	assert_int_not_equal(places_best(&net.places, 0, net.now), 0);
	places_rest(&net.places, 1);
	assert_int_equal(places_choose(&net.places, 1, net.now), 1);
}

static void test_only_path(void **state)
{
	const double mbps[] = { 100 };
	struct net net;

	(void)state;
	net_init(&net, 1, 4, mbps);
	run(&net, 5 * SECOND);
	assert_int_equal(net.moves, 0);
	assert_int_equal(places_best(&net.places, 0, net.now), PATHS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_paths),       cmocka_unit_test(test_half_as_fast),
		cmocka_unit_test(test_slow_path_is_left), cmocka_unit_test(test_crowd_spreads),
		cmocka_unit_test(test_dead_path),         cmocka_unit_test(test_only_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
