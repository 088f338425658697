/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_trees.h"

#include <math.h>
#include <string.h>

enum { IN, OUT, CORES };

static void cost_edge(const struct plan_host *hosts, int from, int to, bool multicast,
                      plain_load load)
{
	load[to][CORES] += 1;
	if (from == to)
		return;
	if (!hosts[from].is_switch) {
		load[from][OUT] += 1;
		load[from][IN] += 1;
	}
	if (!hosts[to].is_switch) {
		load[to][IN] += 1;
		load[to][OUT] += multicast ? 0 : 1;
	}
}

void plain_cost(const struct plan_host *hosts, unsigned n, bool multicast,
                const struct plain_tree *tree, plain_load load)
{
	memset(load, 0, sizeof(plain_load));
	for (int i = 0; i < (int)n; i++) {
		if (hosts[i].rank >= 0)
			cost_edge(hosts, i, tree->leaf[hosts[i].rank], multicast, load);
		if (tree->parent[i] >= 0)
			cost_edge(hosts, i, tree->parent[i], multicast, load);
		if (tree->parent[i] == NOT_IN)
			continue;
		if (hosts[i].is_switch)
			load[i][IN] += 1;
		if (hosts[i].is_switch || multicast)
			load[i][OUT] += 1;
	}
}

double plain_rate(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                  plain_load load)
{
	double rate = INFINITY;

	for (unsigned i = 0; i < n; i++) {
		const double has[] = { hosts[i].in_bps, hosts[i].out_bps,
			               hosts[i].idle_cores * limits->core_bps };

		for (unsigned j = 0; j < 3; j++)
			if (load[i][j] > 0)
				rate = fmin(rate, has[j] / load[i][j]);
	}
	return rate;
}

static unsigned children(const struct plan_host *hosts, unsigned n, const struct plain_tree *tree,
                         int of)
{
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++) {
		count += tree->parent[i] == of;
		count += hosts[i].rank >= 0 && tree->leaf[hosts[i].rank] == of;
	}
	return count;
}

const char *plain_fault(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                        const struct plain_tree *tree)
{
	unsigned roots = 0, workers = 0;

	for (unsigned i = 0; i < n; i++)
		workers += hosts[i].rank >= 0;
	for (unsigned i = 0; i < n; i++) {
		unsigned depth = 1, has;

		if (hosts[i].rank >= 0 && tree->parent[tree->leaf[hosts[i].rank]] == NOT_IN)
			return "a rank has no aggregator";
		if (tree->parent[i] == NOT_IN)
			continue;
		if (tree->parent[i] >= 0 && tree->parent[tree->parent[i]] == NOT_IN)
			return "an aggregator has no parent";
		if (!hosts[i].may_aggregate)
			return "an aggregator where none may be";
		roots += tree->parent[i] == -1;
		for (int at = (int)i; tree->parent[at] >= 0 && depth <= n; depth++)
			at = tree->parent[at];
		if (depth > limits->depth || depth > n)
			return "too deep, or round in circles";
		has = children(hosts, n, tree, (int)i);
		if (has > limits->children || (has < 2 && workers > 1))
			return "too many children, or too few";
	}
	return roots == 1 ? NULL : "not one root";
}

bool plain_from_tree(const struct plan_host *hosts, unsigned n, const struct tree *tree,
                     struct plain_tree *out)
{
	int host[TREE_RANKS_MAX];

	for (unsigned i = 0; i < n; i++)
		out->parent[i] = NOT_IN;
	for (unsigned i = 0; i < tree->n_nodes; i++) {
		host[i] = -1;
		for (unsigned j = 0; j < n; j++)
			if (!strcmp(tree->nodes[i].name, hosts[j].address))
				host[i] = (int)j;
		if (host[i] < 0 || out->parent[host[i]] != NOT_IN)
			return false;
		out->parent[host[i]] = i ? host[tree->nodes[i].parent] : -1;
	}
	for (unsigned i = 0; i < n; i++) {
		int leaf = hosts[i].rank < 0 ? 0 : tree_leaf(tree, (unsigned)hosts[i].rank);

		if (leaf < 0)
			return false;
		if (hosts[i].rank >= 0)
			out->leaf[hosts[i].rank] = host[leaf];
	}
	return true;
}

double plain_forest_rate(const struct plan_host *hosts, unsigned n,
                         const struct plan_limits *limits, const struct forest *forest)
{
	static plain_load all, one;
	double shares = 0;

	memset(all, 0, sizeof(all));
	for (unsigned t = 0; t < forest->n_trees; t++) {
		struct plain_tree tree;

		if (!plain_from_tree(hosts, n, &forest->trees[t], &tree) ||
		    plain_fault(hosts, n, limits, &tree))
			return 0;
		plain_cost(hosts, n, limits->multicast, &tree, one);
		shares += forest->trees[t].share;
		for (unsigned i = 0; i < n; i++)
			for (unsigned j = 0; j < 3; j++)
				all[i][j] += one[i][j] * forest->trees[t].share;
	}
	return plain_rate(hosts, n, limits, all) * shares;
}

/* Increments a number with `n` digits, the first digit first. False: it was the last number. */
static bool next_of(int *digits, unsigned n, int base)
{
	for (unsigned i = 0; i < n; i++) {
		if (++digits[i] < base)
			return true;
		digits[i] = 0;
	}
	return false;
}

void plain_each(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits,
                void (*take)(void *context, const struct plain_tree *tree), void *context)
{
	unsigned workers = 0;
	int up[TREES_HOSTS_MAX] = { 0 }; /* parent + 2 */

	for (unsigned i = 0; i < n; i++)
		workers += hosts[i].rank >= 0;
	do {
		int leaf[TREE_RANKS_MAX] = { 0 };

		do {
			struct plain_tree tree;

			for (unsigned i = 0; i < n; i++)
				tree.parent[i] = up[i] - 2;
			memcpy(tree.leaf, leaf, sizeof(leaf));
			if (!plain_fault(hosts, n, limits, &tree))
				take(context, &tree);
		} while (next_of(leaf, workers, (int)n));
	} while (next_of(up, n, (int)n + 2));
}

struct best {
	const struct plan_host *hosts;
	const struct plan_limits *limits;
	unsigned n;
	double rate;
};

static void best_take(void *context, const struct plain_tree *tree)
{
	static plain_load load;
	struct best *best = context;

	plain_cost(best->hosts, best->n, best->limits->multicast, tree, load);
	best->rate = fmax(best->rate, plain_rate(best->hosts, best->n, best->limits, load));
}

double plain_best(const struct plan_host *hosts, unsigned n, const struct plan_limits *limits)
{
	struct best best = { hosts, limits, n, 0 };

	plain_each(hosts, n, limits, best_take, &best);
	return best.rate;
}
