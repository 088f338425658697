/* SPDX-License-Identifier: Apache-2.0 */
/* The trees of jobs: which job gets which tree, and what that changes. */
#include "base/random_bits.h"
#include "sim/engine.h"

#include "plan/cluster/draw.h"

#include <math.h>

#define ENDLESS_STEPS 1e6
#define LOOKS 2048u          /* trees examined at a change, for jobs that must share */
#define MIGRATION_LEAST 1e-3 /* s: the smallest gain that justifies a migration */
#define WORTH_LEAST 1e-6     /* s: least worth of a job, because a free tree costs nothing */

/* Removes the job's own tree from the counts, and remembers its root. */
static void tree_drop(struct engine *engine, uint32_t slot)
{
	struct run *run = &engine->runs[slot];

	groups_leave(&engine->groups, slot);
	share_want(&engine->share, run->tree, run->tree_n, run->pattern->demand, -1);
	run->tree = NULL;
	run->tree_n = 0;
	groups_join(&engine->groups, slot, NULL, 0);
}

/* Gives a job the tree with this root; the present allreduce keeps the old tree. */
static void tree_set(struct engine *engine, uint32_t slot, uint32_t root, double now)
{
	struct run *run = &engine->runs[slot];

	if (run->tree && run->root == root)
		return;
	tree_drop(engine, slot);
	if (run->root != ASSIGN_NONE && root != ASSIGN_NONE && run->root != root) {
		run->migrations++;
		run->usable_s = now + engine->input->options.migrate_s;
	}
	run->root = root;
	if (root == ASSIGN_NONE)
		return;
	run->had_tree = true;
	run->tree = run->buffers[run->held == run->buffers[0]];
	run->tree_n = fabric_tree(&engine->input->fabric, &run->footprint, root, run->tree);
	groups_leave(&engine->groups, slot);
	groups_join(&engine->groups, slot, run->tree, run->tree_n);
	share_want(&engine->share, run->tree, run->tree_n, run->pattern->demand, 1);
}

/* A tree that no allreduce uses now: a random one, or the first. */
static void tree_opportune(struct engine *engine, uint32_t slot, bool any, double now)
{
	const struct fabric *fabric = &engine->input->fabric;
	struct run *run = &engine->runs[slot];
	uint32_t ways = fabric->ways[run->footprint.level], found = 0, chosen = ASSIGN_NONE;

	for (uint32_t root = 0; root < ways && (any || !found); root++) {
		uint32_t n = fabric_tree(fabric, &run->footprint, root, run->buffers[0]);

		if (tree_is_free(engine, run->buffers[0], n) && !draw_below(&engine->seed, ++found))
			chosen = root;
	}
	if (chosen != ASSIGN_NONE)
		tree_set(engine, slot, chosen, now);
}

/* ---- trees of their own, or shared ones ---- */

static void unserved_add(struct engine *engine, uint32_t slot)
{
	struct run *run = &engine->runs[slot];

	if (run->unserved_at != ASSIGN_NONE)
		return;
	run->unserved_at = engine->n_unserved;
	engine->unserved[engine->n_unserved++] = slot;
}

static void unserved_remove(struct engine *engine, uint32_t slot)
{
	uint32_t at = engine->runs[slot].unserved_at, last;

	if (at == ASSIGN_NONE)
		return;
	last = engine->unserved[--engine->n_unserved];
	engine->unserved[at] = last;
	engine->runs[last].unserved_at = at;
	engine->runs[slot].unserved_at = ASSIGN_NONE;
}

/* Seconds that a job gains by aggregation in its remaining steps. */
static double run_worth(const struct run *run)
{
	double left = run->steps == SIM_ENDLESS ? ENDLESS_STEPS : run->steps - run->step;

	return (run->pattern->plain_s - run->pattern->fast_s) * left + WORTH_LEAST;
}

