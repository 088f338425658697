/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/stripes/kary.h"
#include "plan/cluster/candidates.h"
#include "plan/cluster/carve.h"
#include "plan/stripes/tree_load.h"

#include "base/status.h"

#include <string.h>

#define WORKER (1u << 31) /* bit of an item: a rank, not a node */
#define SAME 1e-9         /* relative difference of rates that count as equal */

struct build {
	struct model model;
	struct load *loads;
	uint32_t *candidates, *items; /* items: nodes and ranks without a parent, in order */
	unsigned n_candidates;
	struct kary *tree;
};

static size_t build_carve(struct build *build, char *work, unsigned n)
{
	size_t used = 0;

	build->model.n = n;
	build->model.caps = carve(work, &used, n, sizeof(*build->model.caps));
	build->model.ranks = carve(work, &used, n, sizeof(*build->model.ranks));
	build->model.order = carve(work, &used, n, sizeof(*build->model.order));
	build->loads = carve(work, &used, n, sizeof(*build->loads));
	build->candidates = carve(work, &used, n, sizeof(*build->candidates));
	build->items = carve(work, &used, n, sizeof(*build->items));
	return used;
}

size_t kary_work_bytes(unsigned n)
{
	struct build build = { 0 };

	return build_carve(&build, NULL, n);
}

static uint32_t node_add(struct kary *tree, uint32_t host)
{
	tree->nodes[tree->n_nodes] = (struct kary_node){ host, tree->n_nodes };
	return tree->n_nodes++;
}

static void item_attach(struct kary *tree, uint32_t item, uint32_t node)
{
	if (item & WORKER)
		tree->leaf[item & ~WORKER] = node;
	else
		tree->nodes[item].parent = node;
}

/*
 * Builds one layer: servers take their children from the items, in order, and become the items of
 * the next layer. Returns the number of items in the next layer.
 */
static unsigned layer_build(struct build *build, unsigned n_items, unsigned *used, unsigned k,
                            double *reference)
{
	uint32_t *items = build->items;
	unsigned next = 0;

	for (unsigned i = 0; i < n_items;) {
		unsigned take = 1, left = n_items - i;
		uint32_t node;

		if (*used < build->n_candidates) {
			double link = build->model.caps[build->candidates[*used]].in;

			if (!*reference)
				*reference = link / k;
			take = (unsigned)fmin(fmax(ceil(link / *reference - 0.5), 1), k);
			take = take < left ? take : left;
		}
		if (take == 1) { /* a node with one child is useless: pass the child up */
			items[next++] = items[i++];
			continue;
		}
		node = node_add(build->tree, build->candidates[(*used)++]);
		while (take--)
			item_attach(build->tree, items[i++], node);
		items[next++] = node; /* safe: entries before `i` have been read */
	}
	return next;
}

static double build_rate(struct build *build)
{
	const struct model *model = &build->model;
	const struct kary *tree = build->tree;

	build->tree->steps += model->n + model->workers + tree->n_nodes;
	memset(build->loads, 0, model->n * sizeof(*build->loads));
	for (unsigned r = 0; r < model->workers; r++)
		load_edge(model, build->loads, model->ranks[r], tree->nodes[tree->leaf[r]].host, 1);
	for (unsigned i = 0; i < tree->n_nodes; i++) {
		const struct kary_node *node = &tree->nodes[i];

		load_place(model, build->loads, node->host, 1);
		if (node->parent != i)
			load_edge(model, build->loads, node->host, tree->nodes[node->parent].host,
			          1);
	}
	return load_judge(model, build->loads, 1).rate;
}

/*
 * Builds a tree and returns its rate. `root` gets all items that remain when no server is left, so
 * it may have more than k children.
 */
static double build_try(struct build *build, unsigned k, uint32_t root)
{
	const struct model *model = &build->model;
	unsigned n_items = model->workers, used = 0, before = n_items + 1;
	double reference = 0;
	uint32_t node;

	build->tree->k = k;
	build->tree->n_nodes = build->tree->depth = 0;
	for (unsigned i = 0; i < n_items; i++)
		build->items[i] = model->order[i] | WORKER;
	/*
	 * The first node of each layer is the parent of the first node below, so each layer is a
	 * level.
	 */
	for (; n_items < before; build->tree->depth++) {
		before = n_items;
		if (n_items > k)
			n_items = layer_build(build, n_items, &used, k, &reference);
	}
	node = node_add(build->tree, root);
	for (unsigned i = 0; i < n_items; i++)
		item_attach(build->tree, build->items[i], node);
	/* Only the root can exceed the limit on children: other aggregators have at most k. */
	return n_items <= model->children ? build_rate(build) : 0;
}

