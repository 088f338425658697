/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of jobs: the least score of all choices, in every state of small trees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/cluster/draw.h"
#include "plan/fabric/placement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct fabric shapes[] = {
	{ .levels = 3, .down = { 2, 2, 2 }, .up = { 1, 1, 1 } },
	{ .levels = 2, .down = { 3, 3 }, .up = { 1, 1 } },
	{ .levels = 2, .down = { 4, 2 }, .up = { 1, 1 } },
	{ .levels = 3, .down = { 1, 3, 3 }, .up = { 1, 1, 1 } },
	{ .levels = 1, .down = { 6 }, .up = { 1 } },
	{ .levels = 4, .down = { 2, 1, 2, 2 }, .up = { 1, 1, 1, 1 } },
};

#define SHAPES_N (sizeof(shapes) / sizeof(shapes[0]))

static void setup(struct placement *placement, struct fabric *fabric, double alpha, uint32_t most)
{
	void *work;

	assert_int_equal(fabric_complete(fabric), TRIB_OK);
	work = malloc(placement_bytes(fabric, most));
	assert_non_null(work);
	placement_init(placement, fabric, alpha, most, work);
}

static void teardown(struct placement *placement)
{
	free(placement->taken); /* the first piece of the work memory */
}

/* The fragments of a set, directly by the paper's definition. */
static unsigned fragments(const struct fabric *fabric, uint32_t set, unsigned level, uint32_t pod)
{
	uint32_t size = fabric->size[level];
	uint32_t all = (1u << size) - 1, here = set >> pod * size & all;
	unsigned sum = 0;

	if (!here || here == all)
		return here != 0;
	for (uint32_t i = 0; i < fabric->down[level - 1]; i++)
		sum += fragments(fabric, set, level - 1, pod * fabric->down[level - 1] + i);
	return sum;
}

static double score_of(const struct fabric *fabric, uint32_t chosen, uint32_t left, double alpha)
{
	return fragments(fabric, chosen, fabric->levels, 0) +
	       alpha * fragments(fabric, left, fabric->levels, 0);
}

static void state_try(struct placement *placement, uint32_t unused, double alpha)
{
	const struct fabric *fabric = placement->fabric;
	uint32_t hosts[16];

	for (uint32_t n = 1; n <= (uint32_t)__builtin_popcount(unused); n++) {
		double best = INFINITY, score;
		uint32_t chosen = 0;

		for (uint32_t set = unused; set; set = (set - 1) & unused)
			if ((uint32_t)__builtin_popcount(set) == n)
				best = fmin(best, score_of(fabric, set, unused & ~set, alpha));
		assert_true(placement_smart(placement, n, hosts, &score));
		for (uint32_t i = 0; i < n; i++) {
			assert_true(!i || hosts[i] > hosts[i - 1]);
			chosen |= 1u << hosts[i];
		}
		assert_int_equal(chosen & ~unused, 0);
		assert_true(fabs(score - best) < 1e-9);
		assert_true(fabs(score_of(fabric, chosen, unused & ~chosen, alpha) - best) < 1e-9);
	}
	assert_false(
		placement_smart(placement, (uint32_t)__builtin_popcount(unused) + 1, hosts, NULL));
	assert_int_equal(placement_fragments(placement, true),
	                 fragments(fabric, unused, fabric->levels, 0));
}

static void smart_is_optimal(void **state)
{
	static const double alphas[] = { 0.5, 0.1, 0.9, 0 };

	(void)state;
	for (unsigned s = 0; s < SHAPES_N; s++)
		for (unsigned a = 0; a < 4; a++) {
			struct fabric fabric = shapes[s];
			struct placement placement;
			uint32_t before = 0;

			setup(&placement, &fabric, alphas[a], 1u << 16 >> 1);
			/* From one state to the next, so that cached scores are tested too. */
			for (uint32_t taken = 0; taken < 1u << fabric.hosts; taken++) {
				for (uint32_t h = 0; h < fabric.hosts; h++) {
					if (taken & ~before & 1u << h)
						placement_take(&placement, &h, 1);
					if (before & ~taken & 1u << h)
						placement_give(&placement, &h, 1);
				}
				before = taken;
				state_try(&placement, ~taken & ((1u << fabric.hosts) - 1),
				          alphas[a]);
			}
			teardown(&placement);
		}
}

/*
 * The fragments of a set if only `real` hosts exist: a pod is whole if all its real hosts are free.
 */
static unsigned fragments_of(const struct fabric *fabric, uint32_t set, uint32_t real,
                             unsigned level, uint32_t pod)
{
	uint32_t size = fabric->size[level], all = ((1u << size) - 1) << pod * size;
	unsigned sum = 0;

	if (!(set & all) || (set & all) == (real & all))
		return (set & all) != 0;
	if (!level)
		return 1;
	for (uint32_t i = 0; i < fabric->down[level - 1]; i++)
		sum += fragments_of(fabric, set, real, level - 1,
		                    pod * fabric->down[level - 1] + i);
	return sum;
}

