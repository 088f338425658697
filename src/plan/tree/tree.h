/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan owns the decisions: which machine sums what, and how fast. It consists of pure
 * functions: no input or output, no clock, no globals, no allocation. Controller, worker,
 * command and simulator share it. It must not touch sockets; hosts are names to it.
 *
 * plan/tree owns trees and their text, for all rooms. It must not touch the other rooms of plan.
 *
 * tree: aggregation trees and their text form. A tree is an aggregator and its children,
 * which are ranks or aggregators. A forest is several trees, each with its share of the
 * fragments:
 *
 *     0.5*10.0.0.9:7700(10.0.0.7:7700(0-2),10.0.0.8:7700(3-5),6);0.5*10.0.0.8:7700(0-6)
 *
 * Shares are relative; the default is 1. All trees of a forest have the same ranks.
 */
#ifndef TRIB_PLAN_TREE_TREE_H
#define TRIB_PLAN_TREE_TREE_H

#include "tributary.h"

#include <stdbool.h>

#define TREE_RANKS_MAX 64u
#define TREE_DEPTH_MAX 8u /* aggregators from a rank to the root */
#define TREE_NAME_MAX 64u
#define FOREST_TREES_MAX 64u

/* An aggregator. Parents come before their children; the root is the first. */
struct tree_node {
	char name[TREE_NAME_MAX]; /* address, "10.0.0.7:7700" */
	int parent;               /* index of the parent; -1: this is the root */
	uint64_t own;             /* ranks that are its children, as bits */
	uint64_t ranks;           /* ranks below it at any depth, as bits */
};

struct tree {
	double share;
	unsigned n_nodes;
	struct tree_node nodes[TREE_RANKS_MAX];
};

struct forest {
	unsigned n_trees;
	struct tree trees[FOREST_TREES_MAX];
};

/* Reads a forest; the error says where it is wrong. */
trib_status forest_parse(struct forest *forest, const char *text);
/* Writes the text that forest_parse reads. Returns its length, as snprintf does. */
size_t forest_print(const struct forest *forest, char *out, size_t size);

/* A tree with a root and no children yet, to be filled by tree_add. */
void tree_start(struct tree *tree, double share, const char *root);
/* A new aggregator below `parent`; its index, or -1: the tree is full. */
int tree_add(struct tree *tree, int parent, const char *name);
/* The rank becomes a child of the node. */
void tree_add_rank(struct tree *tree, int node, unsigned rank);

/* The aggregator that the rank sends to; -1: it is not in the tree. */
int tree_leaf(const struct tree *tree, unsigned rank);
/* How many children it has, ranks and aggregators. */
unsigned tree_children(const struct tree *tree, int node);
/* Aggregators from here to the root, this one and the root included. */
unsigned tree_depth(const struct tree *tree, int node);

/*
 * The trees for a subset of the ranks: ranks[i] becomes rank i. Aggregators with a single
 * child left are removed, because they would sum nothing.
 */
void forest_subset(const struct forest *from, const unsigned *ranks, unsigned n,
                   struct forest *out);

#endif
