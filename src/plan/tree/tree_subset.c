/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/tree/tree.h"

static uint64_t renumber(uint64_t from, const unsigned *ranks, unsigned n)
{
	uint64_t to = 0;

	for (unsigned i = 0; i < n; i++)
		to |= (from >> ranks[i] & 1) << i;
	return to;
}

/* Copies a tree with the remaining ranks only. Some aggregators may then have none. */
static void keep_ranks(const struct tree *from, const unsigned *ranks, unsigned n, struct tree *out)
{
	*out = *from;
	for (unsigned i = 0; i < from->n_nodes; i++) {
		out->nodes[i].own = renumber(from->nodes[i].own, ranks, n);
		out->nodes[i].ranks = renumber(from->nodes[i].ranks, ranks, n);
	}
}

/* Number of the node's children that are aggregators with ranks below them. */
static unsigned count_inner(const struct tree *tree, unsigned node)
{
	unsigned n = 0;

	for (unsigned i = 0; i < tree->n_nodes; i++)
		n += tree->nodes[i].parent == (int)node && tree->nodes[i].ranks;
	return n;
}

static bool is_needed(const struct tree *tree, unsigned node)
{
	return (unsigned)__builtin_popcountll(tree->nodes[node].own) + count_inner(tree, node) > 1;
}

/*
 * Removes a node. Its children go to its parent. If it is the root, its only child becomes the
 * root.
 */
static void take_out(struct tree *tree, unsigned node)
{
	int parent = tree->nodes[node].parent;

	if (parent >= 0)
		tree->nodes[parent].own |= tree->nodes[node].own;
	for (unsigned i = 0; i < tree->n_nodes; i++) {
		if (tree->nodes[i].parent == (int)node)
			tree->nodes[i].parent = parent;
		if (tree->nodes[i].parent > (int)node)
			tree->nodes[i].parent--;
	}
	for (unsigned i = node; i + 1 < tree->n_nodes; i++)
		tree->nodes[i] = tree->nodes[i + 1];
	tree->n_nodes--;
}

void forest_subset(const struct forest *from, const unsigned *ranks, unsigned n, struct forest *out)
{
	out->n_trees = from->n_trees;
	for (unsigned t = 0; t < from->n_trees; t++) {
		struct tree *tree = &out->trees[t];

		keep_ranks(&from->trees[t], ranks, n, tree);
		/* From the leaves up: a node that loses its children is checked after them. */
		for (unsigned i = tree->n_nodes; i-- > 0;)
			if (tree->n_nodes > 1 && !is_needed(tree, i))
				take_out(tree, i);
	}
}