/* Racks of different sizes: all sets of existing hosts, and all sets of free ones. */
static void gaps_are_no_fragments(void **state)
{
	struct fabric fabric = shapes[0];

	(void)state;
	for (uint32_t real = 1; real < 256; real++) {
		struct placement placement;
		uint32_t before = 0, hosts[8], top;

		setup(&placement, &fabric, 0.5, 8);
		top = fabric.levels;
		for (uint32_t h = 0; h < 8; h++)
			if (!(real >> h & 1))
				placement_lack(&placement, &h, 1);
		for (uint32_t taken = 0; taken < 256; taken++) {
			uint32_t unused = real & ~taken;

			if (taken & ~real)
				continue;
			for (uint32_t h = 0; h < 8; h++) {
				if (taken & ~before & 1u << h)
					placement_take(&placement, &h, 1);
				if (before & ~taken & 1u << h)
					placement_give(&placement, &h, 1);
			}
			before = taken;
			assert_int_equal(placement_fragments(&placement, true),
			                 fragments_of(&fabric, unused, real, top, 0));
			assert_int_equal(placement_fragments(&placement, false),
			                 fragments_of(&fabric, taken, real, top, 0));
			for (uint32_t n = 1; n <= (uint32_t)__builtin_popcount(unused); n++) {
				double best = INFINITY, score;

				for (uint32_t set = unused; set; set = (set - 1) & unused)
					if ((uint32_t)__builtin_popcount(set) == n)
						best = fmin(
							best,
							fragments_of(&fabric, set, real, top, 0) +
								0.5 * fragments_of(&fabric,
						                                   unused & ~set,
						                                   real, top, 0));
				assert_true(placement_smart(&placement, n, hosts, &score));
				assert_true(fabs(score - best) < 1e-9);
				for (uint32_t i = 0; i < n; i++)
					assert_true(unused >> hosts[i] & 1);
			}
		}
		teardown(&placement);
	}
}

/* Jobs come and go on MINA's fabric: cached scores equal freshly computed ones. */
static void memory_is_sound(void **state)
{
	struct fabric fabric = { 0 };
	struct placement placement, anew;
	uint32_t hosts[64], again[64], kept[64][64], n_kept[64] = { 0 };
	uint64_t seed = 7;

	(void)state;
	assert_int_equal(fabric_fat_tree(&fabric, 8, 1), TRIB_OK);
	setup(&placement, &fabric, 0.5, 64);
	for (unsigned round = 0; round < 400; round++) {
		unsigned slot = draw_below(&seed, 64);
		uint32_t n = 1 + draw_below(&seed, 20);
		double score, score_anew;

		if (n_kept[slot]) {
			placement_give(&placement, kept[slot], n_kept[slot]);
			n_kept[slot] = 0;
			continue;
		}
		if (!placement_smart(&placement, n, hosts, &score))
			continue;
		setup(&anew, &fabric, 0.5, 64);
		for (unsigned i = 0; i < 64; i++)
			placement_take(&anew, kept[i], n_kept[i]);
		assert_true(placement_smart(&anew, n, again, &score_anew));
		assert_true(score == score_anew);
		assert_memory_equal(hosts, again, n * sizeof(*hosts));
		teardown(&anew);
		placement_take(&placement, hosts, n);
		memcpy(kept[slot], hosts, n * sizeof(*hosts));
		n_kept[slot] = n;
	}
	teardown(&placement);
}

/* A job on 1024 hosts needs few sums, far below K N M^2. */
static void work_is_bounded(void **state)
{
	struct fabric fabric = { 0 };
	struct placement placement;
	uint32_t hosts[128];
	uint64_t seed = 3, before;

	(void)state;
	assert_int_equal(fabric_fat_tree(&fabric, 16, 1), TRIB_OK);
	setup(&placement, &fabric, 0.5, 128);
	for (uint32_t h = 0; h < 1024; h++)
		if (draw_below(&seed, 2))
			placement_take(&placement, &h, 1);
	assert_true(placement_smart(&placement, 128, hosts, NULL));
	before = placement.steps;
	placement_take(&placement, hosts, 128);
	placement_give(&placement, hosts, 128);
	assert_true(placement_smart(&placement, 128, hosts, NULL));
	assert_true(placement.steps - before < 1000000);
	teardown(&placement);
}

static void first_and_random(void **state)
{
	struct fabric fabric = shapes[0];
	struct placement placement;
	uint32_t hosts[8], taken[] = { 0, 3 }, seen = 0;
	uint64_t seed = 1;

	(void)state;
	setup(&placement, &fabric, 0.5, 8);
	placement_take(&placement, taken, 2);
	assert_true(placement_first(&placement, 3, hosts));
	assert_int_equal(hosts[0], 1);
	assert_int_equal(hosts[1], 2);
	assert_int_equal(hosts[2], 4);
	assert_false(placement_first(&placement, 7, hosts));
	assert_false(placement_random(&placement, 7, &seed, hosts));
	for (unsigned i = 0; i < 100; i++) {
		assert_true(placement_random(&placement, 2, &seed, hosts));
		assert_true(hosts[0] < hosts[1]);
		seen |= 1u << hosts[0] | 1u << hosts[1];
	}
	assert_int_equal(seen, 0xff & ~(1u << 0 | 1u << 3));
	teardown(&placement);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(smart_is_optimal), cmocka_unit_test(gaps_are_no_fragments),
		cmocka_unit_test(memory_is_sound),  cmocka_unit_test(work_is_bounded),
		cmocka_unit_test(first_and_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