/* Chooses the root, if none is given: the best candidate. Removes it from the candidates. */
static trib_status root_choose(struct build *build, int given, uint32_t *root)
{
	unsigned kept = 0;

	if (given == KARY_CHOOSE && !build->n_candidates)
		return status_fail(TRIB_ERR_CONFIG,
		                   "no server can aggregate: none has memory for the model and "
		                   "idle cores for its link; name a host to be the root");
	if (given < KARY_CHOOSE || given >= (int)build->model.n)
		return status_fail(TRIB_ERR_ARGUMENT, "there is no host %d to be the root", given);
	*root = given == KARY_CHOOSE ? build->candidates[0] : (uint32_t)given;
	for (unsigned i = 0; i < build->n_candidates; i++)
		if (build->candidates[i] != *root)
			build->candidates[kept++] = build->candidates[i];
	build->n_candidates = kept;
	return TRIB_OK;
}

/*
 * An upper bound on the rate of a tree whose servers have k children each: the first server has k
 * children and a parent. Only the star, with all ranks at the root, has no such server.
 */
static double build_bound(const struct build *build, unsigned k)
{
	const struct model *model = &build->model;
	const struct model_host *first;
	double bound = INFINITY;

	if (!build->n_candidates)
		return 0; /* every k gives the star */
	if (k >= model->workers)
		return bound;
	first = &model->caps[build->candidates[0]];
	if (first->kind != MODEL_SWITCH)
		bound = first->in / (k + 1.0);
	return fmin(bound, first->cpu / k);
}

/*
 * Tries each k. A larger k needs fewer servers, but each child gets less of the first server's
 * link. When that bound falls below the best rate found, only the star remains to be tried. The
 * depth limit applies here, but not to a k that the user chose.
 */
static void build_best(struct build *build, uint32_t root)
{
	unsigned most = build->model.children < KARY_MAX ? build->model.children : KARY_MAX;
	unsigned star = build->model.workers > KARY_MIN ? build->model.workers : KARY_MIN;
	unsigned best_k = 0, best_nodes = 0;
	double best = 0;

	for (unsigned k = KARY_MIN; k <= most && k <= star; k++) {
		double rate;

		if (build_bound(build, k) < best * (1 - SAME))
			k = star;
		if (k > most)
			break;
		rate = build_try(build, k, root);
		if (build->tree->depth > build->model.depth)
			continue;
		if (rate > best * (1 + SAME) ||
		    (rate >= best * (1 - SAME) && build->tree->n_nodes < best_nodes)) {
			best = rate;
			best_k = k;
			best_nodes = build->tree->n_nodes;
		}
	}
	build->tree->rate_bps = best_k ? build_try(build, best_k, root) : 0;
}

trib_status kary_plan(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                      unsigned k, int root, void *work, size_t work_bytes, struct kary *out)
{
	struct build build = { .model.hosts = hosts, .tree = out };
	trib_status status;
	uint32_t at_root = 0;

	if (!n || n > PLAN_HOSTS_MAX || work_bytes < kary_work_bytes(n))
		return status_fail(TRIB_ERR_ARGUMENT, "%zu bytes do not suit a tree of %u hosts",
		                   work_bytes, n);
	if (k && (k < KARY_MIN || k > limits->children))
		return status_fail(TRIB_ERR_ARGUMENT, "k is from %u to %u, not %u", KARY_MIN,
		                   limits->children, k);
	build_carve(&build, work, n);
	if ((status = model_fill(&build.model, limits)) != TRIB_OK)
		return status;
	out->n_workers = build.model.workers;
	out->steps = 0;
	build.model.children = limits->children;
	build.n_candidates = candidates_select(hosts, n, limits, build.candidates);
	if ((status = root_choose(&build, root, &at_root)) != TRIB_OK)
		return status;
	if (k)
		out->rate_bps = build_try(&build, k, at_root);
	else
		build_best(&build, at_root);
	if (!(out->rate_bps > 0))
		return status_fail(TRIB_ERR_CONFIG,
		                   "no tree of %u workers below %s: it cannot aggregate, or there "
		                   "are too few servers for %u children each%s",
		                   out->n_workers, hosts[at_root].name, limits->children,
		                   k ? "" : ", or it is too deep");
	return TRIB_OK;
}

trib_status kary_forest(const struct plan_host *hosts, const struct kary *kary, struct forest *out)
{
	int at[TREE_RANKS_MAX]; /* index in the tree of each node */
	struct tree *tree = &out->trees[0];

	if (kary->n_workers > TREE_RANKS_MAX || kary->n_nodes > TREE_RANKS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "a forest has up to %u ranks, not %u",
		                   TREE_RANKS_MAX, kary->n_workers);
	out->n_trees = 1;
	/* From the root down: kary lists parents after their children, a tree lists them before. */
	for (unsigned i = kary->n_nodes; i-- > 0;) {
		const struct kary_node *node = &kary->nodes[i];
		const char *name = hosts[node->host].address;

		if (node->parent == i) {
			tree_start(tree, 1, name);
			at[i] = 0;
		} else {
			at[i] = tree_add(tree, at[node->parent], name);
		}
	}
	for (unsigned rank = 0; rank < kary->n_workers; rank++)
		tree_add_rank(tree, at[kary->leaf[rank]], rank);
	return TRIB_OK;
}
