/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explore: visits every reachable state of a world, or random ones. Include it after the code under
 * test, which defines struct world, world_start, ACTIONS, act (false: the action changes nothing
 * here), check, and hash_world (never 0).
 */
#ifndef TRIB_TESTS_EXPLORE_H
#define TRIB_TESTS_EXPLORE_H

#include "seen.h"
#include "short.h"

#define EXPLORE_DEPTH 4096u

struct place {
	struct world world;
	unsigned action; /* the next action to try */
};

/* Depth first, until `enough` states have been seen. */
static void explore_all(struct seen *seen, size_t enough)
{
	struct place *path = calloc(EXPLORE_DEPTH, sizeof(*path));
	size_t depth = 1;
	bool copied = false; /* an action that changes nothing leaves the copy for the next one */

	assert_non_null(path);
	world_start(&path[0].world);
	while (depth && seen->n < enough) {
		struct place *here = &path[depth - 1], *there = &path[depth];

		if (here->action == ACTIONS) {
			assert_true(!copied ||
			            hash_world(&there->world) == hash_world(&here->world));
			copied = false;
			depth--;
			continue;
		}
		if (!copied)
			there->world = here->world;
		copied = !act(&there->world, here->action++);
		if (copied || !seen_add(seen, hash_world(&there->world)))
			continue;
		check(&there->world);
		there->action = 0;
		assert_true(++depth < EXPLORE_DEPTH);
	}
	free(path);
}

static void explore_walk(struct seen *seen, uint64_t seed)
{
	struct world world;
	unsigned idle = 0;

	world_start(&world);
	while (idle < 4 * ACTIONS) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		if (!act(&world, (unsigned)(seed >> 33) % ACTIONS) ||
		    !seen_add(seen, hash_world(&world))) {
			idle++;
			continue;
		}
		idle = 0;
		check(&world);
	}
}

/*
 * `walks`: number of random walks; 0: all states. `states`: the least number of states, since fewer
 * would prove little.
 */
static void explore_world(const char *name, unsigned walks, size_t states)
{
	struct seen seen = { calloc(1 << 16, sizeof(uint64_t)), 1 << 16, 0 };
	const char *seed = getenv("TRIB_TEST_SEED");
	uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
	size_t least = test_cases("states", states);

	assert_non_null(seen.slots);
	if (!walks)
		explore_all(&seen, test_is_short() ? least : SIZE_MAX);
	if (test_is_short())
		walks /= 10;
	for (unsigned i = 0; i < walks; i++)
		explore_walk(&seen, first + i);
	printf("%s: %zu states", name, seen.n);
	if (walks)
		printf(", %u walks from seed %llu on", walks, (unsigned long long)first);
	printf("\n");
	assert_true(seen.n >= least);
	free(seen.slots);
}

#endif
