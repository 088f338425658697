/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rates of an aggregator's children: known cases, and properties of random ones. TRIB_SEED: the
 * seed of the random ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/cluster/draw.h"
#include "plan/rates/rates.h"
#include "short.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define CHILDREN_MAX 64
#define SLACK 1e-9

static uint64_t seed = 1;

static void near_to(double is, double should)
{
	if (!(fabs(is - should) <= 1e-9 * (1 + fabs(should))))
		fail_msg("%.12g is not %.12g", is, should);
}

static void test_known(void **state)
{
	struct rate_child children[4] = { { .max = 10, .active = true },
		                          { .max = 10, .active = true },
		                          { .max = 2, .active = true },
		                          { .max = 10, .active = true } };
	double rates[4];

	(void)state;
	/* One child wants less than its share. The others divide the rest. */
	near_to(rates_share(10, 100, children, 4, rates), 2);
	near_to(rates[2], 2);
	near_to(rates[0], 8.0 / 3);
	near_to(rates[3], 8.0 / 3);
	/* It has finished: the others get its rate. */
	children[2].active = false;
	near_to(rates_share(10, 100, children, 4, rates), 10.0 / 3);
	near_to(rates[2], 0);
	near_to(rates[0], 10.0 / 3);
	/* The sum cannot leave faster, so no child needs to send faster. */
	children[2].active = true;
	near_to(rates_share(10, 1, children, 4, rates), 1);
	for (unsigned i = 0; i < 4; i++)
		near_to(rates[i], 1);
	/* One child still computes: no sum leaves, and others may send ahead. */
	children[1].active = false;
	near_to(rates_share(10, 1, children, 4, rates), 1);
	near_to(rates[0], 4);
	/* A tree with three quarters of the fragments, and one with a quarter. */
	children[0].weight = 3;
	near_to(rates_share(8, 100, children, 1, rates), 8);
	children[1] = (struct rate_child){ .max = 10, .active = true, .weight = 1 };
	rates_share(8, 100, children, 2, rates);
	near_to(rates[0], 6);
	near_to(rates[1], 2);
	near_to(rates_share(8, 100, children, 0, rates), 0);
}

/* Trees with three quarters and a quarter of the fragments, four children each, on one link. */
static void test_trees(void **state)
{
	struct rate_child children[8];
	double rates[8];

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		children[i] = (struct rate_child){ .max = INFINITY,
			                           .active = true,
			                           .weight = i < 4 ? 1.5 : 0.5 };
	rates_share(40, INFINITY, children, 8, rates);
	for (unsigned i = 0; i < 8; i++)
		near_to(rates[i], i < 4 ? 7.5 : 2.5);
	/* A rank's own limit, divided in the same shares, binds in both trees at once. */
	children[3].max = 3;
	children[7].max = 1;
	rates_share(40, INFINITY, children, 8, rates);
	for (unsigned i = 0; i < 8; i++)
		near_to(rates[i], (i % 4 == 3 ? 1 : 3) * (i < 4 ? 3 : 1));
	/* Without weights, limits alone do not give these shares: here the link is the limit. */
	for (unsigned i = 0; i < 8; i++) {
		children[i].max = i < 4 ? 30 : 10;
		children[i].weight = 0;
	}
	rates_share(40, INFINITY, children, 8, rates);
	near_to(rates[0], 5);
	near_to(rates[4], 5);
}

/* The newest notice wins, also if numbers wrap. */
static void test_newest_wins(void **state)
{
	(void)state;
	assert_true(rates_is_newer(1, 0));
	assert_false(rates_is_newer(1, 1));
	assert_false(rates_is_newer(1, 2));
	assert_true(rates_is_newer(0, UINT32_MAX));
	assert_true(rates_is_newer(5, UINT32_MAX - 5));
	assert_false(rates_is_newer(UINT32_MAX - 5, 5));
}

/* ---- random children ---- */

struct scene {
	bool all_active, has_weights;
	double in, out;
	unsigned n;
	struct rate_child children[CHILDREN_MAX];
	double rates[CHILDREN_MAX];
};

