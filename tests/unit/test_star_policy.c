/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregators for turns: a job has its own if possible, else it shares one; and who migrates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "control/policy/topology.h"
#include "control/policy/star_policy.h"
#include "plan/cluster/draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_MAX 16u

static struct star_policy_job job(const char *rack, uint32_t root)
{
	return (struct star_policy_job){
		.rack = rack, .root = root, .worth = 5, .migration_s = 0.2, .demand = 0.3
	};
}

enum { ANY = UINT32_MAX - 1 };

/* Each job gets the expected site, or any if ANY. */
static void check_roots(const struct star_policy_site *sites, uint32_t n_sites,
                        const struct star_policy_job *jobs, uint32_t n, const uint32_t *expected)
{
	uint32_t roots[JOBS_MAX];

	assert_int_equal(star_policy_assign(sites, n_sites, jobs, n, roots), TRIB_OK);
	for (uint32_t i = 0; i < n; i++)
		if (expected[i] != ANY)
			assert_int_equal(roots[i], expected[i]);
}
#define CHECK_ROOTS(sites, n_sites, jobs, n, ...) \
	check_roots(sites, n_sites, jobs, n, (const uint32_t[n]){ __VA_ARGS__ })

/* Each job gets its own site, the closest free one; the fourth job shares. */
static void alone(void **state)
{
	static const struct star_policy_site sites[] = { { "", 1 }, { "a", 1 }, { "a/1", 1 } };
	struct star_policy_job jobs[4];

	(void)state;
	jobs[0] = job("a/1", STAR_POLICY_NONE);
	CHECK_ROOTS(sites, 3, jobs, 1, 2);
	jobs[0].root = 2;
	jobs[1] = job("a/1", STAR_POLICY_NONE);
	CHECK_ROOTS(sites, 3, jobs, 2, 2, 1);
	jobs[1].root = 1;
	jobs[2] = job("a/1", STAR_POLICY_NONE);
	CHECK_ROOTS(sites, 3, jobs, 3, ANY, ANY, 0);
	jobs[2].root = 0;
	jobs[2].demand = 0.1;
	jobs[3] = job(NULL, STAR_POLICY_NONE);
	/* No site is free, so no job migrates for it: it goes to the least wanted site. */
	CHECK_ROOTS(sites, 3, jobs, 4, 2, 1, 0, 0);
}

/* A site serves only hosts below it. */
static void only_above(void **state)
{
	static const struct star_policy_site sites[] = { { "a", 1 }, { "b", 2 } };
	struct star_policy_job jobs[] = { job("", STAR_POLICY_NONE), job("c/1", STAR_POLICY_NONE),
		                          job("b/7", STAR_POLICY_NONE), job("a/2", 1) };

	(void)state;
	/* The last job was at a site that is not above it. */
	CHECK_ROOTS(sites, 2, jobs, 4, STAR_POLICY_NONE, STAR_POLICY_NONE, 1, 0);
	CHECK_ROOTS(sites, 0, jobs, 4, ANY, ANY, STAR_POLICY_NONE, ANY);
}

/*
 * The second job has only one choice, so the first one makes room, unless it is idle or migration
 * costs too much.
 */
static void room_is_made(void **state)
{
	static const struct star_policy_site sites[] = { { "a", 1 }, { "", 1 } };
	struct star_policy_job jobs[] = { job("a/1", 0), job("a/2", STAR_POLICY_NONE),
		                          job("b", 1) };

	(void)state;
	jobs[1].rack = "a/2";
	/* There is another site for the second job. */
	CHECK_ROOTS(sites, 2, jobs, 2, 0, 1);
	/*
	 * The third job spans everything: it gets the only one that it can use, and the second
	 * migrates.
	 */
	jobs[0].root = 1;
	jobs[1] = job("b", STAR_POLICY_NONE);
	CHECK_ROOTS(sites, 2, jobs, 2, 0, 1);
	jobs[0].migration_s = 6;
	/* They share: a migration costs more than it gains. */
	CHECK_ROOTS(sites, 2, jobs, 2, 1, 1);
	jobs[0].migration_s = 0.2;
	jobs[0].stays = true;
	CHECK_ROOTS(sites, 2, jobs, 2, 1, ANY);
	/* While it must not migrate, they share. Later it migrates for the other job. */
	jobs[1].root = 1;
	CHECK_ROOTS(sites, 2, jobs, 2, 1, ANY);
	jobs[0].stays = false;
	CHECK_ROOTS(sites, 2, jobs, 2, 0, 1);
}

/* Of all ways to part two sharing jobs, the one with a single migration is taken. */
static void few_move(void **state)
{
	static const struct star_policy_site sites[] = { { "a", 1 }, { "b", 1 }, { "", 1 } };
	const struct star_policy_job jobs[] = { job("a/2", 2), job("b/1", 1), job("b/2", 2) };

	(void)state;
	CHECK_ROOTS(sites, 3, jobs, 3, 0, 1, 2);
}

/* A job has ended: one of the sharing jobs takes its site, unless that gains too little. */
static void room_is_taken(void **state)
{
	static const struct star_policy_site sites[] = { { "", 1 }, { "", 1 } };
	struct star_policy_job jobs[] = { job("a", 0), job("a", 0) };

	(void)state;
	CHECK_ROOTS(sites, 2, jobs, 2, 0, 1);
	jobs[1].worth = 0.1;
	CHECK_ROOTS(sites, 2, jobs, 2, ANY, 0);
}

