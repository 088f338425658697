/* SPDX-License-Identifier: Apache-2.0 */
/* Trees for jobs that must share: one sharing group, lowest demand, and only if migration pays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/fabric/tree_share.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 4u

/* Five switches of three hosts, with two ways up from each: jobs between two of them. */
static struct fabric fabric = { .levels = 2, .down = { 3, 5 }, .up = { 1, 2 }, .link_jobs = 1 };
static struct groups groups;
static struct assign assign;
static struct share share;
static uint32_t pods[SLOTS][8], trees[SLOTS][8], scratch[16];
static double want[16];
static void *memory[2];

static void footprint_make(struct footprint *footprint, uint32_t slot, uint32_t a, uint32_t b)
{
	const uint32_t hosts[2] = { a, b };

	footprint_fill(footprint, &fabric, hosts, 2, pods[slot]);
}

/* Slots 0 and 1 have trees with roots 0 and 1 below different switches. Slot 2 asks. */
static int setup(void **state)
{
	struct footprint footprint;

	(void)state;
	assert_int_equal(fabric_complete(&fabric), TRIB_OK);
	assert_true(fabric.resources <= 16);
	memory[0] = malloc(groups_bytes(SLOTS, fabric.resources));
	memory[1] = malloc(assign_bytes(&fabric, SLOTS));
	assert_true(memory[0] && memory[1]);
	groups_init(&groups, SLOTS, fabric.resources, memory[0]);
	assign_init(&assign, &fabric, SLOTS, memory[1]);
	memset(want, 0, sizeof(want));
	share = (struct share){ &fabric, &groups, want, scratch };
	/* Job 0: switches 0 and 1 by way 0; job 1: switches 2 and 3 by way 0. */
	for (uint32_t slot = 0; slot < 2; slot++) {
		uint32_t n;

		footprint_make(&footprint, slot, 6 * slot, 6 * slot + 3);
		n = fabric_tree(&fabric, &footprint, 0, trees[slot]);
		assert_int_equal(n, 2);
		groups_join(&groups, slot, trees[slot], n);
		share_want(&share, trees[slot], n, 0.4, 1);
	}
	/* Between switches 1 and 2: way 0 meets both jobs, way 1 none yet. */
	footprint_make(&footprint, 2, 4, 7);
	assign_enter(&assign, 2, &footprint, 1, 0, 0);
	groups_join(&groups, 2, NULL, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(memory[0]);
	free(memory[1]);
	return 0;
}

/* Adds a job on switch 1 by way 1. */
static void block_way_one(double demand)
{
	struct footprint footprint;
	uint32_t n;

	footprint_make(&footprint, 3, 5, 12);
	n = fabric_tree(&fabric, &footprint, 1, trees[3]);
	groups_join(&groups, 3, trees[3], n);
	share_want(&share, trees[3], n, demand, 1);
}

static void one_group_only(void **state)
{
	struct share_job job = { .root = ASSIGN_NONE, .demand = 0.3, .worth = 1 };

	(void)state;
	assert_int_equal(share_root(&share, &assign, 2, &job), 1);
	/* Its demand is higher than on way 0, but way 0 has two sharing groups. */
	block_way_one(0.9);
	assert_int_equal(share_root(&share, &assign, 2, &job), 1);
	/* If jobs give way only to jobs they meet, way 0 has room for 0.3. */
	job.meets = true;
	assert_int_equal(share_root(&share, &assign, 2, &job), 0);
	job.demand = 0.7;
	assert_int_equal(share_root(&share, &assign, 2, &job), 1);
}

static void nowhere(void **state)
{
	struct share_job job = { .root = ASSIGN_NONE, .demand = 0.7, .worth = 1, .meets = true };
	uint32_t tree[8], n;
	struct footprint footprint;

	(void)state;
	block_way_one(0.9);
	/* Adds a job on switch 2 by way 1, in another sharing group. */
	groups_leave(&groups, 0);
	footprint_make(&footprint, 0, 8, 9);
	n = fabric_tree(&fabric, &footprint, 1, tree);
	groups_join(&groups, 0, tree, n);
	groups_leave(&groups, 1);
	groups_join(&groups, 1, trees[1], 2);
	/* Way 0 has only job 1 now. */
	assert_int_equal(share_root(&share, &assign, 2, &job), 0);
	job.root = 0;
	assert_int_equal(share_root(&share, &assign, 2, &job), 0);
	assign.candidates = 1;
	assign.jobs[2].draw = 1; /* way 1 is its only candidate */
	job.root = ASSIGN_NONE;
	assert_int_equal(share_root(&share, &assign, 2, &job), ASSIGN_NONE);
}

static void migration_has_to_pay(void **state)
{
	struct share_job job = { .root = 0, .demand = 0.1, .worth = 1, .meets = true };

	(void)state;
	/* The demand on way 0 is 0.4: a loss of 0.4 / 1.4. */
	job.migration_s = 0.28;
	assert_int_equal(share_root(&share, &assign, 2, &job), 1);
	job.migration_s = 0.29;
	assert_int_equal(share_root(&share, &assign, 2, &job), 0);
	/* It leaves a tree that it may not use, at any cost. */
	job.meets = false;
	assert_int_equal(share_root(&share, &assign, 2, &job), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_group_only, setup, teardown),
		cmocka_unit_test_setup_teardown(nowhere, setup, teardown),
		cmocka_unit_test_setup_teardown(migration_has_to_pay, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
