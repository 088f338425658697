/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fabric/assign.h"
#include "plan/cluster/carve.h"

#include <string.h>

#define DEPTH 3u
#define BUDGET 48u      /* jobs examined to find a tree for one */
#define BLOCKERS_MAX 8u /* a tree with more jobs in its way is not considered */
#define WIDE_MAX 8u
#define SINGLES_MAX 64u /* trees with a single job in the way that are remembered */

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static size_t assign_carve(struct assign *assign, const struct fabric *fabric, uint32_t slots,
                           char *work)
{
	uint32_t wide =
		fabric->link_jobs > fabric->switch_jobs ? fabric->link_jobs : fabric->switch_jobs;
	size_t used = 0, longest = 0;

	assign->wide = least(wide, WIDE_MAX);
	assign->jobs = carve(work, &used, slots, sizeof(*assign->jobs));
	assign->count = carve(work, &used, fabric->resources, sizeof(uint32_t));
	assign->known = carve(work, &used, fabric->resources, sizeof(uint32_t));
	assign->users =
		carve(work, &used, (size_t)fabric->resources * assign->wide, sizeof(uint32_t));
	assign->changed = carve(work, &used, slots, sizeof(uint32_t));
	for (unsigned l = 1; l <= fabric->levels; l++)
		longest += 2 * (size_t)fabric->pods[l];
	assign->tree = carve(work, &used, longest, sizeof(uint32_t));
	return used;
}

size_t assign_bytes(const struct fabric *fabric, uint32_t slots)
{
	struct assign none;

	return assign_carve(&none, fabric, slots, NULL);
}

void assign_init(struct assign *assign, const struct fabric *fabric, uint32_t slots, void *work)
{
	size_t bytes;

	memset(assign, 0, sizeof(*assign));
	bytes = assign_carve(assign, fabric, slots, work);
	memset(work, 0, bytes);
	assign->fabric = fabric;
	assign->depth = DEPTH;
}

void assign_enter(struct assign *assign, uint32_t slot, const struct footprint *footprint,
                  double worth, double migration_s, uint32_t draw)
{
	assign->jobs[slot] = (struct assign_job){ .footprint = *footprint,
		                                  .root = ASSIGN_NONE,
		                                  .worth = worth,
		                                  .migration_s = migration_s,
		                                  .draw = draw,
		                                  .is_in = true };
}

void assign_limit(struct assign *assign, uint32_t slot, const uint32_t *roots, uint32_t n)
{
	assign->jobs[slot].own = roots;
	assign->jobs[slot].n_own = n;
}

uint32_t assign_roots(const struct assign *assign, uint32_t slot)
{
	uint32_t ways = assign->fabric->ways[assign->jobs[slot].footprint.level];

	if (assign->jobs[slot].own)
		return assign->jobs[slot].n_own;
	return assign->candidates && assign->candidates < ways ? assign->candidates : ways;
}

/*
 * Candidate roots lie a stride apart. The stride shares no divisor with the number of roots, so
 * each root occurs once.
 */
uint32_t assign_root(const struct assign *assign, uint32_t slot, uint32_t i)
{
	const struct assign_job *job = &assign->jobs[slot];
	uint32_t ways = assign->fabric->ways[job->footprint.level], a, b;
	uint64_t stride;

	if (job->own)
		return job->own[i];
	if (!assign->candidates || assign->candidates >= ways)
		return i;
	for (stride = 1 + (job->draw >> 16) % ways;; stride++) {
		for (a = ways, b = (uint32_t)(stride % ways); b;) {
			uint32_t rest = a % b;

			a = b;
			b = rest;
		}
		if (a == 1)
			break;
	}
	return (uint32_t)((job->draw % ways + i * stride) % ways);
}

static void change_note(struct assign *assign, uint32_t slot)
{
	if (assign->jobs[slot].is_changed)
		return;
	assign->jobs[slot].is_changed = true;
	assign->changed[assign->n_changed++] = slot;
}

static void tree_take(struct assign *assign, uint32_t slot, uint32_t root)
{
	struct assign_job *job = &assign->jobs[slot];
	uint32_t n = fabric_tree(assign->fabric, &job->footprint, root, assign->tree);

	job->root = root;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t resource = assign->tree[i], *known = &assign->known[resource];

		assign->count[resource]++;
		if (*known < assign->wide)
			assign->users[(size_t)resource * assign->wide + (*known)++] = slot;
	}
}

static void tree_give(struct assign *assign, uint32_t slot)
{
	struct assign_job *job = &assign->jobs[slot];
	uint32_t n = fabric_tree(assign->fabric, &job->footprint, job->root, assign->tree);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t resource = assign->tree[i],
			 *users = assign->users + (size_t)resource * assign->wide;
		uint32_t *known = &assign->known[resource], at = 0;

		assign->count[resource]--;
		while (at < *known && users[at] != slot)
			at++;
		if (at < *known)
			users[at] = users[--*known];
	}
	job->root = ASSIGN_NONE;
}

bool assign_keep(struct assign *assign, uint32_t slot, uint32_t root)
{
	uint32_t n = fabric_tree(assign->fabric, &assign->jobs[slot].footprint, root, assign->tree);

	for (uint32_t i = 0; i < n; i++)
		if (assign->count[assign->tree[i]] >=
		    fabric_capacity(assign->fabric, assign->tree[i]))
			return false;
	tree_take(assign, slot, root);
	return true;
}

