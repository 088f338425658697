/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing groups: the same as if computed from scratch each time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/cluster/draw.h"
#include "plan/fabric/sharing_groups.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 24u
#define RESOURCES 60u
#define TREE 5u

static uint32_t trees[SLOTS][TREE], sizes[SLOTS];
static bool is_in[SLOTS], active[SLOTS];

static bool meet(unsigned a, unsigned b)
{
	for (unsigned i = 0; i < sizes[a]; i++)
		for (unsigned k = 0; k < sizes[b]; k++)
			if (trees[a][i] == trees[b][k])
				return true;
	return false;
}

/* The slots that can be reached from one, through trees that meet. */
static uint32_t reach(unsigned from)
{
	uint32_t reached = 1u << from, before = 0;

	while (reached != before) {
		before = reached;
		for (unsigned a = 0; a < SLOTS; a++)
			for (unsigned b = 0; b < SLOTS; b++)
				if (reached >> a & 1 && is_in[b] && meet(a, b))
					reached |= 1u << b;
	}
	return reached;
}

static void groups_check(const struct groups *groups)
{
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		uint32_t ring = 1u << slot, n = 1, busy = active[slot];

		if (!is_in[slot])
			continue;
		for (uint32_t at = groups->next[slot]; at != slot; at = groups->next[at], n++) {
			assert_true(n < SLOTS);
			assert_int_equal(groups->group[at], groups->group[slot]);
			ring |= 1u << at;
			busy += active[at];
		}
		assert_int_equal(ring, reach(slot));
		assert_int_equal(groups->size[groups->group[slot]], n);
		assert_int_equal(groups->busy[groups->group[slot]], busy);
	}
	for (unsigned r = 0; r < RESOURCES; r++) {
		uint32_t users = 0;

		for (unsigned slot = 0; slot < SLOTS; slot++)
			for (unsigned i = 0; is_in[slot] && i < sizes[slot]; i++)
				users += trees[slot][i] == r;
		assert_int_equal(groups->users[r], users);
	}
}

static void tree_draw(unsigned slot, uint64_t *seed)
{
	sizes[slot] = draw_below(seed, TREE + 1);
	for (unsigned i = 0; i < sizes[slot]; i++)
		trees[slot][i] = draw_below(seed, RESOURCES / TREE) * TREE + i;
}

static void groups_follow_jobs(void **state)
{
	struct groups groups;
	void *work = malloc(groups_bytes(SLOTS, RESOURCES));
	uint64_t seed = 11;

	(void)state;
	assert_non_null(work);
	groups_init(&groups, SLOTS, RESOURCES, work);
	for (unsigned round = 0; round < 4000; round++) {
		unsigned slot = draw_below(&seed, SLOTS);

		if (!is_in[slot]) {
			tree_draw(slot, &seed);
			groups_join(&groups, slot, trees[slot], sizes[slot]);
			is_in[slot] = true;
		} else if (draw_below(&seed, 2)) {
			active[slot] = !active[slot];
			groups_activate(&groups, slot, active[slot]);
		} else {
			if (active[slot])
				groups_activate(&groups, slot, active[slot] = false);
			groups_leave(&groups, slot);
			is_in[slot] = false;
		}
		groups_check(&groups);
	}
	free(work);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(groups_follow_jobs) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