static double draw_share(uint64_t *random)
{
	return draw_below(random, 1000001) / 1e6;
}

static void draw_scene(uint64_t *random, struct scene *scene)
{
	bool wake_all = draw_below(random, 2); /* so that the outgoing link is a limit */

	scene->all_active = true;
	scene->has_weights = draw_below(random, 2);
	scene->in = 1e9 * draw_share(random) * (1 + draw_below(random, 20));
	scene->out = 1e9 * draw_share(random) * (1 + draw_below(random, 20));
	scene->n = 1 + draw_below(random, CHILDREN_MAX);
	for (unsigned i = 0; i < scene->n; i++) {
		scene->children[i] = (struct rate_child){
			.max = draw_below(random, 8) ? 1e9 * draw_share(random) : 0,
			.active = draw_below(random, 4) || wake_all,
			.weight = scene->has_weights ? draw_share(random) : 0,
		};
		scene->all_active = scene->all_active && scene->children[i].active;
	}
}

static double weight_of(const struct rate_child *child)
{
	return child->weight > 0 ? child->weight : 1;
}

/* The highest rate that a child could use. */
static double most_of(const struct scene *scene, unsigned i)
{
	double most = scene->children[i].max;

	return scene->all_active ? fmin(most, scene->out) : most;
}

static void check_scene(struct scene *scene)
{
	double sum = 0, level = 0, slack = SLACK * (scene->in + 1);
	double leaves = rates_share(scene->in, scene->out, scene->children, scene->n, scene->rates);
	bool all_at_most = true;

	for (unsigned i = 0; i < scene->n; i++) {
		const struct rate_child *child = &scene->children[i];

		assert_true(scene->rates[i] >= 0);
		assert_true(child->active || scene->rates[i] == 0);
		if (!child->active)
			continue;
		assert_true(scene->rates[i] <= most_of(scene, i) + slack);
		assert_true(leaves <= scene->rates[i] + slack);
		sum += scene->rates[i];
		level = fmax(level, scene->rates[i] / weight_of(child));
		all_at_most = all_at_most && scene->rates[i] >= most_of(scene, i) - slack;
	}
	assert_true(leaves <= scene->out + slack);
	/* Never more than the link, and never less while a child could use more. */
	assert_true(sum <= scene->in + slack);
	assert_true(all_at_most || sum >= scene->in - slack);
	/* A child that has less than it could use has at least as much as any other, by weight. */
	for (unsigned i = 0; i < scene->n; i++)
		if (scene->children[i].active && scene->rates[i] < most_of(scene, i) - slack)
			assert_true(scene->rates[i] / weight_of(&scene->children[i]) >=
			            level * (1 - 1e-6));
}

static void none_is_less(const struct scene *before, const struct scene *after, int but)
{
	for (unsigned i = 0; i < before->n; i++)
		if ((int)i != but)
			assert_true(after->rates[i] >= before->rates[i] - SLACK * (after->in + 1));
}

static void test_any(void **state)
{
	unsigned rounds = (unsigned)test_cases("rounds", 20000);
	uint64_t random = seed;
	static struct scene scene, wider, fewer;

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (unsigned round = 0; round < rounds; round++) {
		unsigned who;

		draw_scene(&random, &scene);
		check_scene(&scene);
		/* A faster link takes nothing from any child. */
		wider = scene;
		wider.in *= 1 + draw_share(&random);
		check_scene(&wider);
		none_is_less(&scene, &wider, -1);
		/*
		 * A child that ends leaves its rate to the others. If all were active, the outgoing
		 * link was a limit. Without it, children of more weight may take more.
		 */
		if (scene.all_active && scene.has_weights)
			continue;
		fewer = scene;
		who = draw_below(&random, scene.n);
		fewer.children[who].active = fewer.all_active = false;
		check_scene(&fewer);
		none_is_less(&scene, &fewer, (int)who);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_newest_wins),
		cmocka_unit_test(test_any),
	};

	if (getenv("TRIB_SEED"))
		seed = strtoull(getenv("TRIB_SEED"), NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