void assign_exit(struct assign *assign, uint32_t slot)
{
	if (assign->jobs[slot].root != ASSIGN_NONE)
		tree_give(assign, slot);
	assign->jobs[slot].is_in = false;
}

struct blockers {
	uint32_t slots[BLOCKERS_MAX];
	uint32_t n;
	double worth;
};

/*
 * Finds jobs to remove so that a tree is free: on each full resource the job worth least, unless a
 * job on it is in the list already. False: more than `most`. Jobs beyond the known users of a
 * resource are never removed.
 */
static bool blockers_find(struct assign *assign, const struct assign_job *job, uint32_t root,
                          uint32_t most, struct blockers *blockers)
{
	uint32_t n = fabric_tree(assign->fabric, &job->footprint, root, assign->tree);

	blockers->n = 0;
	blockers->worth = 0;
	assign->steps++;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t resource = assign->tree[i], who;
		uint32_t capacity = fabric_capacity(assign->fabric, resource);
		const uint32_t *users = assign->users + (size_t)resource * assign->wide;
		uint32_t known = assign->known[resource];
		bool is_known = false;

		if (assign->count[resource] < capacity)
			continue;
		who = users[0];
		for (uint32_t u = 0; u < known && !is_known; u++) {
			if (assign->jobs[users[u]].worth < assign->jobs[who].worth)
				who = users[u];
			for (uint32_t b = 0; b < blockers->n && !is_known; b++)
				is_known = blockers->slots[b] == users[u];
		}
		if (is_known)
			continue;
		if (blockers->n == most)
			return false;
		blockers->slots[blockers->n++] = who;
		blockers->worth += assign->jobs[who].worth;
	}
	return true;
}

/* Finds a free tree. If there is none, one other job migrates, and may make another migrate. */
static bool tree_find(struct assign *assign, uint32_t slot, uint32_t depth, double allowance)
{
	struct {
		uint32_t root, blocker;
	} singles[SINGLES_MAX];
	struct assign_job *job = &assign->jobs[slot];
	uint32_t n = 0, roots = assign_roots(assign, slot);
	struct blockers blockers;

	job->seen = assign->search;
	for (uint32_t i = 0; i < roots; i++) {
		uint32_t root = assign_root(assign, slot, i);

		if (!blockers_find(assign, job, root, 1, &blockers))
			continue;
		if (!blockers.n) {
			tree_take(assign, slot, root);
			change_note(assign, slot);
			return true;
		}
		if (n < SINGLES_MAX) {
			singles[n].root = root;
			singles[n++].blocker = blockers.slots[0];
		}
	}
	for (uint32_t i = 0; depth && i < n && assign->budget; i++) {
		uint32_t other = singles[i].blocker, old = assign->jobs[other].root;
		double cost = assign->jobs[other].migration_s;

		if (assign->jobs[other].seen == assign->search || cost >= allowance)
			continue;
		assign->budget--;
		tree_give(assign, other);
		tree_take(assign, slot, singles[i].root);
		if (tree_find(assign, other, depth - 1, allowance - cost)) {
			change_note(assign, slot);
			return true;
		}
		tree_give(assign, slot);
		tree_take(assign, other, old);
	}
	return false;
}

static void search_begin(struct assign *assign)
{
	assign->search++;
	assign->budget = BUDGET;
}

/* Takes the tree whose jobs are worth least in sum, if that is less than this job's worth. */
static bool tree_seize(struct assign *assign, uint32_t slot, double below)
{
	const struct assign_job *job = &assign->jobs[slot];
	uint32_t roots = assign_roots(assign, slot), best_root = ASSIGN_NONE;
	struct blockers blockers, best = { .worth = below };

	for (uint32_t i = 0; i < roots; i++) {
		uint32_t root = assign_root(assign, slot, i);

		if (blockers_find(assign, job, root, BLOCKERS_MAX, &blockers) &&
		    blockers.worth < best.worth) {
			best = blockers;
			best_root = root;
		}
	}
	if (best_root == ASSIGN_NONE)
		return false;
	for (uint32_t i = 0; i < best.n; i++) {
		tree_give(assign, best.slots[i]);
		change_note(assign, best.slots[i]);
	}
	tree_take(assign, slot, best_root);
	change_note(assign, slot);
	for (uint32_t i = 0; i < best.n; i++) {
		search_begin(assign);
		assign->jobs[slot].seen = assign->search;
		tree_find(assign, best.slots[i], assign->depth, assign->jobs[best.slots[i]].worth);
	}
	return true;
}

bool assign_serve(struct assign *assign, uint32_t slot, bool is_modest)
{
	search_begin(assign);
	if (is_modest)
		return tree_find(assign, slot, 0, 0);
	return tree_find(assign, slot, assign->depth, assign->jobs[slot].worth) ||
	       tree_seize(assign, slot, assign->jobs[slot].worth);
}

void assign_clear(struct assign *assign)
{
	for (uint32_t i = 0; i < assign->n_changed; i++)
		assign->jobs[assign->changed[i]].is_changed = false;
	assign->n_changed = 0;
}