static void tree_share(struct engine *engine, uint32_t slot, double now)
{
	struct run *run = &engine->runs[slot];
	const struct share_job job = { .root = run->root,
		                       .demand = run->pattern->demand,
		                       .worth = run_worth(run),
		                       .migration_s = fmax(engine->assign.jobs[slot].migration_s,
		                                           MIGRATION_LEAST),
		                       .meets = engine->input->options.sharing >= TURN_FRUGAL };

	tree_drop(engine, slot);
	tree_set(engine, slot, share_root(&engine->share, &engine->assign, slot, &job), now);
}

/* How many of the unserved jobs are examined again. */
static uint32_t retries(const struct engine *engine)
{
	const struct fabric *fabric = &engine->input->fabric;

	return 1 + LOOKS / fabric->ways[fabric->levels];
}

/* No job migrates for a job that gains nothing. */
static void unserved_serve(struct engine *engine)
{
	struct assign *assign = &engine->assign;
	uint32_t old = engine->n_unserved - engine->n_fresh;

	for (uint32_t i = 0; i < engine->n_fresh; i++) {
		uint32_t slot = engine->fresh[i];

		if (assign->jobs[slot].root == ASSIGN_NONE)
			assign_serve(assign, slot, assign->jobs[slot].worth <= WORTH_LEAST);
	}
	for (uint32_t i = 0; i < retries(engine) && i < old; i++) {
		uint32_t slot = engine->unserved[engine->retry++ % old];

		if (assign->jobs[slot].root == ASSIGN_NONE)
			assign_serve(assign, slot, assign->jobs[slot].worth <= WORTH_LEAST);
	}
}

/* Serves all jobs without a tree, and some that may get a better one. */
static void unserved_share(struct engine *engine, double now)
{
	uint32_t tries = 0;

	for (uint32_t i = 0; i < engine->n_unserved; i++) {
		uint32_t slot = engine->unserved[(engine->retry + i) % engine->n_unserved];

		if (!engine->runs[slot].tree || tries++ < retries(engine))
			tree_share(engine, slot, now);
	}
}

static void trees_smart(struct engine *engine, double now)
{
	struct assign *assign = &engine->assign;
	double migrate = engine->input->options.migrate_s;

	for (uint32_t i = 0; i < engine->n_fresh; i++) {
		uint32_t slot = engine->fresh[i];
		const struct pattern *pattern = engine->runs[slot].pattern;

		assign_enter(assign, slot, &engine->runs[slot].footprint,
		             run_worth(&engine->runs[slot]),
		             migrate * (1 - pattern->fast_s / pattern->plain_s),
		             (uint32_t)random_next(&engine->seed));
		unserved_add(engine, slot);
	}
	unserved_serve(engine);
	for (uint32_t i = 0; i < assign->n_changed; i++) {
		uint32_t slot = assign->changed[i], root = assign->jobs[slot].root;

		if (root == ASSIGN_NONE) {
			unserved_add(engine, slot);
		} else {
			unserved_remove(engine, slot);
			tree_set(engine, slot, root, now);
		}
	}
	assign_clear(assign);
	unserved_share(engine, now);
}

void trees_build(struct engine *engine, double now)
{
	enum sim_trees trees = engine->input->options.trees;

	if (trees == SIM_TREES_SMART)
		trees_smart(engine, now);
	for (uint32_t i = 0; i < engine->n_fresh; i++)
		if (trees == SIM_TREES_FIRST || trees == SIM_TREES_RANDOM)
			tree_opportune(engine, engine->fresh[i], trees == SIM_TREES_RANDOM, now);
}

void trees_leave(struct engine *engine, uint32_t slot)
{
	const struct run *run = &engine->runs[slot];

	share_want(&engine->share, run->tree, run->tree_n, run->pattern->demand, -1);
	if (engine->input->options.trees != SIM_TREES_SMART)
		return;
	assign_exit(&engine->assign, slot);
	unserved_remove(engine, slot);
}