/*
 * Jobs come, go and migrate as decided. The process ends, as many jobs as possible are alone, and
 * no job waits for a root that is free.
 */
static void comes_to_rest(void **state)
{
	static const struct star_policy_site sites[] = {
		{ "", 1 }, { "a", 2 }, { "a/1", 1 }, { "b", 1 }, { "b/1", 1 }
	};
	static const char *const racks[] = { "", "a", "a/1", "a/2", "b", "b/1", "b/2", NULL };
	struct star_policy_job jobs[JOBS_MAX];
	uint32_t roots[JOBS_MAX], n = 0, moves = 0;
	uint64_t seed = getenv("TRIB_SEED") ? strtoull(getenv("TRIB_SEED"), NULL, 10) : 5;

	(void)state;
	for (unsigned round = 0; round < 4000; round++) {
		uint32_t count[5] = { 0 };
		bool changed = true;

		if (n == JOBS_MAX || (n && draw_below(&seed, 2))) {
			uint32_t gone = draw_below(&seed, n--);

			memmove(&jobs[gone], &jobs[gone + 1], (n - gone) * sizeof(*jobs));
		} else {
			jobs[n] = job(racks[draw_below(&seed, 8)], STAR_POLICY_NONE);
			jobs[n].demand = 0.01 + draw_below(&seed, 100) / 100.0;
			jobs[n++].worth = 0.1 + draw_below(&seed, 100) / 10.0;
		}
		for (unsigned tries = 0; changed; tries++) {
			assert_true(tries < 3 * JOBS_MAX); /* no job goes back and forth */
			assert_int_equal(star_policy_assign(sites, 5, jobs, n, roots), TRIB_OK);
			changed = false;
			/*
			 * Jobs migrate in random order. A job that migrates is then the youngest,
			 * and the rest is decided again.
			 */
			for (uint32_t k = 0, at = draw_below(&seed, n ? n : 1); k < n && !changed;
			     k++) {
				uint32_t i = (at + k) % n;
				struct star_policy_job moved = jobs[i];

				changed = roots[i] != moved.root;
				if (!changed)
					continue;
				moves += moved.root != STAR_POLICY_NONE;
				moved.root = roots[i];
				memmove(&jobs[i], &jobs[i + 1], (n - i - 1) * sizeof(*jobs));
				jobs[n - 1] = moved;
			}
		}
		for (uint32_t i = 0; i < n; i++) {
			const char *above = sites[jobs[i].root].above;

			assert_true(jobs[i].root < 5); /* the first site is above all hosts */
			assert_true(!jobs[i].rack || rack_is_below(jobs[i].rack, above));
			count[jobs[i].root]++;
		}
		/* No sharing job that would gain overlooks a free site. */
		for (uint32_t i = 0; i < n; i++) {
			uint32_t root = jobs[i].root;
			bool all = count[root] > sites[root].capacity;

			for (uint32_t k = 0; k < n; k++)
				all = all && (jobs[k].root != root || jobs[k].worth > 1);
			for (uint32_t s = 0; all && s < 5; s++)
				if (!jobs[i].rack || rack_is_below(jobs[i].rack, sites[s].above))
					assert_true(count[s]);
		}
	}
	assert_true(moves > 100);
}

/* MINA's fabric of 320 switches with 200 jobs: the time of a decision, for docs/benchmarks.md. */
static void large(void **state)
{
	static struct star_policy_site many[320];
	static struct star_policy_job jobs[200];
	static char above[320][24], racks[200][24];
	static uint32_t roots[200];
	uint64_t seed = 1, began;
	uint32_t alone = 0, count[320] = { 0 };

	(void)state;
	for (unsigned i = 0; i < 320; i++) {
		if (i < 128)
			snprintf(above[i], sizeof(above[i]), "pod%u/rack%u", i / 8, i);
		else if (i < 256)
			snprintf(above[i], sizeof(above[i]), "pod%u", (i - 128) / 8);
		many[i] = (struct star_policy_site){ above[i], 1 };
	}
	for (unsigned i = 0; i < 200; i++) {
		uint32_t rack = draw_below(&seed, 128), kind = draw_below(&seed, 3);

		if (kind)
			snprintf(racks[i], sizeof(racks[i]), kind > 1 ? "pod%u" : "pod%u/rack%u",
			         rack / 8, rack);
		jobs[i] = job(racks[i], STAR_POLICY_NONE);
	}
	began = clock_now();
	assert_int_equal(star_policy_assign(many, 320, jobs, 200, roots), TRIB_OK);
	print_message("200 jobs: %.3f ms for all, ", (double)(clock_now() - began) / 1e6);
	for (unsigned i = 0; i < 200; i++)
		count[jobs[i].root = roots[i]]++;
	for (unsigned i = 0; i < 320; i++)
		alone += count[i] == 1;
	assert_int_equal(alone, 200);
	jobs[199].root = STAR_POLICY_NONE;
	began = clock_now();
	assert_int_equal(star_policy_assign(many, 320, jobs, 200, roots), TRIB_OK);
	print_message("%.3f ms where one is new\n", (double)(clock_now() - began) / 1e6);
	for (unsigned i = 0; i < 199; i++)
		assert_int_equal(roots[i], jobs[i].root); /* no job migrates for it */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone),        cmocka_unit_test(only_above),
		cmocka_unit_test(room_is_made), cmocka_unit_test(room_is_taken),
		cmocka_unit_test(few_move),     cmocka_unit_test(comes_to_rest),
		cmocka_unit_test(large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
